#pragma once

// A worker of the toy model: it takes what a router places, sends tokens under credit at a steady pace, and
// ends generations whose router or consumer is gone, as a real one does.

#include "actors/prefill/request_watch.hpp"
#include "messages/actor_error.hpp"
#include "messages/catalogue.hpp"
#include "tests/support/toy_generation.hpp"

#include <caf/actor_cast.hpp>
#include <caf/actor_system.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/send.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/system_messages.hpp>

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace godwit {

struct toy_worker_options {
  std::size_t capacity = 16; ///< generations at a time
  std::size_t most = 4;      ///< tokens a step
  std::chrono::milliseconds step{2};
};

/// What a test sees of it, and tells it.
struct toy_worker_view {
  std::atomic<std::size_t> streams{0};
  std::atomic<bool> draining{false};
};

struct toy_worker_state {
  struct running {
    toy_generation generation;
    generation_sink_actor sink;
    placement_actor placement;
  };
  static inline const char* name = "toy_worker";
  std::map<request_id, running> all;
  request_watch watched;
  bool armed = false;
};

using toy_worker_pointer = caf::stateful_actor<toy_worker_state>*;

/// The last batch of a generation, if there is one to send, and the word to its router.
inline void toy_end(toy_worker_pointer self, toy_worker_view& view, request_id request, const error* why,
  bool cancelled = false) {
  auto& state = self->state;
  const auto found = state.all.find(request);
  if (found == state.all.end())
    return;
  auto& one = found->second;
  if (why != nullptr || cancelled)
    self->send(one.sink, toy_batch(request,
                           {static_cast<position_t>(one.generation.tokens.size()), {},
                             cancelled ? schema::FinishReason::CANCELLED : schema::FinishReason::FAILED},
                           why != nullptr ? *why : error{}));
  self->send(one.placement, letter<schema::WorkerReport>::make(
                              [&](schema::WorkerReport::Builder b) { b.initEnded(1).set(0, request); }));
  state.all.erase(found);
  for (const auto& each : state.watched.remove(request))
    self->demonitor(each);
  view.streams = state.all.size();
}

inline void toy_step_all(toy_worker_pointer self, toy_worker_view& view, const toy_worker_options& options) {
  std::vector<request_id> done;
  for (auto& [request, one] : self->state.all)
    if (const auto step = one.generation.go_on(options.most)) {
      self->send(one.sink, toy_batch(request, *step));
      if (one.generation.ended)
        done.push_back(request);
    }
  for (const auto request : done)
    toy_end(self, view, request, nullptr);
}

inline void toy_arm(toy_worker_pointer self, const toy_worker_options& options) {
  if (self->state.all.empty() || std::exchange(self->state.armed, true))
    return;
  self->delayed_send(self, options.step, tick_atom::value);
}

inline caf::behavior toy_prefill(
  toy_worker_pointer self, const std::shared_ptr<toy_worker_view>& view, const toy_worker_options& options) {
  self->set_down_handler([=](const caf::down_msg& gone) {
    const error why{errc::peer_lost, "the router or the consumer of this generation is gone", {}, {}};
    for (const auto request : self->state.watched.of(caf::actor_cast<caf::actor_addr>(gone.source)))
      toy_end(self, *view, request, &why);
  });
  return {
    [=](const letter<schema::GenerateRequest>& ask, const generation_sink_actor& sink,
      const placement_actor& placement) -> caf::result<letter<schema::GenerateAccepted>> {
      auto& state = self->state;
      if (view->draining)
        return to_caf_error({errc::draining, "this worker takes no new work", {}, {}});
      if (state.all.size() >= options.capacity)
        return to_caf_error({errc::overloaded, "this worker is full", {}, {}});
      const auto request = ask.read().getRequest();
      state.all[request] = {toy_generation(ask.read()), sink, placement};
      for (const auto& each : {sink.address(), placement.address()})
        if (state.watched.add(request, each))
          self->monitor(each);
      view->streams = state.all.size();
      toy_arm(self, options);
      return letter<schema::GenerateAccepted>();
    },
    [=](const letter<schema::CreditGrant>& mail) {
      if (const auto found = self->state.all.find(mail.read().getRequest()); found != self->state.all.end())
        found->second.generation.credit += mail.read().getTokens();
    },
    [=](const letter<schema::CancelRequest>& mail) {
      for (const auto request : mail.read().getRequests())
        toy_end(self, *view, request, nullptr, true);
    },
    [=](tick_atom) {
      self->state.armed = false;
      toy_step_all(self, *view, options);
      toy_arm(self, options);
    },
    [=](stop_atom) {
      const error why{errc::draining, "this node is shutting down", {}, {}};
      while (!self->state.all.empty())
        toy_end(self, *view, self->state.all.begin()->first, &why);
      self->quit();
    },
  };
}

/// Its two actors.
struct toy_worker {
  std::shared_ptr<toy_worker_view> view = std::make_shared<toy_worker_view>();
  prefill_actor prefill;
  decode_actor decode;

  toy_worker(caf::actor_system& system, const toy_worker_options& options)
    : prefill(caf::actor_cast<prefill_actor>(system.spawn(toy_prefill, view, options))),
      decode(caf::actor_cast<decode_actor>(system.spawn(
        [](caf::event_based_actor* self) -> caf::behavior { return {[=](stop_atom) { self->quit(); }}; }))) {}

  void stop() const {
    caf::anon_send(prefill, stop_atom::value);
    caf::anon_send(decode, stop_atom::value);
  }
};

} // namespace godwit
