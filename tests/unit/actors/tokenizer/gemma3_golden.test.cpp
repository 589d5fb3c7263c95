// The vocabulary of Gemma 3 270M against token ids by llama.cpp.
#include "actors/tokenizer/tokenizer.hpp"
#include "kernels/gguf/file.hpp"
#include "kernels/memory/page_pool.hpp"
#include "kernels/models/model.hpp"
#include "tests/support/test_model.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

using namespace godwit;

TEST_CASE("Gemma's vocabulary encodes every golden text to its golden ids, and back") {
  const auto golden =
    nlohmann::json::parse(std::ifstream{std::string{GODWIT_SOURCE_DIR} + "/tests/golden/gemma3-270m.json"});
  const auto words = tokenizer::load(*gguf::file::open(gemma_model_path()).value()).value();
  REQUIRE(golden["nll"].size() == 3);
  REQUIRE(words->begin_token() == 2U);
  for (const auto& item : golden["nll"]) {
    const auto text = item["text"].get<std::string>();
    auto ids = words->encode(text, true);
    ids.insert(ids.begin(), *words->begin_token());
    INFO(text);
    CHECK(ids == item["ids"].get<std::vector<token_id>>());
    CHECK(words->decode(ids, false) == text);
  }
  CHECK(words->text()->is_end(1));
  CHECK(words->text()->bytes(107) == "\n");
  CHECK(words->encode("\n\n\n", false) == std::vector<token_id>{109});
  CHECK(words->encode("  ", false) == std::vector<token_id>{138});
}

TEST_CASE("Gemma continues a text sensibly") {
  const auto file = gguf::file::open(gemma_model_path()).value();
  const auto words = tokenizer::load(*file).value();
  const auto runs = model::load(file, {.implementation = "cpu", .threads = 2}).value();
  const auto pool = page_pool::create(runs->shape().kv, 8).value();
  sequence target{*pool};
  auto next = words->encode("The capital of France is Paris. The capital of Japan is", false);
  next.insert(next.begin(), *words->begin_token());
  std::vector<token_id> answer;
  std::vector<float> logits(runs->shape().vocabulary);
  for (int i = 0; i < 6; ++i) {
    REQUIRE(target.reserve(static_cast<std::uint32_t>(next.size())).has_value());
    const chunk part{&target, next, logits_wanted::last};
    runs->forward({&part, 1}, logits);
    next = {static_cast<token_id>(std::ranges::max_element(logits) - logits.begin())};
    answer.push_back(next[0]);
  }
  CHECK_THAT(words->decode(answer, false), Catch::StartsWith(" Tokyo"));
}
