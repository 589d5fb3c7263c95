#include "actors/tokenizer/tokenizer.hpp"
#include "tests/support/tiny_vocabulary.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

using namespace godwit;

namespace {

/// A vocabulary in which merges compete, overlap and build on each other.
tiny_vocabulary merging() {
  tiny_vocabulary made;
  for (const auto& [left, right] : std::vector<std::pair<std::string, std::string>>{{"a", "b"}, {"b", "c"},
         {"a", "a"}, {"aa", "aa"}, {"ab", "c"}, {"c", "ab"}, {"\xC3", "\xA9"}, {" ", "a"}, {"aaaa", "aaaa"}})
    made.add_merge(left, right);
  return made;
}

std::shared_ptr<const tokenizer> load(const tiny_vocabulary& words) {
  return tokenizer::load(*made_file(words.write().finish())).value();
}

/// Byte pair encoding as its definition says: again and again, the leftmost pair of the lowest rank.
std::vector<std::string> merge_by_definition(const tiny_vocabulary& words, const std::string& word) {
  std::map<std::string, std::size_t> ranks;
  for (std::size_t i = 0; i < words.merges.size(); ++i)
    ranks.emplace(words.merges[i], i);
  std::vector<std::string> parts;
  for (const char byte : word)
    parts.push_back(bytes_to_alphabet(std::string_view(&byte, 1)));
  for (;;) {
    std::size_t best = words.merges.size();
    std::size_t at = 0;
    for (std::size_t i = 0; i + 1 < parts.size(); ++i)
      if (const auto found = ranks.find(parts[i] + " " + parts[i + 1]);
          found != ranks.end() && found->second < best) {
        best = found->second;
        at = i;
      }
    if (best == words.merges.size())
      return parts;
    parts[at] += parts[at + 1];
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
}

} // namespace

TEST_CASE("words merge as the definition of byte pair encoding says") {
  const auto words = merging();
  const auto made = load(words);
  std::mt19937 random(11);
  for (int i = 0; i < 2000; ++i) {
    std::string word;
    for (auto left = random() % 40 + 1; left > 0; --left)
      word.push_back("aabc"[random() % 4]);
    std::vector<std::string> parts;
    for (const auto id : made->encode(word, true))
      parts.push_back(words.tokens[id]);
    INFO(word);
    REQUIRE(parts == merge_by_definition(words, word));
  }
}

TEST_CASE("random bytes come back from their tokens for every pre-tokenizer") {
  std::mt19937 random(12);
  for (const auto* pre : {"default", "gpt-2", "smollm", "llama-bpe", "qwen2"}) {
    auto words = merging();
    words.pre = pre;
    const auto special = words.add("<|x|>", 3);
    words.add(" two words ", 4);
    auto writer = words.write();
    const auto made =
      tokenizer::load(*made_file(writer.add("tokenizer.ggml.bos_token_id", special).finish())).value();
    for (int i = 0; i < 300; ++i) {
      std::string text;
      for (auto left = random() % 200; left > 0; --left)
        switch (random() % 6) {
        case 0:
          text.push_back(static_cast<char>(random()));
          break;
        case 1:
          text += "\xC3\xA9";
          break;
        case 2:
          text += "<|x|>";
          break;
        default:
          text.push_back("aabc 1\n\xC3\xA9"[random() % 9]);
        }
      REQUIRE(made->decode(made->encode(text, true), true) == text);
      REQUIRE(made->decode(made->encode(text, false), false) == text);
    }
  }
}

TEST_CASE("a word of a quarter of a megabyte does not take time in proportion to its square") {
  const auto made = load(merging());
  const std::string text(std::size_t{1} << 18, 'a');
  const auto ids = made->encode(text, true);
  CHECK(ids.size() == text.size() / 8);
  CHECK(made->decode(ids, true) == text);
  const std::string bad(std::size_t{1} << 18, '\xFF');
  CHECK(made->encode(bad, true).size() == bad.size());
}

TEST_CASE("bytes that are not UTF-8 are tokens of their own") {
  const auto made = load(merging());
  // A character cut short, then letters that merge, then a character that does.
  CHECK(made->encode("\xC3"
                     "ab\xC3\xA9",
          true)
        == std::vector<token_id>{0xC3, 256, 262});
  CHECK(made->encode("\xED\xA0\x80", true) == std::vector<token_id>{0xED, 0xA0, 0x80});
}
