#pragma once

#include "kernels/models/transformer_form.hpp"

#include <span>
#include <string_view>

namespace godwit {

/// A family of models: what `general.architecture` calls it, and how its files say what it is made of.
struct model_family {
  std::string_view architecture;
  /// Adds to the common numbers what the family has of its own.
  void (*describe)(metadata& from, transformer_form& form);
};

// One function a file of this folder.
void describe_llama(metadata& from, transformer_form& form);
void describe_qwen2(metadata& from, transformer_form& form);
void describe_qwen3(metadata& from, transformer_form& form);
void describe_gemma3(metadata& from, transformer_form& form);

std::span<const model_family> model_families();

} // namespace godwit
