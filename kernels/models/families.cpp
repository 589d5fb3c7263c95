#include "kernels/models/families.hpp"

#include <algorithm>
#include <array>

namespace godwit {

std::span<const model_family> model_families() {
  static constexpr auto table = std::to_array<model_family>({
    {"llama", &describe_llama},
    {"qwen2", &describe_qwen2},
    {"qwen3", &describe_qwen3},
    {"gemma3", &describe_gemma3},
  });
  return table;
}

result<transformer_form> form_of(const gguf::file& file) {
  const auto architecture = file.string_value("general.architecture");
  if (!architecture) {
    return fail(architecture);
  }
  const auto families = model_families();
  const auto family = std::ranges::find(families, *architecture, &model_family::architecture);
  if (family == families.end()) {
    std::string known;
    for (const auto& each : families) {
      known += (known.empty() ? "" : ", ") + std::string{each.architecture};
    }
    return fail(errc::unsupported, "no graph for the architecture \""
                                     + std::string{architecture->substr(0, 64)}
                                     + "\"; there is one for: " + known);
  }
  metadata from{file, family->architecture};
  transformer_form form = read_common(from, family->architecture);
  family->describe(from, form);
  if (const auto known = from.check(); !known) {
    return fail(known);
  }
  return form;
}

} // namespace godwit
