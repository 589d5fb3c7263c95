// Metadata that does not fit: each gives one error that names the key.
#include "actors/tokenizer/tokenizer.hpp"
#include "tests/support/tiny_vocabulary.hpp"

#include <catch2/catch.hpp>

#include <array>
#include <string>

using namespace godwit;

namespace {

void refused(const gguf::writer& writer, errc code, const std::string& named) {
  const made_file file(writer.finish());
  const auto made = tokenizer::load(*file);
  INFO(named);
  REQUIRE_FALSE(made.has_value());
  CHECK(made.error().code == code);
  CHECK_THAT(made.error().message, Catch::Contains(named));
}

} // namespace

TEST_CASE("a model or pre-tokenizer that we do not have is unsupported by name") {
  refused(gguf::writer().add("tokenizer.ggml.model", "bert"), errc::unsupported, "\"bert\"");
  tiny_vocabulary words;
  words.pre = "tekken";
  refused(words.write(), errc::unsupported, "\"tekken\"");
}

TEST_CASE("missing keys are named") {
  gguf::writer writer;
  refused(writer, errc::corrupt, "tokenizer.ggml.model");
  refused(writer.add("tokenizer.ggml.model", "gpt2"), errc::corrupt, "tokenizer.ggml.pre");
  refused(writer.add("tokenizer.ggml.pre", "gpt-2"), errc::corrupt, "tokenizer.ggml.tokens");
  const tiny_vocabulary words;
  writer.add_array("tokenizer.ggml.tokens", words.tokens);
  refused(writer, errc::corrupt, "tokenizer.ggml.token_type");
  writer.add_array("tokenizer.ggml.token_type", words.types);
  refused(writer, errc::corrupt, "tokenizer.ggml.merges");
}

TEST_CASE("tokens and types that do not fit are refused") {
  tiny_vocabulary words;
  words.types.pop_back();
  refused(words.write(), errc::corrupt, "255 entries");
  words.types.push_back(6);
  refused(words.write(), errc::corrupt, "tokenizer.ggml.token_type");
  words.types.back() = -1;
  refused(words.write(), errc::corrupt, "token 255");
  words = {};
  words.tokens['A'] = "not a byte";
  refused(words.write(), errc::corrupt, "the byte 65");
  words.tokens.clear();
  words.types.clear();
  refused(words.write(), errc::corrupt, "tokenizer.ggml.tokens");
}

TEST_CASE("merges that do not fit are refused with their place") {
  for (const auto* bad : {"ab", "", " ", "a ", " a", "a b c", "a nothing", "a b", "\xFF \xFE"}) {
    tiny_vocabulary words;
    words.add_merge("x", "y");
    words.merges.push_back(bad);
    refused(words.write(), errc::corrupt, "\"tokenizer.ggml.merges\" has at 1");
  }
}

TEST_CASE("ids outside the vocabulary and flags of other types are refused") {
  const tiny_vocabulary words;
  for (const auto* key : {"tokenizer.ggml.bos_token_id", "tokenizer.ggml.eos_token_id",
         "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"}) {
    refused(words.write().add(key, std::uint32_t{256}), errc::corrupt, key);
    refused(words.write().add(key, std::int32_t{-1}), errc::corrupt, key);
    refused(words.write().add(key, "first"), errc::corrupt, key);
  }
  for (const auto* key : {"tokenizer.ggml.add_bos_token", "tokenizer.ggml.add_space_prefix"})
    refused(words.write().add(key, std::uint32_t{1}), errc::corrupt, key);
  refused(
    words.write().add("tokenizer.ggml.add_bos_token", true), errc::corrupt, "tokenizer.ggml.bos_token_id");
  // An end token takes its byte from the alphabet.
  refused(
    words.write().add("tokenizer.ggml.eos_token_id", std::uint32_t{'e'}), errc::corrupt, "the byte 101");
}

TEST_CASE("a special token of absurd length is refused") {
  tiny_vocabulary words;
  words.add(std::string(1025, 'x'), 3);
  refused(words.write(), errc::corrupt, "tokenizer.ggml.tokens");
}
