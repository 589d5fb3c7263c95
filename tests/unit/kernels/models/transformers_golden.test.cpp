// Small random models of every family against logits by Hugging Face's transformers (tests/golden/models).
#include "tests/unit/kernels/models/running.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <cmath>
#include <fstream>

using namespace godwit;

namespace {

const std::string folder = std::string{GODWIT_SOURCE_DIR} + "/tests/golden/models/";

constexpr auto names = {
  "llama", "llama3", "llama_linear", "llama_yarn", "qwen2", "qwen3", "qwen3_yarn", "gemma3", "gemma3_capped"};

struct difference {
  double worst = 0;
  double size = 0; ///< the greatest golden logit
};

/// Runs the tokens of `golden` with chunks of `step`.
difference compare(const std::string& name, const std::string& ops, std::size_t step) {
  const auto golden = nlohmann::json::parse(std::ifstream{folder + name + ".json"});
  const auto runs = load(gguf::file::open(folder + name + ".gguf").value(), ops, 2);
  const auto pool = page_pool::create(runs->shape().kv, 16).value();
  sequence target{*pool};
  const auto logits = append(*runs, target, golden["tokens"].get<std::vector<token_id>>(), step);
  difference made;
  for (const auto& row : golden["rows"]) {
    const std::size_t start = row["position"].get<std::size_t>() * runs->shape().vocabulary;
    const auto expected = row["logits"].get<std::vector<double>>();
    REQUIRE(expected.size() == runs->shape().vocabulary);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      made.worst = std::max(made.worst, std::abs(logits[start + i] - expected[i]));
      made.size = std::max(made.size, std::abs(expected[i]));
    }
  }
  return made;
}

} // namespace

TEST_CASE("every family's logits are those of transformers to a thousandth") {
  for (const std::string name : names) {
    const auto made = compare(name, "reference", 64);
    INFO(name << ": " << made.worst << " of " << made.size);
    CHECK(made.worst <= 1e-3);
    CHECK(made.size > 4); // so that a thousandth means something
  }
}

TEST_CASE("every family's logits by the fast ops are those of transformers but for half precision pages") {
  for (const std::string name : names) {
    const auto made = compare(name, "cpu", 512);
    INFO(name << ": " << made.worst << " of " << made.size);
    CHECK(made.worst <= made.size * 0x1p-10 * 4);
  }
}
