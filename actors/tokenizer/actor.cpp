#include "actors/tokenizer/actor.hpp"

#include "actors/trace/spawn_traced.hpp"
#include "messages/actor_error.hpp"

#include <caf/actor_system.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

namespace godwit {

namespace {

/// What the plain class answered, as CAF sends it.
template <class Schema>
caf::result<letter<Schema>> reply(result<letter<Schema>> answer) {
  if (!answer)
    return to_caf_error(answer.error());
  return std::move(*answer);
}

struct actor_state : tokenizer_state {
  static inline const char* name = "tokenizer";
};

tokenizer_actor::behavior_type behavior(
  tokenizer_actor::stateful_pointer<actor_state> self, tokenizer_state state) {
  static_cast<tokenizer_state&>(self->state) = std::move(state);
  return {
    [self](const letter<schema::EncodeRequest>& mail) { return reply(self->state.encode(mail.read())); },
    [self](const letter<schema::DecodeRequest>& mail) { return reply(self->state.decode(mail.read())); },
    [self](const letter<schema::RenderRequest>& mail) { return reply(self->state.render(mail.read())); },
    [self](status_atom) { return self->state.status(); },
    [self](drain_atom) {
      self->state.drain();
      return letter<schema::Drained>();
    },
    [self](stop_atom) { self->quit(); },
  };
}

} // namespace

tokenizer_actor spawn_tokenizer(caf::actor_system& system, std::shared_ptr<const tokenizer> words,
  std::shared_ptr<const chat_template> chat, tokenizer_limits most) {
  return spawn_traced(system, behavior, tokenizer_state(std::move(words), std::move(chat), most));
}

} // namespace godwit
