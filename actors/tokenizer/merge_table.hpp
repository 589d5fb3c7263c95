#pragma once

#include "actors/tokenizer/token_table.hpp"
#include "kernels/gguf/file.hpp"
#include "messages/ids.hpp"
#include "messages/result.hpp"

#include <cstdint>
#include <unordered_map>

namespace godwit {

/// Two neighbouring tokens that may become one.
struct merge {
  std::uint32_t rank = 0; ///< lower goes first
  token_id made = 0;
};

/// `tokenizer.ggml.merges` over token ids.
class merge_table {
 public:
  /// @returns `corrupt` naming the first merge that is not two known tokens of kind text which make a third
  static result<merge_table> load(const gguf::file& file, const token_table& tokens);

  /// The merge of a pair, or nullptr.
  const merge* find(token_id left, token_id right) const {
    const auto found = merges_.find(key(left, right));
    return found != merges_.end() ? &found->second : nullptr;
  }

 private:
  static std::uint64_t key(token_id left, token_id right) { return (std::uint64_t{left} << 32) | right; }

  std::unordered_map<std::uint64_t, merge, byte_hash> merges_;
};

} // namespace godwit
