#include "kernels/models/families.hpp"
#include "kernels/models/rope_metadata.hpp"

#include <cmath>

namespace godwit {

/// Gemma 3 (Gemma Team): norms before and behind attention and feed-forward, norms of heads, a GELU gate,
/// embeddings times the root of their width, and layers that see a window of positions, all but every sixth.
/// Converters add the 1 of Gemma's (1 + weight) to the weights of norms.
void describe_gemma3(metadata& from, transformer_form& form) {
  form.pairs = ops::rope_pairs::halves;
  form.head_norms = true;
  form.output_norms = true;
  form.gate = ops::activation::gelu_tanh;
  form.embedding_scale = std::sqrt(static_cast<double>(form.embedding));
  form.score_cap = from.real_or("attn_logit_softcapping", 0, 1e6, 0);
  form.logit_cap = from.real_or("final_logit_softcapping", 0, 1e6, 0);
  // The 27B model alone, known by its layers, scales queries by the embedding's share of a head; files do not
  // say it.
  if (form.layers == 62 && !from.has("attention.scale")) {
    form.attention_scale = 1 / std::sqrt(static_cast<double>(form.embedding) / form.heads);
  }

  // Layers with a window have positions of their own, which no scaling touches.
  const std::uint32_t global = add_rope(from, form, 1'000'000);
  const std::uint32_t local =
    add_plain_rope(form, from.real_or("rope.freq_base_swa", least_rope_base, most_rope_base, 10000));
  const std::uint32_t window = from.number("attention.sliding_window", 1, 1U << 20U);
  const std::uint32_t pattern = from.number_or("attention.sliding_window_pattern", 1, 1024, 6);
  for (std::uint32_t i = 0; i < form.layers; ++i) {
    const bool windowed = (i + 1) % pattern != 0;
    form.attention[i] = {.rope = windowed ? local : global, .window = windowed ? window : 0};
  }
}

} // namespace godwit
