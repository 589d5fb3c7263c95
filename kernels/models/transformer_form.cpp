#include "kernels/models/transformer_form.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace godwit {

std::string transformer_form::to_string() const {
  std::string text = architecture + ' ';
  const auto whole = [&](std::uint64_t number) { text += std::to_string(number) + ' '; };
  const auto real = [&](double number) { whole(std::bit_cast<std::uint64_t>(number)); }; // by its bits
  for (const std::uint32_t number :
    {layers, context, vocabulary, embedding, feed_forward, heads, kv_heads, head_dim, rotary}) {
    whole(number);
  }
  for (const double number : {norm_epsilon, embedding_scale, attention_scale, score_cap, logit_cap}) {
    real(number);
  }
  whole(static_cast<std::uint64_t>(pairs));
  whole(static_cast<std::uint64_t>(gate));
  for (const bool part : {attention_biases, head_norms, output_norms}) {
    whole(part ? 1 : 0);
  }
  for (const auto& rope : ropes) {
    real(rope.magnitude);
    std::ranges::for_each(rope.frequencies, real);
  }
  for (const auto& layer : attention) {
    whole(layer.rope);
    whole(layer.window);
  }
  return text;
}

std::vector<std::pair<std::string, std::string>> transformer_form::facts() const {
  std::vector<std::pair<std::string, std::string>> made;
  made.emplace_back("head", std::to_string(head_dim) + " elements, " + std::to_string(rotary) + " turned in "
                              + (pairs == ops::rope_pairs::halves ? "halves" : "neighbouring pairs"));
  std::string positions;
  for (const auto& name : rope_names) {
    positions += (positions.empty() ? "" : "; ") + name;
  }
  made.emplace_back("positions", positions);
  const auto windowed = std::ranges::count_if(attention, [](const auto& layer) { return layer.window != 0; });
  if (windowed != 0) {
    const auto found = std::ranges::find_if(attention, [](const auto& layer) { return layer.window != 0; });
    made.emplace_back("windows", std::to_string(windowed) + " of " + std::to_string(layers)
                                   + " layers see the last " + std::to_string(found->window) + " positions");
  }
  std::string parts = gate == ops::activation::silu ? "SiLU gate" : "GELU gate";
  parts += attention_biases ? ", biases of queries, keys and values" : "";
  parts += head_norms ? ", norms of queries and keys" : "";
  parts += output_norms ? ", norms behind blocks" : "";
  parts += embedding_scale != 1 ? ", scaled embeddings" : "";
  parts += score_cap != 0 ? ", scores capped at " + short_text(score_cap) : "";
  parts += logit_cap != 0 ? ", logits capped at " + short_text(logit_cap) : "";
  made.emplace_back("parts", parts);
  return made;
}

transformer_form read_common(metadata& from, std::string_view architecture) {
  transformer_form form;
  form.architecture = architecture;
  // Bounds far above any model that fits a machine, so that products of two of these fit 64 bits with room.
  form.layers = from.number("block_count", 1, 1024);
  form.context = from.number("context_length", 1, 1U << 20U);
  form.embedding = from.number("embedding_length", 1, 1U << 17U);
  form.feed_forward = from.number("feed_forward_length", 1, 1U << 20U);
  form.heads = from.number("attention.head_count", 1, 1024);
  form.norm_epsilon = from.real("attention.layer_norm_rms_epsilon", 1e-12, 1);
  form.kv_heads = from.number_or("attention.head_count_kv", 1, form.heads, form.heads);
  if (form.heads % form.kv_heads != 0) {
    from.refuse(errc::corrupt,
      from.key("attention.head_count") + " is no multiple of " + from.key("attention.head_count_kv"));
  }
  const std::uint32_t share = form.embedding / form.heads;
  form.head_dim = from.number_or("attention.key_length", 2, 1024, share);
  if (from.number_or("attention.value_length", 2, 1024, share) != form.head_dim) {
    from.refuse(
      errc::unsupported, "values of another length than keys (" + from.key("attention.value_length") + ")");
  }
  if (form.head_dim < 2 || (!from.has("attention.key_length") && form.embedding % form.heads != 0)) {
    from.refuse(
      errc::corrupt, from.key("embedding_length") + " is no multiple of " + from.key("attention.head_count"));
  }
  form.rotary = from.number_or("rope.dimension_count", 2, std::max(2U, form.head_dim), form.head_dim);
  if (form.rotary % 2 != 0) {
    from.refuse(errc::corrupt, from.key("rope.dimension_count") + " is odd");
  }
  const auto* table = from.file().find_tensor("token_embd.weight");
  if (table == nullptr) {
    from.refuse(errc::corrupt, "the model file lacks the tensor token_embd.weight");
  }
  constexpr std::uint32_t most_tokens = 1U << 24U;
  const std::uint64_t rows = table == nullptr ? 1 : table->rows();
  form.vocabulary = from.number_or(
    "vocab_size", 1, most_tokens, static_cast<std::uint32_t>(std::min<std::uint64_t>(rows, most_tokens)));
  form.attention.resize(form.layers);
  form.attention_scale =
    from.real_or("attention.scale", 1e-6, 1e6, 1 / std::sqrt(static_cast<double>(form.head_dim)));
  from.ignore("tensor_data_layout"); // says where the file came from
  return form;
}

} // namespace godwit
