#pragma once

#include "kernels/gguf/file.hpp"
#include "kernels/models/model.hpp"
#include "messages/result.hpp"

#include <cstdint>
#include <string>

namespace godwit {

/// What those need to know of a model who have others compute it.
struct model_facts {
  std::string fingerprint; ///< the same as of the loaded model
  std::uint32_t context = 0;
  std::uint32_t vocabulary = 0;
};

/// Reads a model file without loading its weights; every byte is read once for the fingerprint.
/// @param options as for model::load: what would compute it is part of the fingerprint
/// @returns as model::load, but for tensors, which are not checked
result<model_facts> read_model_facts(const gguf::file& file, const model_options& options);

} // namespace godwit
