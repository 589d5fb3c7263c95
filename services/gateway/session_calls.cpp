#include "services/gateway/session_calls.hpp"

#include "messages/actor_error.hpp"
#include "services/api/error_response.hpp"
#include "services/api/header_fields.hpp"
#include "services/api/letters.hpp"
#include "services/api/session_json.hpp"
#include "services/api/session_requests.hpp"
#include "services/gateway/call_actor.hpp"
#include "services/gateway/owner_search.hpp"
#include "services/gateway/stream_call.hpp"

#include <fmt/format.h>

#include <memory>
#include <utility>

namespace godwit {

namespace {

/// Seeds that are drawn stay exact in clients whose numbers are doubles.
constexpr std::uint64_t drawn_seed_mask = (std::uint64_t{1} << 53) - 1;

/// What may be asked twice when the session turns out to have another owner.
enum class asking {
  once,    ///< only what the former owner has certainly not done, and so says
  repeats, ///< anything: asking twice does no harm
  never,   ///< nothing: the former owner may have been in the middle of it
};

/// One question to a session on its way: finds the session that the path names, asks, and answers with the
/// reply. A session that has another owner by now is looked for again, as long as the call may take.
template <class Reply, class Ask, class Answer>
class session_question : public std::enable_shared_from_this<session_question<Reply, Ask, Answer>> {
 public:
  session_question(caf::event_based_actor* self, call from, Ask ask, Answer answer, asking how)
    : self_(self), from_(std::move(from)), ask_(std::move(ask)), answer_(std::move(answer)), how_(how),
      search_(self->clock().now() + from_.timeout()) {}

  void locate() {
    const auto me = this->shared_from_this();
    self_->request(from_.config().directory, from_.timeout(), locate_letter(from_.session(), from_.tenant()))
      .then([me](const session_actor& session) { me->put(session); },
        [me](const caf::error& failure) { me->failed(from_caf_error(failure), false); });
  }

 private:
  void put(const session_actor& session) {
    const auto me = this->shared_from_this();
    ask_(self_, session)
      .then([me](const letter<Reply>& reply) { me->answer_(me->from_, reply.read()); },
        [me](const caf::error& failure) { me->failed(from_caf_error(failure), true); });
  }

  void failed(const error& why, bool asked) {
    if (asked && how_ == asking::never && !owner_search::not_asked(why))
      return from_.refuse(why);
    const auto pause = search_.next(why, asked && how_ == asking::once, self_->clock().now());
    if (!pause)
      return from_.refuse(why);
    // An actor without a behaviour would end here.
    self_->become([me = this->shared_from_this()](again_atom) {
      me->self_->unbecome();
      me->locate();
    });
    self_->delayed_send(self_, *pause, again_atom::value);
  }

  caf::event_based_actor* self_;
  call from_;
  Ask ask_;
  Answer answer_;
  asking how_;
  owner_search search_;
};

/// Finds the session that the path names, then asks it something and answers with the reply.
/// @param ask a function of the actor and the session that makes a request
/// @param reply a function from the reply to the answer
template <class Reply, class Ask, class Answer>
void ask_session(
  caf::actor_system& system, const call& request, Ask ask, Answer answer, asking how = asking::once) {
  in_actor(system, request, [ask, answer, how](caf::event_based_actor* self, const call& from) {
    std::make_shared<session_question<Reply, Ask, Answer>>(self, from, ask, answer, how)->locate();
  });
}

/// @param keyed the client has given the key
void answer_message(const call& from, schema::MessageAccepted::Reader accepted, bool keyed) {
  auto answer = json_response(accepted_json(accepted), 202);
  if (accepted.getReplayed() && keyed)
    answer.fields.emplace_back("Idempotent-Replayed", "true");
  from.exchange().respond(std::move(answer));
}

/// The key of a message whose client has none: nobody else has it.
std::string own_key(const gateway_config& config) {
  return fmt::format("godwit-{:016x}{:016x}", config.random(), config.random());
}

} // namespace

void create_session(caf::actor_system& system, const call& request) {
  in_actor(system, request, [](caf::event_based_actor* self, const call& from) {
    const auto& config = from.config();
    const auto parsed =
      parse_create_session(from.request().body, config.model.text->size(), config.options.sampling);
    if (!parsed)
      return from.refuse(parsed.error());
    if (!parsed->model.empty() && parsed->model != config.model.id)
      return from.refuse(
        error{errc::not_found, "this node does not serve that model", "model", "model_not_found"});
    self
      ->request(config.directory, from.timeout(),
        settings_letter(*parsed, from.tenant(), config.model.id, config.random() & drawn_seed_mask))
      .then([from](const letter<schema::SessionInfo>& info) { from.answer(session_json(info.read()), 201); },
        from.refusing());
  });
}

void list_sessions(caf::actor_system& system, const call& request) {
  const auto page = page_query_of(request.request());
  if (!page)
    return request.refuse(page.error());
  in_actor(system, request, [page = *page](caf::event_based_actor* self, const call& from) {
    self->request(from.config().directory, from.timeout(), list_letter(page, from.tenant()))
      .then([from](const letter<schema::SessionList>& list) { from.answer(session_list_json(list.read())); },
        from.refusing());
  });
}

void show_session(caf::actor_system& system, const call& request) {
  ask_session<schema::SessionInfo>(
    system, request,
    [timeout = request.timeout()](caf::event_based_actor* self, const session_actor& session) {
      return self->request(session, timeout, info_atom::value);
    },
    [](const call& from, schema::SessionInfo::Reader info) { from.answer(session_json(info)); },
    asking::repeats);
}

void show_transcript(caf::actor_system& system, const call& request) {
  ask_session<schema::Transcript>(
    system, request,
    [timeout = request.timeout()](caf::event_based_actor* self, const session_actor& session) {
      return self->request(session, timeout, transcript_atom::value);
    },
    [](const call& from, schema::Transcript::Reader transcript) { from.answer(transcript_json(transcript)); },
    asking::repeats);
}

void cancel_turn(caf::actor_system& system, const call& request) {
  const auto parsed = parse_cancel(request.request().body);
  if (!parsed)
    return request.refuse(parsed.error());
  const auto mail = letter<schema::CancelTurn>::make([&](auto b) {
    b.setTurn(parsed->turn);
    b.setCause(schema::EndCause::CANCELLED);
  });
  ask_session<schema::TurnState>(
    system, request,
    [mail, timeout = request.timeout()](caf::event_based_actor* self, const session_actor& session) {
      return self->request(session, timeout, mail);
    },
    [](const call& from, schema::TurnState::Reader turn) { from.answer(turn_json(turn)); },
    // Without a number a second one might end the next turn.
    parsed->turn == 0 ? asking::never : asking::repeats);
}

void suspend_session(caf::actor_system& system, const call& request) {
  if (const auto parsed = parse_nothing(request.request().body); !parsed)
    return request.refuse(parsed.error());
  ask_session<schema::SessionInfo>(
    system, request,
    [timeout = request.config().options.suspend_timeout](caf::event_based_actor* self,
      const session_actor& session) { return self->request(session, timeout, suspend_atom::value); },
    [](const call& from, schema::SessionInfo::Reader info) { from.answer(session_json(info)); });
}

void pin_session(caf::actor_system& system, const call& request) {
  const auto parsed = parse_pin(request.request().body);
  if (!parsed)
    return request.refuse(parsed.error());
  const auto mail = letter<schema::CachePin>::make([&](auto b) { b.setSeconds(parsed->ttl_seconds); });
  ask_session<schema::CachePinned>(
    system, request,
    [mail, timeout = request.timeout()](caf::event_based_actor* self, const session_actor& session) {
      return self->request(session, timeout, mail);
    },
    [seconds = parsed->ttl_seconds](const call& from, schema::CachePinned::Reader pinned) {
      from.answer(pin_json(from.session(), pinned, from.config().now() + seconds));
    });
}

void unpin_session(caf::actor_system& system, const call& request) {
  ask_session<schema::CachePinned>(
    system, request,
    [timeout = request.timeout()](caf::event_based_actor* self, const session_actor& session) {
      return self->request(session, timeout, letter<schema::CacheUnpin>());
    },
    [](const call& from, schema::CachePinned::Reader pinned) {
      from.answer(pin_json(from.session(), pinned, 0));
    });
}

void fork_session(caf::actor_system& system, const call& request) {
  const auto parsed = parse_fork(request.request().body);
  if (!parsed)
    return request.refuse(parsed.error());
  const auto mail = letter<schema::ForkRequest>::make(
    [&](auto b) { b.setAt(capnp::Text::Reader(parsed->at.c_str(), parsed->at.size())); });
  ask_session<schema::SessionInfo>(
    system, request,
    [mail, timeout = request.timeout()](caf::event_based_actor* self, const session_actor& session) {
      return self->request(session, timeout, mail);
    },
    [](const call& from, schema::SessionInfo::Reader info) { from.answer(session_json(info), 201); });
}

void erase_session(caf::actor_system& system, const call& request) {
  in_actor(system, request, [](caf::event_based_actor* self, const call& from) {
    self
      ->request(from.config().directory, from.timeout(), erase_atom::value,
        locate_letter(from.session(), from.tenant()))
      .then(
        [from](const letter<schema::SessionInfo>& info) { from.answer(erased_session_json(info.read())); },
        from.refusing());
  });
}

void post_message(caf::actor_system& system, const call& request) {
  const auto key = idempotency_key_of(request.request());
  if (!key)
    return request.refuse(key.error());
  const auto parsed = parse_message(request.request().body);
  if (!parsed)
    return request.refuse(parsed.error());
  // A message is posted again when its session turns out to have another owner, which must not make it two.
  const auto mail = message_letter(*parsed, key->empty() ? own_key(request.config()) : *key);
  if (parsed->stream || wants_events(request.request()))
    return spawn_stream_call(system, request, {.after = {}, .message = mail});
  if (parsed->cancel_on_disconnect)
    return request.refuse(error{errc::invalid_argument,
      "on_disconnect \"cancel\" needs \"stream\": true, since without it the connection ends at once",
      "on_disconnect", "invalid_value"});
  ask_session<schema::MessageAccepted>(
    system, request,
    [mail, timeout = request.timeout()](caf::event_based_actor* self, const session_actor& session) {
      return self->request(session, timeout, mail);
    },
    [keyed = !key->empty()](
      const call& from, schema::MessageAccepted::Reader accepted) { answer_message(from, accepted, keyed); },
    asking::repeats);
}

void follow_events(caf::actor_system& system, const call& request) {
  const auto query = events_query_of(request.request());
  if (!query)
    return request.refuse(query.error());
  spawn_stream_call(system, request,
    {.after = query->after,
      .after_name = query->after_name,
      .snapshot = query->snapshot,
      .past_only = !query->follow,
      .message = {}});
}

} // namespace godwit
