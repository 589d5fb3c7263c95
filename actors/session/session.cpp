#include "actors/session/session.hpp"

#include "actors/session/session_shell.hpp"
#include "actors/session/session_views.hpp"
#include "actors/trace/spawn_traced.hpp"
#include "messages/actor_error.hpp"
#include "messages/text.hpp"

#include <caf/actor_system.hpp>
#include <caf/system_messages.hpp>
#include <caf/typed_response_promise.hpp>

#include <memory>
#include <utility>

namespace godwit {

namespace {

using detail::append_done;
using detail::end_atom;
using detail::inner_actor;
using detail::orphan_atom;
using detail::question_done;
using detail::self_pointer;
using detail::session_shell;

template <class T>
caf::result<T> answer(result<T> outcome) {
  if (outcome)
    return std::move(*outcome);
  return to_caf_error(outcome.error());
}

/// Answers a call as soon as the session's journal was replayed.
/// @param call gets the shell, and what takes the answer
template <class T, class Call>
caf::result<T> once_begun(self_pointer self, Call call) {
  auto promise = self->make_response_promise<T>();
  auto* shell = self->state.shell.get();
  if (auto done = shell->open().template add<T>(promise))
    if (!shell->once_begun([shell, call, done] { call(*shell, done); }))
      done(fail(errc::overloaded, "too many calls wait for this session's journal"));
  return promise;
}

/// The same; a session that cannot be used answers why.
template <class T, class Call>
caf::result<T> once_sound(self_pointer self, Call call) {
  return once_begun<T>(self, [call](session_shell& shell, const auto& done) {
    if (shell.broken())
      done(tl::unexpected<error>(*shell.broken()));
    else
      call(shell, done);
  });
}

inner_actor::behavior_type session(self_pointer self, session_id id,
  std::shared_ptr<const session_config> config, const session_start& start) {
  self->state.shell = std::make_unique<session_shell>(self, std::move(id), std::move(config));
  self->set_down_handler([self](const caf::down_msg& down) { self->state.shell->sink_down(down.source); });
  self->set_exit_handler([self](const caf::exit_msg& exit) { self->state.shell->evict(exit.reason); });
  self->state.shell->begin(start);
  return {
    [self](info_atom) {
      return once_begun<letter<schema::SessionInfo>>(
        self, [](session_shell& shell, const auto& done) { shell.inform(done); });
    },
    [self](suspend_atom) {
      return once_sound<letter<schema::SessionInfo>>(
        self, [](session_shell& shell, const auto& done) { shell.suspend(done); });
    },
    [self](const letter<schema::CachePin>& mail) {
      return once_sound<letter<schema::CachePinned>>(
        self, [mail](session_shell& shell, const auto& done) { shell.pin(mail.read().getSeconds(), done); });
    },
    [self](const letter<schema::CacheUnpin>&) {
      self->state.shell->unpin();
      return letter<schema::CachePinned>();
    },
    [self](transcript_atom) {
      return once_sound<letter<schema::Transcript>>(self,
        [](session_shell& shell, const auto& done) { done(session_transcript(shell.core().machine())); });
    },
    [self](const letter<schema::PostMessage>& mail) {
      return once_sound<letter<schema::MessageAccepted>>(
        self, [mail, trace = keep_trace(current_trace())](
                session_shell& shell, const auto& done) { shell.core().post(mail, done, trace); });
    },
    [self](const letter<schema::SubscribeRequest>& mail, const event_sink_actor& sink) {
      return once_sound<letter<schema::Subscribed>>(
        self, [mail, sink](session_shell& shell, const auto& done) { shell.subscribe(mail, sink, done); });
    },
    [self](const letter<schema::EventCredit>& mail) { self->state.shell->grant(mail.read()); },
    [self](const letter<schema::Unsubscribe>& mail) {
      self->state.shell->drop(mail.read().getSubscription(), mail.read().getClientLeft());
    },
    [self](const letter<schema::CancelTurn>& mail) {
      return once_sound<letter<schema::TurnState>>(self, [mail](session_shell& shell, const auto& done) {
        shell.core().cancel(mail.read().getTurn(), mail.read().getCause(), done);
      });
    },
    [self](const letter<schema::ForkRequest>& mail) {
      return once_sound<letter<schema::SessionInfo>>(
        self, [mail](session_shell& shell, const auto& done) { shell.fork(mail.read(), done); });
    },
    [self](const letter<schema::CloseSession>& mail) {
      return once_begun<letter<schema::SessionInfo>>(self, [mail](session_shell& shell, const auto& done) {
        if (shell.broken())
          return done(shell.broken_info());
        shell.unpin();
        shell.core().close(text_of(mail.read().getCause()), done);
      });
    },
    [self](passivate_atom) {
      const bool quiet = self->state.shell->quiet();
      if (quiet)
        self->quit();
      return quiet;
    },
    [self](const letter<schema::TokenBatch>& mail) { self->state.shell->core().tokens(mail.read()); },
    [self](status_atom) -> caf::result<letter<schema::ActorStatus>> {
      using status = letter<schema::ActorStatus>;
      if (self->state.shell->shows_status())
        return answer(self->state.shell->status());
      return once_begun<status>(self, [](session_shell& shell, const auto& done) { done(shell.status()); });
    },
    [self](drain_atom) {
      using drained = letter<schema::Drained>;
      return once_begun<drained>(self, [](session_shell& shell, const auto& done) {
        if (shell.broken())
          return done(drained());
        shell.core().drain([done] { done(drained()); });
      });
    },
    [self](stop_atom) {
      self->state.shell->stop();
      self->quit();
    },
    [self](orphan_atom, request_id request) { self->state.shell->core().orphaned(request); },
    [self](end_atom) { self->state.shell->end(); },
    [self](append_done& done) { self->state.shell->core().appended(std::move(done.outcome)); },
    [](question_done& done) { done.answer(); },
    [self](tick_atom, std::int64_t at) { self->state.shell->tick(at); },
  };
}

} // namespace

session_actor spawn_session(caf::actor_system& system, session_id id,
  std::shared_ptr<const session_config> config, const session_start& start) {
  return spawn_traced(system, session, std::move(id), std::move(config), start);
}

} // namespace godwit
