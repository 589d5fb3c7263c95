// The shipped model against values computed with exact weights in double precision, by another program.
#include "tests/support/test_model.hpp"
#include "tests/unit/kernels/models/running.hpp"
#include "tests/unit/kernels/models/scoring.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <cmath>
#include <fstream>
#include <iostream>

using namespace godwit;

namespace {

const nlohmann::json& golden() {
  static const auto values =
    nlohmann::json::parse(std::ifstream{std::string{GODWIT_SOURCE_DIR} + "/tests/golden/smollm2.json"});
  return values;
}

std::unique_ptr<model> shipped(const std::string& ops, std::optional<kv_type> kv = std::nullopt) {
  return load(gguf::file::open(test_model_path()).value(), ops, 2, 512, kv);
}

/// All greedy continuations under teacher forcing, several sequences in a step.
comparison greedy(const std::string& ops) {
  const auto runs = shipped(ops);
  const std::size_t width = runs->shape().vocabulary;
  const auto pool = page_pool::create(runs->shape().kv, 64).value();
  comparison made;
  for (const auto& each : golden()["greedy"]) {
    auto tokens = each["prompt_ids"].get<std::vector<token_id>>();
    const std::size_t prompt = tokens.size();
    for (const auto& step : each["steps"]) {
      tokens.push_back(step["id"].get<token_id>());
    }
    tokens.pop_back();
    sequence target{*pool};
    const auto logits = append(*runs, target, tokens);
    for (std::size_t i = 0; i < each["steps"].size(); ++i) {
      made.add(std::span{logits}.subspan((prompt - 1 + i) * width, width), each["steps"][i]["top"]);
    }
  }
  return made;
}

/// Calls `use(position, logits)` for every position of a text.
template <class Use>
void run_text(const std::string& ops, const std::vector<token_id>& tokens, Use&& use,
  std::optional<kv_type> kv = std::nullopt) {
  const auto runs = shipped(ops, kv);
  const std::size_t width = runs->shape().vocabulary;
  const auto pool = page_pool::create(runs->shape().kv, 256).value();
  sequence target{*pool};
  constexpr std::size_t step = 512;
  for (std::size_t start = 0; start < tokens.size(); start += step) {
    const auto part = std::span{tokens}.subspan(start, std::min(step, tokens.size() - start));
    const auto logits = append(*runs, target, part);
    for (std::size_t i = 0; i < part.size(); ++i) {
      use(start + i, std::span{logits}.subspan(i * width, width));
    }
  }
}

double mean_loss(
  const std::string& ops, const std::vector<token_id>& tokens, std::optional<kv_type> kv = std::nullopt) {
  double sum = 0;
  run_text(
    ops, tokens,
    [&](std::size_t position, std::span<const float> logits) {
      sum += position + 1 < tokens.size() ? loss(logits, tokens[position + 1]) : 0;
    },
    kv);
  return sum / static_cast<double>(tokens.size() - 1);
}

/// The long text: its listed rows, and its mean loss.
std::pair<comparison, double> long_text(const std::string& ops) {
  const auto& text = golden()["long"];
  const auto tokens = text["ids"].get<std::vector<token_id>>();
  comparison made;
  double sum = 0;
  run_text(ops, tokens, [&](std::size_t position, std::span<const float> logits) {
    sum += position + 1 < tokens.size() ? loss(logits, tokens[position + 1]) : 0;
    for (const auto& row : text["rows"]) {
      if (row["position"].get<std::size_t>() == position) {
        made.add(logits, row["top"]);
      }
    }
  });
  return {made, sum / static_cast<double>(tokens.size() - 1)};
}

} // namespace

TEST_CASE("cpu: the greedy continuations keep every clear choice") {
  const auto made = greedy("cpu");
  std::cout << "cpu, greedy: greatest difference of a logit " << made.worst << '\n';
  CHECK(made.clear > 100);
  CHECK(made.other == 0);
  CHECK(made.worst < 1.5);
}

TEST_CASE("cpu: the mean loss of the short text is the golden one") {
  const auto& text = golden()["nll"][0];
  const double mean = mean_loss("cpu", text["ids"].get<std::vector<token_id>>());
  std::cout << "cpu, short text: mean loss " << mean << '\n';
  CHECK(std::abs(mean - text["mean_nll"].get<double>()) < 0.02);
}

TEST_CASE("cpu: the long text keeps its mean loss and every clear choice") {
  const auto [made, mean] = long_text("cpu");
  std::cout << "cpu, long text: mean loss " << mean << ", greatest difference of a logit " << made.worst
            << '\n';
  CHECK(std::abs(mean - golden()["long"]["mean_nll"].get<double>()) < 0.02);
  CHECK(made.other == 0);
}

TEST_CASE("pages of fewer bits keep the mean loss of the texts") {
  const auto short_text = golden()["nll"][0]["ids"].get<std::vector<token_id>>();
  const double exact = golden()["nll"][0]["mean_nll"].get<double>();
  const auto long_text = golden()["long"]["ids"].get<std::vector<token_id>>();
  const double halves = mean_loss("cpu", long_text);
  for (const auto kv : {kv_type::bf16, kv_type::int8}) {
    // By the reference, where nothing but keys and values is rounded; and what it adds to all else.
    const double alone = mean_loss("reference", short_text, kv) - exact;
    const double added = mean_loss("cpu", long_text, kv) - halves;
    std::cout << to_string(kv) << ": mean loss of the short text by the reference " << std::showpos << alone
              << ", of the long one beside fp16 " << added << std::noshowpos << '\n';
    CHECK(std::abs(alone) < 0.01);
    CHECK(std::abs(added) < 0.01);
    CHECK(alone != 0);
  }
}

TEST_CASE("reference: every listed logit of the greedy continuations is within a thousandth") {
  const auto made = greedy("reference");
  std::cout << "reference, greedy: greatest difference of a logit " << made.worst << '\n';
  CHECK(made.worst <= 1e-3);
  CHECK(made.other == 0);
}

TEST_CASE("reference: the mean loss of the short text is the golden one") {
  const auto& text = golden()["nll"][0];
  const double mean = mean_loss("reference", text["ids"].get<std::vector<token_id>>());
  CHECK(std::abs(mean - text["mean_nll"].get<double>()) < 1e-4);
}

TEST_CASE("reference: every listed logit of the long text is within a thousandth") {
  const auto [made, mean] = long_text("reference");
  std::cout << "reference, long text: mean loss " << mean << ", greatest difference of a logit " << made.worst
            << '\n';
  CHECK(made.worst <= 1e-3);
  CHECK(std::abs(mean - golden()["long"]["mean_nll"].get<double>()) < 1e-4);
}
