#include "actors/router/router.hpp"

#include "actors/device/step_letters.hpp"
#include "messages/actor_error.hpp"

#include <caf/actor_cast.hpp>

namespace godwit {
namespace {

using self_pointer = router_behaviour::stateful_pointer<router_actor_state>;
using accepted = letter<schema::GenerateAccepted>;

/// A worker only queues a request before it answers.
constexpr auto worker_patience = std::chrono::seconds(10);

/// Workers know nothing of groups: they are told every request by its id.
void cancel(
  self_pointer self, std::span<const request_id> requests, std::uint64_t group, schema::EndCause cause) {
  for (const auto& [worker, theirs] : self->state.placed->expand(requests, group))
    self->send(self->state.workers[worker].prefill,
      letter<schema::CancelRequest>::make([&, &list = theirs](schema::CancelRequest::Builder b) {
        write_keys(b.initRequests(static_cast<unsigned>(list.size())), list);
        b.setCause(cause);
      }));
}

void forget(self_pointer self, request_id request) {
  auto& state = self->state;
  state.placed->forget(request);
  if (const auto item = state.sinks.find(request); item != state.sinks.end()) {
    self->demonitor(item->second.address());
    state.sinks.erase(item);
  }
  state.drain.check(state.placed->size());
}

accepted answer(const explanation& why) {
  return accepted::make([&](schema::GenerateAccepted::Builder b) {
    b.setRequest(why.request);
    b.setWorker(why.worker);
    b.setReason(why.reason);
  });
}

caf::typed_response_promise<accepted> generate(
  self_pointer self, const letter<schema::GenerateRequest>& ask, const generation_sink_actor& sink) {
  auto& state = self->state;
  auto promise = self->make_response_promise<accepted>();
  const auto worker = state.placed->place(ask.read());
  if (!worker) {
    promise.deliver(to_caf_error(worker.error()));
    return promise;
  }
  const auto request = ask.read().getRequest();
  state.sinks[request] = sink;
  self->monitor(sink);
  self
    ->request(
      state.workers[*worker].prefill, worker_patience, ask, sink, caf::actor_cast<placement_actor>(self))
    .then([self, promise, why = *state.placed->explain(request)](
            const accepted&) mutable { promise.deliver(answer(why)); },
      [self, promise, request](const caf::error& failure) mutable {
        // Should it have been accepted all the same, it must not run on.
        cancel(self, std::span(&request, 1), 0, schema::EndCause::DEADLINE);
        forget(self, request);
        promise.deliver(to_caf_error(from_caf_error(failure)));
      });
  return promise;
}

void end_all_of(self_pointer self, std::size_t worker) {
  auto& state = self->state;
  const auto last = [](request_id request) {
    return letter<schema::TokenBatch>::make([&](schema::TokenBatch::Builder b) {
      b.setRequest(request);
      b.setFinish(schema::FinishReason::FAILED);
      b.setErrorCode(static_cast<std::uint8_t>(errc::peer_lost));
      b.setErrorMessage("the worker of this generation has stopped");
    });
  };
  for (const auto request : state.placed->lose_worker(worker)) {
    if (const auto item = state.sinks.find(request); item != state.sinks.end())
      self->send(item->second, last(request));
    forget(self, request);
  }
}

void on_down(self_pointer self, const caf::actor_addr& source) {
  auto& state = self->state;
  for (std::size_t i = 0; i < state.workers.size(); ++i) {
    const auto& worker = state.workers[i];
    // When both are gone, nobody else can still send a last batch.
    if ((source == worker.prefill || source == worker.decode) && --state.alive[i] == 0)
      end_all_of(self, i);
  }
  std::vector<request_id> orphans;
  for (const auto& [request, sink] : state.sinks)
    if (sink == source)
      orphans.push_back(request);
  if (!orphans.empty())
    cancel(self, orphans, 0, schema::EndCause::PEER_LOST);
}

letter<schema::ActorStatus> describe(const router_actor_state& state) {
  std::uint64_t prefill_tokens = 0;
  double decode_blocks = 0;
  bool available = false;
  for (const auto& worker : state.placed->workers()) {
    prefill_tokens += worker.prefill_tokens;
    decode_blocks += worker.decode_blocks;
    available = available || worker.available;
  }
  const gauge gauges[] = {
    {"requests", static_cast<double>(state.placed->size())},
    {"workers", static_cast<double>(state.workers.size())},
    {"prefill_tokens", static_cast<double>(prefill_tokens)},
    {"decode_blocks", decode_blocks},
  };
  const auto* condition = state.placed->draining() ? "draining" : available ? "ready" : "stopped";
  return status_letter("router", condition, available ? "" : "no worker runs", gauges);
}

} // namespace

router_behaviour::behavior_type router(self_pointer self, const std::string& model,
  const std::vector<worker_handles>& workers, const router_options& options) {
  auto& state = self->state;
  std::vector<worker_load> loads;
  for (const auto& worker : workers) {
    loads.push_back(worker.load);
    self->monitor(worker.prefill);
    self->monitor(worker.decode);
  }
  state.placed = std::make_unique<router_state>(model, std::move(loads), options);
  state.workers = workers;
  state.alive.assign(workers.size(), 2);
  self->set_down_handler([self](const caf::down_msg& message) { on_down(self, message.source); });
  return {
    [self](const letter<schema::GenerateRequest>& ask, const generation_sink_actor& sink) {
      return generate(self, ask, sink);
    },
    [self](const letter<schema::CreditGrant>& mail) {
      if (const auto* worker = self->state.placed->worker_of(mail.read().getRequest()))
        self->send(self->state.workers[*worker].prefill, mail);
    },
    [self](const letter<schema::CancelRequest>& mail) {
      const auto requests = read_keys(mail.read().getRequests());
      cancel(self, requests, mail.read().getGroup(), mail.read().getCause());
    },
    [self](const letter<schema::RouteExplainRequest>& mail) -> caf::result<accepted> {
      if (const auto* why = self->state.placed->explain(mail.read().getRequest()))
        return answer(*why);
      return to_caf_error({errc::not_found, "this request was not placed here, or long ago", {}, {}});
    },
    [self](status_atom) { return describe(self->state); },
    [self](drain_atom) {
      auto promise = self->make_response_promise<letter<schema::Drained>>();
      self->state.placed->drain();
      self->state.drain.add(promise);
      self->state.drain.check(self->state.placed->size());
      return promise;
    },
    [self](stop_atom) {
      // Each worker sends the last batches of its streams before it ends.
      for (const auto& worker : self->state.workers)
        self->send(worker.prefill, stop_atom::value);
      self->quit();
    },
    [self](const letter<schema::WorkerReport>& mail) {
      for (const auto request : mail.read().getPrefilled())
        self->state.placed->prefilled(request);
      for (const auto request : mail.read().getEnded())
        forget(self, request);
    },
  };
}

} // namespace godwit
