#include "actors/tokenizer/merge_table.hpp"

#include "actors/tokenizer/byte_alphabet.hpp"

#include <optional>
#include <string>

namespace godwit {

namespace {

constexpr std::string_view merges_key = "tokenizer.ggml.merges";

std::optional<token_id> find_written(const token_table& tokens, std::string_view text) {
  const auto bytes = alphabet_to_bytes(text);
  return bytes ? tokens.find(*bytes) : std::nullopt;
}

} // namespace

result<merge_table> merge_table::load(const gguf::file& file, const token_table& tokens) {
  const auto lines = file.strings(merges_key);
  if (!lines)
    return fail(lines);
  merge_table made;
  made.merges_.reserve(lines->size());
  for (std::size_t i = 0; i < lines->size(); ++i) {
    const auto line = (*lines)[i];
    const auto space = line.find(' ');
    if (space == std::string_view::npos)
      return fail(errc::corrupt,
        "the model file's \"tokenizer.ggml.merges\" has at " + std::to_string(i) + " no pair of tokens");
    const auto left = find_written(tokens, line.substr(0, space));
    const auto right = find_written(tokens, line.substr(space + 1));
    const auto both = left && right
                        ? tokens.find(std::string(tokens.bytes(*left)).append(tokens.bytes(*right)))
                        : std::nullopt;
    if (!both)
      return fail(errc::corrupt, "the model file's \"tokenizer.ggml.merges\" has at " + std::to_string(i)
                                   + " a pair that is not made of tokens, or does not make one");
    // A pair that occurs again keeps its first rank.
    made.merges_.try_emplace(key(*left, *right), merge{static_cast<std::uint32_t>(i), *both});
  }
  return made;
}

} // namespace godwit
