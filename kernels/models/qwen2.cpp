#include "kernels/models/families.hpp"
#include "kernels/models/rope_metadata.hpp"

namespace godwit {

/// Qwen2 and Qwen2.5 (Yang et al.): Llama with biases of queries, keys and values.
void describe_qwen2(metadata& from, transformer_form& form) {
  form.pairs = ops::rope_pairs::halves;
  form.attention_biases = true;
  add_rope(from, form, 10000);
}

} // namespace godwit
