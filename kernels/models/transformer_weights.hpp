#pragma once

#include "kernels/models/transformer_form.hpp"
#include "kernels/ops/op_set.hpp"

#include <memory>
#include <vector>

namespace godwit {

/// The weights of one block; those of parts that the form does not have are nullptr.
struct block_weights {
  std::unique_ptr<ops::gain> attention_norm;
  std::unique_ptr<ops::matrix> attention_input; ///< queries, keys, values
  std::unique_ptr<ops::gain> query_bias;
  std::unique_ptr<ops::gain> key_bias;
  std::unique_ptr<ops::gain> value_bias;
  std::unique_ptr<ops::gain> query_norm;
  std::unique_ptr<ops::gain> key_norm;
  std::unique_ptr<ops::matrix> attention_output;
  std::unique_ptr<ops::gain> attention_output_norm;
  std::unique_ptr<ops::gain> feed_forward_norm;
  std::unique_ptr<ops::matrix> feed_forward_input; ///< gate, up
  std::unique_ptr<ops::matrix> feed_forward_output;
  std::unique_ptr<ops::gain> feed_forward_output_norm;

  ops::head_weights heads() const {
    return {query_bias.get(), key_bias.get(), value_bias.get(), query_norm.get(), key_norm.get()};
  }
};

struct transformer_weights {
  std::unique_ptr<ops::matrix> embedding;
  std::vector<block_weights> blocks;
  std::unique_ptr<ops::gain> output_norm;
  std::unique_ptr<ops::matrix> output; ///< none if it is the embedding
};

/// Loads all tensors of a form, by llama.cpp's names for them.
/// @returns `corrupt` naming a tensor that is missing or of another shape; `unsupported` naming one that the
/// form does not use, or the type that the ops cannot take
result<transformer_weights> load_weights(
  const gguf::file& file, const transformer_form& form, ops::op_set& ops);

} // namespace godwit
