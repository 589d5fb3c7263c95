#include "tools/bench/model_work.hpp"

namespace godwit::bench {

model_work work_of(const gguf::file& file, const model_shape& shape) {
  model_work made;
  const bool tied = file.find_tensor("output.weight") == nullptr;
  for (const auto& tensor : file.tensors()) {
    if (tensor.shape.size() != 2) {
      continue;
    }
    const auto numbers = static_cast<double>(tensor.rows()) * static_cast<double>(tensor.columns());
    if (tensor.name == (tied ? "token_embd.weight" : "output.weight")) {
      made.head_weights = numbers;
    } else if (tensor.name.starts_with("blk.")) {
      made.layer_weights += numbers;
    } else {
      continue; // a table of which a step reads single rows
    }
    made.weight_bytes += static_cast<double>(tensor.data.size());
  }
  const double per_head = 4.0 * shape.kv.head_dim * shape.kv.layers;
  if (file.find(shape.architecture + ".attention.sliding_window") == nullptr) {
    made.attention_operations = per_head * shape.heads;
    made.position_bytes = static_cast<double>(shape.kv.block_bytes()) / page_tokens;
  }
  return made;
}

} // namespace godwit::bench
