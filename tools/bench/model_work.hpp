#pragma once

#include "kernels/gguf/file.hpp"
#include "kernels/models/model.hpp"

#include <cstdint>

namespace godwit::bench {

/// What a model has to compute and to read, whatever computes it.
struct model_work {
  double layer_weights = 0;        ///< numbers in the matrices of all layers
  double head_weights = 0;         ///< in the matrix that gives logits
  double weight_bytes = 0;         ///< of both, as in the file
  double attention_operations = 0; ///< of one row for one position it sees, all layers
  double position_bytes = 0;       ///< keys and values of one position, all layers

  /// Multiplications and additions for a prompt with logits for its last token. Attention is left out where
  /// layers see a window only.
  double prefill_operations(double tokens) const {
    return 2 * layer_weights * tokens + 2 * head_weights + attention_operations * tokens * (tokens + 1) / 2;
  }
  /// Bytes that one step of `batch` streams reads, each with `context` positions behind it.
  double decode_bytes(double context, double batch) const {
    return weight_bytes + batch * context * position_bytes;
  }
};

model_work work_of(const gguf::file& file, const model_shape& shape);

} // namespace godwit::bench
