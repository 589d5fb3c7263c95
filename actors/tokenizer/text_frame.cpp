#include "actors/tokenizer/text_frame.hpp"

#include <utility>

namespace godwit {

result<text_frame> text_frame::load(const gguf::file& file, const std::shared_ptr<const token_table>& tokens,
  bool begins_otherwise, bool space_prefix_otherwise) {
  auto everywhere = special_tokens::make(tokens, false);
  if (!everywhere)
    return fail(everywhere);
  auto where_asked = special_tokens::make(tokens, true);
  if (!where_asked)
    return fail(where_asked);
  const auto begins = find_flag(file, "tokenizer.ggml.add_bos_token", begins_otherwise);
  if (!begins)
    return fail(begins);
  const auto space_prefix = find_flag(file, "tokenizer.ggml.add_space_prefix", space_prefix_otherwise);
  if (!space_prefix)
    return fail(space_prefix);
  const auto begin = find_token_id(file, "tokenizer.ggml.bos_token_id", tokens->size());
  if (!begin)
    return fail(begin);
  if (*begins && !*begin)
    return fail(errc::corrupt, "the model file wants a token at the beginning, but has no "
                               "\"tokenizer.ggml.bos_token_id\"");
  return text_frame{std::move(*everywhere), std::move(*where_asked), *space_prefix,
    *begins ? *begin : std::optional<token_id>()};
}

} // namespace godwit
