// The shipped model's vocabulary against token ids from the Python package that it was made with.
#include "actors/tokenizer/tokenizer.hpp"
#include "kernels/gguf/file.hpp"
#include "tests/support/test_model.hpp"

#include <nlohmann/json.hpp>

#include <catch2/catch.hpp>

#include <fstream>
#include <string>
#include <vector>

using namespace godwit;

namespace {

std::shared_ptr<const tokenizer> load() {
  // The file is closed again: nothing of it is needed after loading.
  static const auto made = tokenizer::load(*gguf::file::open(test_model_path()).value()).value();
  return made;
}

} // namespace

TEST_CASE("the shipped vocabulary encodes every golden text to its golden ids, and back") {
  std::ifstream stream(GODWIT_SOURCE_DIR "/tests/golden/smollm2.json");
  const auto golden = nlohmann::json::parse(stream);
  const auto words = load();
  REQUIRE(golden.at("tokenize").size() == 66);
  for (const auto& item : golden.at("tokenize")) {
    const auto text = item.at("text").get<std::string>();
    const auto ids = item.at("ids").get<std::vector<token_id>>();
    INFO(text);
    CHECK(words->encode(text, true) == ids);
    CHECK(words->decode(ids, true) == text);
  }
  const auto& longer = golden.at("long");
  CHECK(words->encode(longer.at("text").get<std::string>(), true)
        == longer.at("ids").get<std::vector<token_id>>());
}

TEST_CASE("the shipped vocabulary's special tokens are what its makers say") {
  const auto words = load();
  const auto text = words->text();
  CHECK(text->size() == 49'152);
  CHECK(text->bytes(0) == "<|endoftext|>");
  CHECK(text->bytes(2) == "<|im_end|>");
  CHECK(text->bytes(216) == " ");
  CHECK(text->is_control(1));
  CHECK_FALSE(text->is_control(216));
  CHECK(text->is_end(0));
  CHECK_FALSE(text->is_end(1));
  CHECK(text->is_end(2));
  CHECK_FALSE(words->begin_token().has_value());
  CHECK(words->decode(std::vector<token_id>{1, 4093, 2}, false) == "user");
}

TEST_CASE("bytes without a token in the shipped vocabulary are left out") {
  // As `tokenizers` does: "a\x04b" gives the ids of "a" and "b" there.
  const auto words = load();
  CHECK(words->encode("a\x04"
                      "b",
          false)
        == std::vector<token_id>{81, 82});
  CHECK(words->encode("\xFF", false).empty());
}
