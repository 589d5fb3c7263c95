#pragma once

#include "kernels/gguf/file.hpp"
#include "kernels/models/metadata.hpp"
#include "kernels/ops/op_set.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace godwit {

/// What distinguishes one decoder-only transformer from another: pre-norm blocks of grouped-query attention
/// with rotary positions and a gated feed-forward layer. A family's file fills it from a model file's
/// metadata; transformer.cpp computes it.
struct transformer_form {
  std::string architecture; ///< as in the file: "llama"
  std::uint32_t layers = 0;
  std::uint32_t context = 0; ///< positions
  std::uint32_t vocabulary = 0;
  std::uint32_t embedding = 0;
  std::uint32_t feed_forward = 0;
  std::uint32_t heads = 0;
  std::uint32_t kv_heads = 0;
  std::uint32_t head_dim = 0;
  double norm_epsilon = 0;

  // Positions.
  std::uint32_t rotary = 0; ///< leading elements of a head that carry a position
  ops::rope_pairs pairs = ops::rope_pairs::neighbours;
  std::vector<ops::rope> ropes;
  std::vector<std::string> rope_names;         ///< [ropes], for people: "base 10000, yarn by 4"
  std::vector<ops::layer_attention> attention; ///< [layers]
  bool rope_factors = false;                   ///< read from the tensor rope_freqs.weight

  // Parts that some families have and others have not.
  bool attention_biases = false; ///< of queries, keys and values
  bool head_norms = false;       ///< of each head's query and key
  bool output_norms = false;     ///< of what attention and feed-forward add to the residual stream
  ops::activation gate = ops::activation::silu;
  double embedding_scale = 1; ///< of token embeddings
  double attention_scale = 0; ///< of scores
  double score_cap = 0;       ///< scores become cap * tanh(score / cap), unless it is 0
  double logit_cap = 0;       ///< the same for logits

  /// All that decides a bit of the results, for the fingerprint.
  std::string to_string() const;

  /// What a person wants to know, each fact with its name.
  std::vector<std::pair<std::string, std::string>> facts() const;
};

/// The form that a model file's metadata describes.
/// @returns `unsupported` naming the architecture or feature; `corrupt` naming the key
result<transformer_form> form_of(const gguf::file& file);

/// The numbers that all families have, under the same keys; attention sees all positions, and no part that
/// only some families have is there. Leaves the rotary positions to the family.
transformer_form read_common(metadata& from, std::string_view architecture);

} // namespace godwit
