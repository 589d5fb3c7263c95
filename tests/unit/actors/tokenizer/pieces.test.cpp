// Vocabularies of pieces: merges by score, bytes of what is no piece, spaces, and every text back.
#include "actors/generation/answer_text.hpp"
#include "actors/text/utf8.hpp"
#include "actors/tokenizer/tokenizer.hpp"
#include "tests/support/tiny_vocabulary.hpp"

#include <catch2/catch.hpp>

#include <map>
#include <random>
#include <string>
#include <vector>

using namespace godwit;

namespace {

std::shared_ptr<const tokenizer> load(const gguf::writer& from) {
  return tokenizer::load(*made_file(from.finish())).value();
}

std::shared_ptr<const tokenizer> without_prefix(const tiny_pieces& words) {
  return load(words.write().add("tokenizer.ggml.add_space_prefix", false));
}

/// The characters of a valid text.
std::vector<std::string> characters(std::string_view text) {
  std::vector<std::string> made;
  while (!text.empty()) {
    const auto next = utf8::first(text);
    made.emplace_back(text.substr(0, next.size));
    text.remove_prefix(next.size);
  }
  return made;
}

/// SentencePiece's BPE by its definition: again and again, the leftmost of the pairs that make the best
/// piece.
std::vector<std::string> merge_by_definition(const tiny_pieces& words, std::string_view text) {
  std::map<std::string, float> scores;
  for (std::size_t id = 0; id < words.tokens.size(); ++id)
    if (words.types[id] == 1)
      scores.emplace(words.tokens[id], words.scores[id]);
  auto parts = characters(text);
  for (auto& part : parts)
    if (part == " ")
      part = "\xE2\x96\x81";
  for (;;) {
    std::size_t at = parts.size();
    float best = 0;
    for (std::size_t i = 0; i + 1 < parts.size(); ++i)
      if (const auto found = scores.find(parts[i] + parts[i + 1]);
          found != scores.end() && (at == parts.size() || found->second > best)) {
        best = found->second;
        at = i;
      }
    if (at == parts.size())
      return parts;
    parts[at] += parts[at + 1];
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
}

std::string random_text(std::mt19937& random, std::size_t most) {
  std::string text;
  for (auto left = random() % most; left > 0; --left)
    switch (random() % 12) {
    case 0:
      text += "\xC3\xA9";
      break;
    case 1:
      text += "\xF0\x9F\x98\x80";
      break;
    case 2:
      text += "\xE2\x96\x81"; // what stands for a space in the vocabulary
      break;
    case 3: {
      // Any character but surrogates.
      const auto code = static_cast<char32_t>(random() % 0x110000);
      utf8::append(text, code >= 0xD800 && code < 0xE000 ? U'x' : code);
      break;
    }
    case 4:
      text += std::vector<const char*>{"<ab>", "<b>", "  \n", "<s>", "<0x41>", "<unk>"}[random() % 6];
      break;
    default:
      text.push_back("aabbc  \n"[random() % 8]);
    }
  return text;
}

} // namespace

TEST_CASE("pieces merge as the definition says") {
  const auto words = competing_pieces();
  const auto made = without_prefix(words);
  std::mt19937 random(21);
  for (int i = 0; i < 3000; ++i) {
    std::string text;
    for (auto left = random() % 30 + 1; left > 0; --left)
      text += std::vector<const char*>{"a", "a", "b", "c", " ", "\xC3\xA9", "\xF0\x9F\x98\x80"}[random() % 7];
    std::vector<std::string> parts;
    for (const auto id : made->encode(text, false))
      parts.push_back(words.tokens[id]);
    INFO(text);
    REQUIRE(parts == merge_by_definition(words, text));
  }
}

TEST_CASE("every valid text comes back from its tokens, with and without a space in front") {
  std::mt19937 random(22);
  const auto words = competing_pieces();
  for (const bool prefix : {false, true}) {
    const auto made = load(words.write().add("tokenizer.ggml.add_space_prefix", prefix));
    for (int i = 0; i < 3000; ++i) {
      const auto text = random_text(random, 60);
      INFO(text);
      REQUIRE(made->decode(made->encode(text, true), true) == text);
      REQUIRE(made->decode(made->encode(text, false), false) == text);
    }
  }
}

TEST_CASE("bytes that are not UTF-8 come back too") {
  std::mt19937 random(23);
  const auto made = load(competing_pieces().write());
  for (int i = 0; i < 1000; ++i) {
    std::string text;
    for (auto left = random() % 50; left > 0; --left)
      text.push_back(static_cast<char>(random()));
    REQUIRE(made->decode(made->encode(text, false), false) == text);
  }
}

TEST_CASE("no text becomes a control token, an unused one or the unknown one, unless asked for") {
  const auto words = competing_pieces();
  const auto made = without_prefix(words);
  for (const std::string text : {"<s>", "</s>", "<ab>", "<unk>", "abcabc", "<0x41>"})
    for (const auto id : made->encode(text, false)) {
      INFO(text);
      CHECK_FALSE(made->text()->is_control(id));
    }
  CHECK(made->encode("<s>a</s>", true) == std::vector<token_id>{1, made->encode("a", false).front(), 2});
  // User-defined ones always.
  CHECK(made->encode("<b>", false).size() == 1);
  CHECK(made->encode("a  \nb", false).size() == 3);
}

TEST_CASE("what is no piece becomes its bytes, and a space is what the vocabulary writes for it") {
  const auto words = competing_pieces();
  const auto made = without_prefix(words);
  constexpr auto byte = [](unsigned value) { return tiny_pieces::first_byte + value; };
  CHECK(made->encode("z", false) == std::vector<token_id>{byte('z')});
  CHECK(made->encode("\xE2\x82\xAC", false) == std::vector<token_id>{byte(0xE2), byte(0x82), byte(0xAC)});
  CHECK(made->encode("\xE2\x96\x81", false) == std::vector<token_id>{byte(0xE2), byte(0x96), byte(0x81)});
  const auto space = made->encode(" ", false);
  REQUIRE(space.size() == 1);
  CHECK(words.tokens[space[0]] == "\xE2\x96\x81");
  CHECK(made->text()->bytes(space[0]) == " ");
  const auto prefixed = load(words.write())->encode("ab", false);
  REQUIRE(prefixed.size() == 1);
  CHECK(words.tokens[prefixed[0]]
        == "\xE2\x96\x81"
           "ab");
}

TEST_CASE("a stream of tokens never shows half a character") {
  std::mt19937 random(24);
  const auto made = without_prefix(competing_pieces());
  for (int i = 0; i < 500; ++i) {
    const auto text = random_text(random, 40);
    answer_text shown(made->text(), {});
    std::string whole;
    for (const auto id : made->encode(text, false)) {
      const auto part = shown.push(id);
      REQUIRE(utf8::valid(part));
      whole += part;
    }
    whole += shown.finish();
    REQUIRE(whole == text);
  }
}

TEST_CASE("a text of a quarter of a megabyte does not take time in proportion to its square") {
  const auto made = without_prefix(competing_pieces());
  const std::string text(std::size_t{1} << 18, 'a');
  CHECK(made->encode(text, true).size() == text.size() / 4);
  CHECK(made->encode(std::string(std::size_t{1} << 18, '\xFF'), true).size() == std::size_t{1} << 18);
}

TEST_CASE("the beginning is wanted unless the file says otherwise") {
  const auto words = competing_pieces();
  CHECK(load(words.write())->begin_token() == 1U);
  CHECK_FALSE(load(words.write().add("tokenizer.ggml.add_bos_token", false))->begin_token().has_value());
  CHECK(load(words.write())->text()->is_end(2));
}

TEST_CASE("the digest names pieces, scores and flags") {
  auto words = competing_pieces();
  const auto first = load(words.write())->digest();
  CHECK(first.size() == 32);
  CHECK(load(words.write())->digest() == first);
  CHECK(without_prefix(words)->digest() != first);
  words.scores.back() += 1;
  CHECK(load(words.write())->digest() != first);
}

TEST_CASE("metadata of pieces that does not fit is named") {
  const auto refuses = [](const gguf::writer& from, errc code, const std::string& part) {
    const auto loaded = tokenizer::load(*made_file(from.finish()));
    REQUIRE_FALSE(loaded.has_value());
    INFO(loaded.error().message);
    CHECK(loaded.error().code == code);
    CHECK(loaded.error().message.find(part) != std::string::npos);
  };
  auto words = competing_pieces();
  words.scores.pop_back();
  refuses(words.write(), errc::corrupt, "tokenizer.ggml.scores");
  words = competing_pieces();
  words.scores[300 - 40] = std::numeric_limits<float>::quiet_NaN();
  refuses(words.write(), errc::corrupt, "no number");
  words = competing_pieces();
  words.tokens[tiny_pieces::first_byte] = "<0xG0>";
  refuses(words.write(), errc::corrupt, "<0x0A>");
  words = competing_pieces();
  words.types[tiny_pieces::first_byte + 200] = 5;
  refuses(words.write(), errc::corrupt, "the byte 200");
  words = competing_pieces();
  words.types[0] = 9;
  refuses(words.write(), errc::corrupt, "token 0");
  const auto good = competing_pieces();
  refuses(good.write().add("tokenizer.ggml.remove_extra_whitespaces", true), errc::unsupported,
    "remove_extra_whitespaces");
  refuses(good.write().add("tokenizer.ggml.add_space_prefix", "yes"), errc::corrupt, "add_space_prefix");
}
