#include "kernels/models/families.hpp"
#include "kernels/models/rope_metadata.hpp"

namespace godwit {

/// Touvron et al., LLaMA, with the grouped queries of Llama 2 and the rotary positions of Llama 3; Mistral
/// and SmolLM are written the same way. Converters lay the weights of queries and keys so that neighbouring
/// elements turn together.
void describe_llama(metadata& from, transformer_form& form) {
  form.pairs = ops::rope_pairs::neighbours;
  add_rope(from, form, 10000);
}

} // namespace godwit
