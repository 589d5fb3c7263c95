// Bytes from outside as text: they come back from their tokens, whatever they are. The first byte chooses the
// vocabulary and whether special tokens are recognised.
#include "actors/tokenizer/tokenizer.hpp"
#include "messages/check.hpp"
#include "tests/support/tiny_vocabulary.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using namespace godwit;

constexpr std::array pre_tokenizers{"default", "gpt-2", "smollm", "llama-bpe", "qwen2"};

/// A vocabulary of all bytes in which merges compete, with special tokens that begin alike.
std::shared_ptr<const tokenizer> load(std::string pre) {
  tiny_vocabulary words;
  words.pre = std::move(pre);
  for (const auto& [left, right] : std::vector<std::pair<std::string, std::string>>{{"a", "b"}, {"b", "a"},
         {"a", "a"}, {"aa", "aa"}, {"ab", "a"}, {"\xC3", "\xA9"}, {" ", "a"}, {"\n", "\n"}, {"aaaa", "aaaa"}})
    words.add_merge(left, right);
  const auto begin = words.add("<|", 3);
  words.add("<|a|>", 3);
  words.add("<|a", 4);
  const auto bytes = words.write().add("tokenizer.ggml.bos_token_id", begin).finish();
  return tokenizer::load(*gguf::file::parse(bytes).value()).value();
}

/// Pieces that compete, with or without a space in front of each text.
std::shared_ptr<const tokenizer> load_pieces(bool space_prefix) {
  const auto bytes = competing_pieces().write().add("tokenizer.ggml.add_space_prefix", space_prefix).finish();
  return tokenizer::load(*gguf::file::parse(bytes).value()).value();
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto all = [] {
    std::vector<std::shared_ptr<const tokenizer>> made;
    for (const auto* pre : pre_tokenizers)
      made.push_back(load(pre));
    made.push_back(load_pieces(false));
    made.push_back(load_pieces(true));
    return made;
  }();
  if (size == 0)
    return 0;
  const auto& words = *all[data[0] / 2 % all.size()];
  const bool special = data[0] % 2 == 1;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);

  const auto ids = words.encode(text, special);
  GODWIT_CHECK(ids.size() <= text.size() * 2 + 1); // a space in front of each section at most
  for (const auto id : ids) {
    GODWIT_CHECK(id < words.text()->size());
    GODWIT_CHECK(special || !words.text()->is_control(id));
  }
  GODWIT_CHECK(words.decode(ids, true) == text);
  return 0;
}
