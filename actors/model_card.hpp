#pragma once

#include "actors/tokenizer/token_text.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace godwit {

/// What sessions and the gateway know of the model that a node serves.
struct model_card {
  std::string id;            ///< as clients name it
  std::string fingerprint;   ///< of weights, quantisation, kernels, KV layout, tokenizer and template
  std::uint32_t context = 0; ///< tokens of prompt and answer together
  std::int64_t created = 0;  ///< seconds since 1970
  std::shared_ptr<const token_text> text;
};

} // namespace godwit
