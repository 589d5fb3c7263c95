#pragma once

#include "actors/tokenizer/tokenizer_state.hpp"
#include "messages/catalogue.hpp"

namespace caf {
class actor_system;
}

namespace godwit {

/// Starts the actor that answers for one model's vocabulary and chat template. Its work blocks: it runs on a
/// thread of CAF's pool and answers each request before the next.
tokenizer_actor spawn_tokenizer(caf::actor_system& system, std::shared_ptr<const tokenizer> words,
  std::shared_ptr<const chat_template> chat, tokenizer_limits most = {});

} // namespace godwit
