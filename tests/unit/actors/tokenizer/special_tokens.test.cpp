#include "actors/tokenizer/special_tokens.hpp"
#include "actors/tokenizer/tokenizer.hpp"
#include "tests/support/tiny_vocabulary.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <vector>

using namespace godwit;

namespace {

using ids = std::vector<token_id>;

std::shared_ptr<const tokenizer> load(const gguf::writer& writer) {
  return tokenizer::load(*made_file(writer.finish())).value();
}

} // namespace

TEST_CASE("control tokens are recognised only where asked for, user-defined ones always") {
  tiny_vocabulary words;
  const auto control = words.add("<c>", 3);
  const auto defined = words.add("<u>", 4);
  const auto made = load(words.write());
  CHECK(made->encode("x<c>y<u>z", true) == ids{'x', control, 'y', defined, 'z'});
  CHECK(made->encode("x<c>y<u>z", false) == ids{'x', '<', 'c', '>', 'y', defined, 'z'});
  CHECK(made->decode(ids{'x', control, 'y', defined}, false) == "xy<u>");
  CHECK(made->decode(ids{'x', control, 'y', defined}, true) == "x<c>y<u>");
}

TEST_CASE("of special tokens the leftmost is taken, and there the longest") {
  tiny_vocabulary words;
  const auto abc = words.add("<<abc", 3);
  const auto ab = words.add("<<ab", 3);
  const auto longer = words.add("cdefg", 3);
  const auto empty = words.add("", 3);
  const auto made = load(words.write());
  CHECK(made->encode("<<abc", true) == ids{abc});
  CHECK(made->encode("<<abcdefg", true) == ids{abc, 'd', 'e', 'f', 'g'});
  CHECK(made->encode("<<abx<<abcdefg", true) == ids{ab, 'x', abc, 'd', 'e', 'f', 'g'});
  CHECK(made->encode("<<acdefg<<<ab", true) == ids{'<', '<', 'a', longer, '<', ab});
  CHECK(made->decode(ids{empty}, true).empty());
}

TEST_CASE("unused tokens are not made from text and not part of an answer") {
  tiny_vocabulary words;
  const auto unused = words.add("[PAD0]", 5);
  const auto made = load(words.write());
  CHECK(made->encode("[PAD0]", true).size() == 6);
  CHECK(made->text()->is_control(unused));
  CHECK(made->text()->bytes(unused) == "[PAD0]");
}

TEST_CASE("end tokens are those of the metadata and control tokens of well-known names") {
  tiny_vocabulary words;
  const auto named = words.add("<stop>", 3);
  const auto turn = words.add("<turn>", 1);
  const auto known = words.add("<|eot_id|>", 3);
  const auto text = words.add("<|im_end|>", 1);
  auto writer = words.write();
  writer.add("tokenizer.ggml.eos_token_id", named).add("tokenizer.ggml.eot_token_id", turn);
  const auto made = load(writer)->text();
  CHECK(made->is_end(named));
  CHECK(made->is_end(turn));
  CHECK(made->is_control(turn));
  CHECK(made->is_end(known));
  CHECK_FALSE(made->is_end(text));
}

TEST_CASE("no text merges to a control token") {
  tiny_vocabulary words;
  const auto pair = words.add_merge("<", "s");
  words.types.at(pair) = 3;
  const made_file file(words.write().finish());
  const auto made = tokenizer::load(*file);
  REQUIRE_FALSE(made.has_value());
  CHECK(made.error().code == errc::corrupt);
}

TEST_CASE("text outside the byte alphabet stands for itself and is not merged to") {
  tiny_vocabulary words;
  const auto plain = words.add("two words", 1);
  const auto made = load(words.write());
  CHECK(made->text()->bytes(plain) == "two words");
  CHECK(made->encode("two words", true).size() == 9);
}

TEST_CASE("of equal tokens the first is made, and both can be read") {
  tiny_vocabulary words;
  const auto first = words.add_merge("a", "b");
  const auto second = words.add("ab", 1);
  const auto one = words.add("<c>", 3);
  words.add("<c>", 3);
  const auto made = load(words.write());
  CHECK(made->encode("ab<c>", true) == ids{first, one});
  CHECK(made->decode(ids{second}, true) == "ab");
}

TEST_CASE("a word that is a token is taken whole where the rules say so") {
  tiny_vocabulary words;
  words.add_merge("a", "b");
  const auto whole = words.add("xyz", 1); // no merges lead to it
  words.pre = "gpt-2";
  CHECK(load(words.write())->encode("xyz", true) == ids{'x', 'y', 'z'});
  words.pre = "llama-bpe";
  auto writer = words.write();
  writer.add("tokenizer.ggml.bos_token_id", std::uint32_t{7});
  CHECK(load(writer)->encode("xyz", true) == ids{whole});
}

TEST_CASE("the begin token is wanted as the metadata says, else as the rules do") {
  tiny_vocabulary words;
  const auto begin = words.add("<begin>", 3);
  words.pre = "llama-bpe";
  CHECK(load(words.write().add("tokenizer.ggml.bos_token_id", begin))->begin_token() == begin);
  CHECK_FALSE(
    load(words.write().add("tokenizer.ggml.bos_token_id", begin).add("tokenizer.ggml.add_bos_token", false))
      ->adds_begin());
  words.pre = "qwen2";
  CHECK_FALSE(load(words.write().add("tokenizer.ggml.bos_token_id", begin))->adds_begin());
  CHECK(
    load(words.write().add("tokenizer.ggml.bos_token_id", begin).add("tokenizer.ggml.add_bos_token", true))
      ->begin_token()
    == begin);
}

TEST_CASE("a space is put before each stretch of text if the metadata says so") {
  tiny_vocabulary words;
  const auto control = words.add("<c>", 3);
  const auto made = load(words.write().add("tokenizer.ggml.add_space_prefix", true));
  CHECK(made->encode("a<c>b<c> c", true) == ids{' ', 'a', control, ' ', 'b', control, ' ', 'c'});
  CHECK(made->encode("", true).empty());
}

TEST_CASE("the digest depends on all that decides, and on nothing else") {
  tiny_vocabulary words;
  words.add_merge("a", "b");
  words.add_merge("b", "c");
  words.add("<c>", 3);
  const auto first = load(words.write())->digest();
  CHECK(first.size() == 32);
  CHECK(load(words.write().add("general.name", "other"))->digest() == first);

  auto other = words;
  std::swap(other.merges[0], other.merges[1]);
  CHECK(load(other.write())->digest() != first);
  other = words;
  other.types.back() = 4;
  CHECK(load(other.write())->digest() != first);
  other = words;
  other.tokens.back() = "<d>";
  CHECK(load(other.write())->digest() != first);
  other = words;
  other.pre = "smollm";
  CHECK(load(other.write())->digest() != first);
  CHECK(load(words.write().add("tokenizer.ggml.eos_token_id", std::uint32_t{3}))->digest() != first);
  CHECK(load(words.write().add("tokenizer.ggml.add_space_prefix", true))->digest() != first);
}
