#include "services/gateway/session_calls.hpp"

#include "messages/actor_error.hpp"
#include "services/api/error_response.hpp"
#include "services/api/header_fields.hpp"
#include "services/api/letters.hpp"
#include "services/api/session_json.hpp"
#include "services/api/session_requests.hpp"
#include "services/gateway/call_actor.hpp"
#include "services/gateway/stream_call.hpp"

namespace godwit {

namespace {

/// Seeds that are drawn stay exact in clients whose numbers are doubles.
constexpr std::uint64_t drawn_seed_mask = (std::uint64_t{1} << 53) - 1;

/// Finds the session that the path names, then asks it something and answers with the reply.
/// @param ask a function of the actor and the session that makes a request
/// @param reply a function from the reply to the answer
template <class Reply, class Ask, class Answer>
void ask_session(caf::actor_system& system, const call& request, Ask ask, Answer answer) {
  in_actor(system, request, [ask, answer](caf::event_based_actor* self, const call& from) {
    self->request(from.config().directory, from.timeout(), locate_letter(from.session(), from.tenant()))
      .then(
        [=](const session_actor& session) {
          ask(self, session)
            .then([=](const letter<Reply>& reply) { answer(from, reply.read()); }, from.refusing());
        },
        from.refusing());
  });
}

void answer_message(const call& from, schema::MessageAccepted::Reader accepted) {
  auto answer = json_response(accepted_json(accepted), 202);
  if (accepted.getReplayed())
    answer.fields.emplace_back("Idempotent-Replayed", "true");
  from.exchange().respond(std::move(answer));
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
    [](const call& from, schema::SessionInfo::Reader info) { from.answer(session_json(info)); });
}

void show_transcript(caf::actor_system& system, const call& request) {
  ask_session<schema::Transcript>(
    system, request,
    [timeout = request.timeout()](caf::event_based_actor* self, const session_actor& session) {
      return self->request(session, timeout, transcript_atom::value);
    },
    [](
      const call& from, schema::Transcript::Reader transcript) { from.answer(transcript_json(transcript)); });
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
    [](const call& from, schema::TurnState::Reader turn) { from.answer(turn_json(turn)); });
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
  const auto mail = message_letter(*parsed, *key);
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
    answer_message);
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
