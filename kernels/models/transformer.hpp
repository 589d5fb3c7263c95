#pragma once

#include "kernels/models/model.hpp"
#include "kernels/models/transformer_form.hpp"

namespace godwit {

/// Loads the weights of a form and makes the graph over them.
/// @param options checked, with an implementation of the dispatch table and a number of threads
/// @returns as `model::load`
result<std::unique_ptr<model>> load_transformer(
  std::shared_ptr<const gguf::file> file, const transformer_form& form, const model_options& options);

} // namespace godwit
