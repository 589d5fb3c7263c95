#include "services/gateway/stream_call.hpp"

#include "messages/actor_error.hpp"
#include "services/api/error_response.hpp"
#include "services/api/letters.hpp"
#include "services/api/sse.hpp"
#include "services/api/text_of.hpp"
#include "services/gateway/call_actor.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/system_messages.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <algorithm>
#include <memory>
#include <utility>

namespace godwit {

namespace {

constexpr std::uint32_t client_pause_ms = 1'000;
constexpr unsigned max_attempts = 6;
constexpr std::chrono::milliseconds first_pause{100};

struct stream_state {
  static constexpr const char* name = "stream";
  std::unique_ptr<stream_call> call;
};

stream_actor::behavior_type stream_behavior(
  stream_actor::stateful_pointer<stream_state> self, const call& request, const stream_wish& wish) {
  self->state.call = std::make_unique<stream_call>(self, request, wish);
  self->set_down_handler([self](const caf::down_msg& gone) { self->state.call->down(gone.source); });
  self->state.call->start();
  return {
    [self](const letter<schema::EventBatch>& batch) { self->state.call->take(batch.read()); },
    [self](written_atom, bool there) { self->state.call->written(there); },
    [self](left_atom) { self->state.call->left(); },
    [self](again_atom) { self->state.call->again(); },
    [self](tick_atom) { self->state.call->tick(); },
    [self](stop_atom) { self->state.call->stop(); },
  };
}

error leaving() {
  return {errc::draining, "this node is being shut down: come back with the last event's id", {}, {}};
}

/// Failures after which the session may be found elsewhere, or in a moment.
bool may_pass(errc code) {
  return code == errc::peer_lost || code == errc::unavailable || code == errc::stale_epoch
         || code == errc::stale_sequence || code == errc::deadline;
}

} // namespace

std::chrono::milliseconds stream_call::interval(const gateway_options& options) {
  return std::min(options.heartbeat, std::chrono::milliseconds(1000));
}

void stream_call::start() {
  const auto self = stream_actor(self_);
  if (!join_gateway(self_, call_, teller(self, stop_atom::value)))
    return stop();
  // The exchange must not own the actor, which owns it.
  call_.exchange().on_leave(teller(self, left_atom::value));
  last_tick_ = self_->clock().now();
  search_.emplace(last_tick_ + call_.timeout());
  self_->delayed_send(self_, interval(call_.config().options), tick_atom::value);
  writer_.emplace(call_.exchange(), 1,
    [self = stream_actor(self_)](bool there) { caf::anon_send(self, written_atom::value, there); });
  locate();
}

void stream_call::locate() {
  self_->request(call_.config().directory, call_.timeout(), locate_letter(call_.session(), call_.tenant()))
    .then(
      [this](const session_actor& session) {
        session_ = session;
        self_->monitor(session);
        if (wish_.message && turn_ == 0)
          post();
        else
          subscribe();
      },
      [this](const caf::error& failure) { lost(from_caf_error(failure)); });
}

void stream_call::post() {
  self_->request(session_, call_.timeout(), *wish_.message)
    .then(
      [this](const letter<schema::MessageAccepted>& accepted) {
        const auto reply = accepted.read();
        turn_ = reply.getTurn();
        events_ = event_stream(text_of(reply.getEventBefore()));
        subscribe();
      },
      // Its key makes sure that a second try is no second message.
      [this](const caf::error& failure) { lost(from_caf_error(failure)); });
}

void stream_call::subscribe() {
  const auto wish = letter<schema::SubscribeRequest>::make([&](auto b) {
    b.setAfter(capnp::Text::Reader(events_.last_id().c_str(), events_.last_id().size()));
    b.setSnapshot(wish_.snapshot && !events_.begun());
    b.setCredit(call_.config().options.event_credit);
    b.setOnlyTurn(turn_);
    b.setPastOnly(wish_.past_only);
  });
  self_->request(session_, call_.timeout(), wish, event_sink_actor(self_))
    .then([this](const letter<schema::Subscribed>& answer) { subscribed(answer.read().getSubscription()); },
      [this](const caf::error& failure) { lost(from_caf_error(failure)); });
}

void stream_call::subscribed(std::uint64_t subscription) {
  subscription_ = subscription;
  if (!writer_->begun()) {
    writer_->begin();
    writer_->box().add(sse::retry(client_pause_ms));
  }
  pump();
}

void stream_call::take(schema::EventBatch::Reader batch) {
  // A batch may overtake the answer that names the subscription; one of an earlier session's life is late.
  if (writer_->closing() || (subscription_ && *subscription_ != batch.getSubscription()))
    return;
  const auto taken = events_.take(batch);
  if (taken.events != 0)
    attempts_ = 0;
  writer_->box().add(taken.bytes, 0, taken.events);
  if (taken.failure && !may_pass(taken.failure->code))
    return fail(*taken.failure);
  if (taken.failure)
    return lost(*taken.failure);
  if (taken.ended)
    writer_->close();
  pump();
}

void stream_call::pump() {
  if (const auto earned = writer_->box().earned(0); earned != 0 && subscription_ && !writer_->closing())
    self_->send(session_, letter<schema::EventCredit>::make([&](auto b) {
      b.setSubscription(*subscription_);
      b.setEvents(earned);
    }));
  if (writer_->pump())
    self_->quit();
}

void stream_call::written(bool there) {
  if (!there)
    return left();
  writer_->written();
  pump();
}

void stream_call::left() {
  if (subscription_)
    unsubscribe(true);
  else if (turn_ != 0)
    // The message stands, but nobody listens for it yet: only this actor can say that its client has left.
    caf::anon_send(session_, letter<schema::CancelTurn>::make([&](auto b) {
      b.setTurn(turn_);
      b.setCause(schema::EndCause::CLIENT_LEFT);
    }));
  self_->quit();
}

void stream_call::tick() {
  const auto& options = call_.config().options;
  const auto now = self_->clock().now();
  const auto passed =
    std::chrono::duration_cast<std::chrono::milliseconds>(now - std::exchange(last_tick_, now));
  self_->delayed_send(self_, interval(options), tick_atom::value);
  if (call_.context().draining && writer_->begun() && !events_.turn_running() && !writer_->closing()) {
    if (subscription_)
      unsubscribe(false);
    return fail(leaving());
  }
  writer_->pass(passed, options.heartbeat);
  pump();
}

void stream_call::stop() {
  const auto why = leaving();
  if (writer_ && writer_->begun())
    writer_->abandon(sse::event({}, "error", error_json(why)));
  else
    call_.refuse(why);
  if (subscription_)
    unsubscribe(false);
  self_->quit();
}

void stream_call::down(const caf::actor_addr& source) {
  // Without a subscription the session is being looked for already, and requests to it fail by themselves.
  if (subscription_ && source == session_.address() && !writer_->closing())
    lost({errc::peer_lost, "the session's node is gone", {}, {}});
}

void stream_call::lost(const error& failure) {
  subscription_.reset();
  if (!writer_->begun()) {
    if (const auto pause = search_->next(failure, false, self_->clock().now()))
      return self_->delayed_send(self_, *pause, again_atom::value);
    return fail(failure);
  }
  if (!may_pass(failure.code) || ++attempts_ > max_attempts)
    return fail(failure);
  self_->delayed_send(self_, first_pause * (1 << attempts_), again_atom::value);
}

void stream_call::again() {
  if (!subscription_ && !writer_->closing())
    locate();
}

void stream_call::fail(error failure) {
  if (failure.param == "after")
    failure.param = wish_.after_name;
  if (failure.code == errc::gone)
    return gone(failure);
  if (!writer_->begun()) {
    call_.refuse(failure);
    return self_->quit();
  }
  finish(failure, error_json(failure));
}

void stream_call::finish(const error& failure, const std::string& json) {
  call_.report(failure);
  writer_->box().add(sse::event({}, "error", json));
  writer_->close();
  pump();
}

void stream_call::gone(const error& failure) {
  subscription_.reset();
  const auto answer = [this, failure](const std::string& oldest) {
    const auto json = gone_json(failure, call_.session().value, oldest);
    if (writer_->closing())
      return;
    if (writer_->begun())
      return finish(failure, json);
    call_.exchange().respond(json_response(json, status_of(failure.code)));
    self_->quit();
  };
  self_->request(session_, call_.timeout(), info_atom::value)
    .then(
      [answer](const letter<schema::SessionInfo>& info) { answer(text_of(info.read().getOldestEvent())); },
      [answer](const caf::error&) { answer({}); });
}

void stream_call::unsubscribe(bool client_left) {
  self_->send(session_, letter<schema::Unsubscribe>::make([&](auto b) {
    b.setSubscription(*subscription_);
    b.setClientLeft(client_left);
  }));
  subscription_.reset();
}

void spawn_stream_call(caf::actor_system& system, call request, stream_wish wish) {
  const auto trace = request.trace();
  spawn_for(trace, system, stream_behavior, std::move(request), std::move(wish));
}

} // namespace godwit
