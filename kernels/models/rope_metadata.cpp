#include "kernels/models/rope_metadata.hpp"

#include "kernels/ops/rope.hpp"

#include <cmath>
#include <cstring>

namespace godwit {

namespace {

constexpr std::string_view factors_name = "rope_freqs.weight";

std::uint32_t keep(transformer_form& form, ops::rope made, std::string name) {
  form.ropes.push_back(std::move(made));
  form.rope_names.push_back(std::move(name));
  return static_cast<std::uint32_t>(form.ropes.size() - 1);
}

/// By how much positions are compressed. Old files have it as "rope.scale_linear".
double read_factor(metadata& from) {
  constexpr double most = 1e6;
  const double old = from.real_or("rope.scale_linear", 1, most, 1);
  return from.real_or("rope.scaling.factor", 1, most, old);
}

ops::yarn_scaling read_yarn(metadata& from, const transformer_form& form, double factor) {
  ops::yarn_scaling made{.factor = factor};
  made.original = from.number_or("rope.scaling.original_context_length", 1, 1U << 20U, form.context);
  made.attention = from.real_or("rope.scaling.yarn_attn_factor", 1e-3, 1e3, 1);
  made.beta_fast = from.real_or("rope.scaling.yarn_beta_fast", 1e-3, 1e6, made.beta_fast);
  made.beta_slow = from.real_or("rope.scaling.yarn_beta_slow", 1e-3, 1e6, made.beta_slow);
  if (made.beta_fast <= made.beta_slow) {
    from.refuse(errc::corrupt,
      from.key("rope.scaling.yarn_beta_fast") + " is not above " + from.key("rope.scaling.yarn_beta_slow"));
  }
  if (from.real_or("rope.scaling.yarn_ext_factor", -1e6, 1e6, 1) != 1) {
    from.refuse(errc::unsupported, "the feature " + from.key("rope.scaling.yarn_ext_factor"));
  }
  return made;
}

/// Divides each frequency by its number in the file.
void divide_by_factors(metadata& from, transformer_form& form, ops::rope& made) {
  const auto* tensor = from.file().find_tensor(factors_name);
  if (tensor == nullptr) {
    return;
  }
  form.rope_factors = true;
  if (tensor->type != gguf::tensor_type::f32 || tensor->shape[0] != made.frequencies.size()
      || tensor->rows() != 1) {
    from.refuse(errc::corrupt, "the tensor rope_freqs.weight does not hold a number for each of the "
                                 + std::to_string(made.frequencies.size()) + " pairs that turn");
    return;
  }
  for (std::size_t i = 0; i < made.frequencies.size(); ++i) {
    float factor = 0;
    std::memcpy(&factor, tensor->data.data() + i * sizeof factor, sizeof factor);
    if (!(factor >= 1e-3F && factor <= 1e6F)) {
      from.refuse(errc::corrupt, "the tensor rope_freqs.weight holds a number outside of 0.001 to 1000000");
      return;
    }
    made.frequencies[i] /= static_cast<double>(factor);
  }
}

} // namespace

std::uint32_t add_plain_rope(transformer_form& form, double base) {
  return keep(form, {ops::rope_frequencies(form.rotary, base)}, "base " + short_text(base));
}

std::uint32_t add_rope(metadata& from, transformer_form& form, double default_base) {
  const double base = from.real_or("rope.freq_base", least_rope_base, most_rope_base, default_base);
  const double factor = read_factor(from);
  // Without a type llama.cpp takes a factor as linear.
  const std::string type = from.text_or("rope.scaling.type", factor == 1 ? "none" : "linear");
  from.ignore("rope.scaling.finetuned"); // tells how the model came to be
  std::string name = "base " + short_text(base);
  ops::rope made;
  if (type == "yarn") {
    made = ops::yarn_rope(form.rotary, base, read_yarn(from, form, factor));
    name += ", YaRN by " + short_text(factor);
  } else if (type == "linear" || type == "none") {
    made.frequencies = ops::rope_frequencies(form.rotary, base);
    from.ignore("rope.scaling.original_context_length"); // both work without it
    if (type == "linear") {
      for (double& frequency : made.frequencies) {
        frequency /= factor;
      }
      name += ", linear by " + short_text(factor);
    }
  } else {
    made.frequencies = ops::rope_frequencies(form.rotary, base);
    from.refuse(errc::unsupported,
      "rotary positions scaled by " + from.key("rope.scaling.type") + " = \"" + type + '"');
  }
  made.magnitude *= from.real_or("rope.scaling.attn_factor", 1e-3, 1e3, 1);
  divide_by_factors(from, form, made);
  name += form.rope_factors ? ", divided by rope_freqs.weight" : "";
  return keep(form, std::move(made), std::move(name));
}

} // namespace godwit
