#include "kernels/models/families.hpp"
#include "kernels/models/rope_metadata.hpp"

namespace godwit {

/// Qwen3 (Yang et al.): Llama with a norm of each head's query and key before they turn, and heads whose size
/// does not follow from the embedding's.
void describe_qwen3(metadata& from, transformer_form& form) {
  form.pairs = ops::rope_pairs::halves;
  form.head_norms = true;
  add_rope(from, form, 10000);
}

} // namespace godwit
