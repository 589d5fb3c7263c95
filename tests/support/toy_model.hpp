#pragma once

#include "actors/tokenizer/token_text.hpp"
#include "messages/ids.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace godwit {

/// A vocabulary that fits on a page: the 256 bytes, two control tokens as ChatML has them, and some words.
class toy_text final : public token_text {
 public:
  static constexpr token_id start = 256;
  static constexpr token_id end = 257;
  static constexpr token_id first_word = 258;

  toy_text() {
    for (int byte = 0; byte < 256; ++byte)
      texts_.emplace_back(1, static_cast<char>(byte));
    for (const auto* text : {"<|im_start|>", "<|im_end|>", " the", " bird", " flies", " sea", " STOP",
           "system", "user", "assistant", "\n", "Hello", " \u00e9\u20ac", "S", "TO", "P now"})
      texts_.emplace_back(text);
  }

  token_id size() const override { return static_cast<token_id>(texts_.size()); }
  std::string_view bytes(token_id id) const override { return texts_.at(id); }
  bool is_control(token_id id) const override { return id == start || id == end; }
  bool is_end(token_id id) const override { return id == end; }

  /// Longest match; the names of control tokens in the text are those tokens.
  std::vector<token_id> encode(std::string_view text) const {
    std::vector<token_id> ids;
    while (!text.empty()) {
      token_id best = static_cast<unsigned char>(text.front());
      for (token_id id = start; id < size(); ++id)
        if (text.starts_with(texts_[id]) && texts_[id].size() > texts_[best].size())
          best = id;
      ids.push_back(best);
      text.remove_prefix(texts_[best].size());
    }
    return ids;
  }

  std::string decode(std::span<const token_id> ids) const {
    std::string text;
    for (const auto id : ids)
      text += bytes(id);
    return text;
  }

 private:
  std::vector<std::string> texts_;
};

/// ChatML, with the generation prompt.
inline std::string toy_chat(const std::vector<std::pair<std::string, std::string>>& messages) {
  std::string text;
  for (const auto& [role, content] : messages)
    text += "<|im_start|>" + role + "\n" + content + "<|im_end|>\n";
  return text + "<|im_start|>assistant\n";
}

/// The token that the toy model has at the end of a sequence: a function of seed, position and the tokens
/// before it, as a real one's is.
inline token_id toy_next(std::uint64_t seed, std::span<const token_id> tokens) {
  std::uint64_t state = seed * 0x9e3779b97f4a7c15U + tokens.size();
  for (const auto token : tokens)
    state = (state ^ token) * 0xbf58476d1ce4e5b9U;
  state ^= state >> 29;
  const auto choice = state % 40;
  if (choice == 0)
    return toy_text::end;
  if (choice < 6) // parts of characters, which may or may not become whole
    return static_cast<token_id>(std::string_view("\xe2\x82\xac\xc3\xa9")[choice - 1] & 0xff);
  const token_id words = 16 - 2;
  return toy_text::first_word + static_cast<token_id>(state / 40 % words);
}

} // namespace godwit
