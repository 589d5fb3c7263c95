// Gemma 3 270M against values computed with exact weights in double precision, by another program.
#include "tests/support/test_model.hpp"
#include "tests/unit/kernels/models/running.hpp"
#include "tests/unit/kernels/models/scoring.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <fstream>
#include <iostream>

using namespace godwit;

namespace {

const nlohmann::json& text(std::size_t index) {
  static const auto values =
    nlohmann::json::parse(std::ifstream{std::string{GODWIT_SOURCE_DIR} + "/tests/golden/gemma3-270m.json"});
  return values["nll"][index];
}

std::unique_ptr<model> gemma(const std::string& ops) {
  return load(gguf::file::open(gemma_model_path()).value(), ops, 2);
}

/// The mean loss of a text, and its last rows against their golden logits.
struct measured {
  double mean = 0;
  comparison last;
};

/// @param scored how many rows of the end count
measured measure(const std::string& ops, const nlohmann::json& of, std::size_t scored) {
  const auto runs = gemma(ops);
  const std::size_t width = runs->shape().vocabulary;
  const auto tokens = of["ids"].get<std::vector<token_id>>();
  const auto& top = of["top_of_last_8"];
  const std::size_t rows = tokens.size();
  const auto pool = page_pool::create(runs->shape().kv, 128).value();
  sequence target{*pool};
  measured made;
  constexpr std::size_t step = 64;
  for (std::size_t start = 0; start < rows;) {
    // Rows that do not count run without logits: the vocabulary is most of the work.
    const bool counts = start >= rows - scored;
    const std::size_t count =
      counts ? std::min(step, rows - start) : std::min<std::size_t>(512, rows - scored - start);
    const auto part = std::span{tokens}.subspan(start, count);
    REQUIRE(target.reserve(static_cast<std::uint32_t>(count)).has_value());
    std::vector<float> logits(counts ? count * width : 0);
    const chunk chunks[] = {{&target, part, counts ? logits_wanted::all : logits_wanted::none}};
    runs->forward(chunks, logits);
    for (std::size_t i = 0; i < count && counts; ++i) {
      const auto row = std::span{logits}.subspan(i * width, width);
      // The last row has no next token.
      made.mean +=
        start + i + 1 < rows ? loss(row, tokens[start + i + 1]) / static_cast<double>(scored - 1) : 0;
      if (start + i + top.size() >= rows) {
        made.last.add(row, top[start + i + top.size() - rows]);
      }
    }
    start += count;
  }
  return made;
}

} // namespace

TEST_CASE("cpu: Gemma's mean loss is the golden one, beyond its windows too") {
  for (const std::size_t index : {0U, 1U, 2U}) {
    const auto& of = text(index);
    const auto made = measure("cpu", of, of["ids"].size());
    std::cout << "cpu, text " << index << ": mean loss " << made.mean << ", greatest difference of a logit "
              << made.last.worst << '\n';
    CHECK(std::abs(made.mean - of["mean_nll"].get<double>()) < 0.02);
  }
}

TEST_CASE("reference: Gemma's mean loss over a short text is the golden one") {
  const auto& of = text(1);
  const auto made = measure("reference", of, of["ids"].size());
  CHECK(std::abs(made.mean - of["mean_nll"].get<double>()) < 1e-4);
}

TEST_CASE("reference: Gemma's listed logits are within a thousandth") {
  for (const std::size_t index : {0U, 1U}) {
    const auto made = measure("reference", text(index), 8);
    std::cout << "reference, text " << index << ": greatest difference of a logit " << made.last.worst
              << '\n';
    CHECK(made.last.worst <= 1e-3);
    CHECK(made.last.other == 0);
  }
}

TEST_CASE("reference: Gemma's listed logits beyond its windows are within a thousandth") {
  const auto made = measure("reference", text(2), 8);
  std::cout << "reference, text 2: greatest difference of a logit " << made.last.worst << '\n';
  CHECK(made.last.worst <= 1e-3);
  CHECK(made.last.other == 0);
}
