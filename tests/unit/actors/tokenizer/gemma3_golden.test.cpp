// The vocabulary of Gemma 3 270M against token ids by llama.cpp.
#include "actors/tokenizer/tokenizer.hpp"
#include "kernels/gguf/file.hpp"
#include "tests/support/test_model.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

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
