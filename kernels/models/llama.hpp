#pragma once

#include "kernels/models/model.hpp"

namespace godwit {

/// Loads the architecture "llama": pre-norm blocks of grouped-query attention with rotary positions (pairs of
/// neighbouring elements, as GGUF converters lay them) and a gated feed-forward layer (Touvron et al.,
/// LLaMA). Scaled rotary positions, experts and biases are refused by name.
/// @param implementation of the dispatch table
result<std::unique_ptr<model>> load_llama(std::shared_ptr<const gguf::file> file,
  const std::string& implementation, std::uint32_t threads, std::uint32_t max_rows);

} // namespace godwit
