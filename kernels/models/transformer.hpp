#pragma once

#include "kernels/models/model.hpp"
#include "kernels/models/transformer_form.hpp"

namespace godwit {

/// Loads the weights of a form and makes the graph over them.
/// @param implementation of the dispatch table
/// @returns as `model::load`
result<std::unique_ptr<model>> load_transformer(std::shared_ptr<const gguf::file> file,
  const transformer_form& form, const std::string& implementation, std::uint32_t threads,
  std::uint32_t max_rows);

} // namespace godwit
