#include "actors/tokenizer/special_tokens.hpp"

#include <algorithm>
#include <string>

namespace godwit {

result<special_tokens> special_tokens::make(std::shared_ptr<const token_table> tokens, bool control) {
  special_tokens made(std::move(tokens));
  const auto& table = *made.tokens_;
  for (token_id id = 0; id < table.size(); ++id) {
    const auto kind = table.kind(id);
    const auto name = table.bytes(id);
    if (name.empty() || !(kind == token_kind::user_defined || (control && kind == token_kind::control)))
      continue;
    if (name.size() > longest_name)
      return fail(errc::corrupt, "the model file's \"tokenizer.ggml.tokens\" has at " + std::to_string(id)
                                   + " a special token of more than " + std::to_string(longest_name)
                                   + " bytes");
    made.by_name_.push_back(id);
    made.begins_name_[static_cast<std::uint8_t>(name[0])] = true;
  }
  std::ranges::stable_sort(made.by_name_, {}, [&](token_id id) { return table.bytes(id); });
  return made;
}

std::optional<special_tokens::place> special_tokens::find(std::string_view text, std::size_t from) const {
  for (; from < text.size(); ++from)
    if (begins_name_[static_cast<std::uint8_t>(text[from])])
      if (const auto found = longest_at(text, from))
        return found;
  return std::nullopt;
}

std::optional<special_tokens::place> special_tokens::longest_at(
  std::string_view text, std::size_t from) const {
  // The names that agree with the text so far, fewer with every byte; one that ends stands first among them.
  auto names = std::ranges::subrange(by_name_.begin(), by_name_.end());
  std::optional<place> found;
  for (std::size_t i = 0; from + i < text.size() && !names.empty(); ++i) {
    const auto byte_at = [&](token_id id) {
      const auto name = tokens_->bytes(id);
      return i < name.size() ? static_cast<std::uint8_t>(name[i]) : -1;
    };
    names = std::ranges::equal_range(names, static_cast<std::uint8_t>(text[from + i]), {}, byte_at);
    if (!names.empty() && tokens_->bytes(names.front()).size() == i + 1)
      found = place{from, i + 1, names.front()};
  }
  return found;
}

} // namespace godwit
