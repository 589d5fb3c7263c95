#include "actors/router/router.hpp"

#include "actors/trace/spawn_traced.hpp"

#include "actors/device/step_letters.hpp"
#include "messages/actor_error.hpp"
#include "messages/text.hpp"

#include <caf/actor_cast.hpp>
#include <caf/actor_system.hpp>

#include <memory>
#include <utility>

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

/// A request that looks for a worker.
struct search {
  letter<schema::GenerateRequest> ask;
  generation_sink_actor sink;
  caf::typed_response_promise<accepted> promise;
  trace_context trace;
  std::vector<std::size_t> refused; ///< workers that did not want it
};

/// Whether a worker has refused a request without beginning it, so that another one may have it.
bool is_refusal(errc code) {
  return code == errc::draining || code == errc::overloaded || code == errc::unavailable;
}

void try_worker(self_pointer self, const std::shared_ptr<search>& what, std::size_t worker);

/// Has another worker take it, or answers with what the last one said.
void try_another(self_pointer self, const std::shared_ptr<search>& what, std::size_t worker, error why) {
  auto& state = self->state;
  // Until it joins again.
  if (why.code == errc::draining)
    state.placed->take_requests(worker, false);
  what->refused.push_back(worker);
  if (const auto next = state.placed->place(what->ask.read(), what->refused))
    return try_worker(self, what, *next);
  what->promise.deliver(to_caf_error(why));
}

void try_worker(self_pointer self, const std::shared_ptr<search>& what, std::size_t worker) {
  auto& state = self->state;
  const auto request = what->ask.read().getRequest();
  state.sinks[request] = what->sink;
  self->monitor(what->sink);
  const auto taken = [what, why = *state.placed->explain(request)](
                       const accepted&) { what->promise.deliver(answer(why)); };
  const auto failed = [self, what, request, worker](const caf::error& failure) {
    auto why = from_caf_error(failure);
    // Ended meanwhile, by its consumer or with its worker: then nobody else shall have it.
    const bool wanted = self->state.placed->worker_of(request) != nullptr;
    const bool refused = is_refusal(why.code);
    // Should it have been accepted all the same, it must not run on.
    if (!refused)
      cancel(self, std::span(&request, 1), 0, schema::EndCause::DEADLINE);
    forget(self, request);
    if (wanted && refused)
      return try_another(self, what, worker, std::move(why));
    what->promise.deliver(to_caf_error(why));
  };
  const trace_scope scope(what->trace);
  const auto& chosen = state.workers[worker];
  const auto placement = caf::actor_cast<placement_actor>(self);
  if (const auto source = state.placed->source_of(request); !source.empty())
    self->request(chosen.intake, worker_patience, what->ask, what->sink, placement, source)
      .then(taken, failed);
  else
    self->request(chosen.prefill, worker_patience, what->ask, what->sink, placement).then(taken, failed);
}

caf::typed_response_promise<accepted> generate(
  self_pointer self, const letter<schema::GenerateRequest>& ask, const generation_sink_actor& sink) {
  auto promise = self->make_response_promise<accepted>();
  const auto worker = self->state.placed->place(ask.read());
  if (worker)
    try_worker(self, std::make_shared<search>(search{ask, sink, promise, current_trace(), {}}), *worker);
  else
    promise.deliver(to_caf_error(worker.error()));
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

/// Lets go of a worker that is gone, or that another one of its name replaces.
void lose(self_pointer self, std::size_t worker) {
  auto& state = self->state;
  end_all_of(self, worker);
  state.alive[worker] = 0;
  for (const auto& part : {state.workers[worker].prefill.address(), state.workers[worker].decode.address()})
    self->demonitor(part);
}

void join(self_pointer self, worker_handles worker) {
  auto& state = self->state;
  const auto before = state.placed->find(worker.load.name);
  if (before && state.workers[*before].prefill == worker.prefill
      && state.workers[*before].decode == worker.decode && state.alive[*before] == 2)
    return state.placed->take_requests(*before, true);
  if (before)
    lose(self, *before);
  const auto place = state.placed->join(worker.load);
  if (!place) {
    ++state.turned_away;
    return;
  }
  self->monitor(worker.prefill);
  self->monitor(worker.decode);
  if (*place == state.workers.size()) {
    state.workers.push_back(std::move(worker));
    state.alive.push_back(2);
  } else {
    state.workers[*place] = std::move(worker);
    state.alive[*place] = 2;
  }
}

worker_handles worker_of(
  schema::WorkerJoin::Reader mail, const prefill_actor& prefill, const decode_actor& decode) {
  worker_handles out;
  out.load.name = text_of(mail.getName());
  out.load.capacity = mail.getCapacity();
  out.prefill = prefill;
  out.decode = decode;
  return out;
}

void on_down(self_pointer self, const caf::actor_addr& source) {
  auto& state = self->state;
  for (std::size_t i = 0; i < state.workers.size(); ++i) {
    const auto& worker = state.workers[i];
    if (state.alive[i] == 0 || (source != worker.prefill && source != worker.decode))
      continue;
    // When both are gone, nobody else can still send a last batch.
    if (--state.alive[i] == 0)
      lose(self, i);
    else
      state.placed->take_requests(i, false);
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
  double workers = 0;
  for (const auto& worker : state.placed->workers()) {
    prefill_tokens += worker.prefill_tokens;
    decode_blocks += worker.decode_blocks;
    workers += worker.available ? 1 : 0;
  }
  const gauge gauges[] = {
    {"requests", static_cast<double>(state.placed->size())},
    {"workers", workers},
    {"turned_away", static_cast<double>(state.turned_away)},
    {"prefill_tokens", static_cast<double>(prefill_tokens)},
    {"decode_blocks", decode_blocks},
    {"prompt_nodes", static_cast<double>(state.placed->sources().size())},
  };
  const auto* condition = state.placed->draining() ? "draining" : workers > 0 ? "ready" : "waiting";
  return status_letter("router", condition, workers > 0 ? "" : "no worker is there", gauges);
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
      // Each worker sends the last batches of its streams before it ends. Those of other nodes live on, and
      // see that whoever placed their requests is gone.
      for (const auto& worker : self->state.workers)
        if (worker.own)
          self->send(worker.prefill, stop_atom::value);
      self->quit();
    },
    [self](join_atom, const letter<schema::WorkerJoin>& mail, const prefill_actor& prefill,
      const decode_actor& decode) { join(self, worker_of(mail.read(), prefill, decode)); },
    [self](join_atom, const letter<schema::WorkerJoin>& mail, const prefill_actor& prefill,
      const decode_actor& decode, const intake_actor& intake) {
      auto worker = worker_of(mail.read(), prefill, decode);
      worker.load.fetches = true;
      worker.intake = intake;
      join(self, std::move(worker));
    },
    [self](const letter<schema::PromptSource>& mail) {
      const auto name = text_of(mail.read().getName());
      if (mail.read().getThere())
        self->state.placed->sources().put(name);
      else
        self->state.placed->sources().remove(name);
    },
    [self](const letter<schema::WorkerReport>& mail) {
      for (const auto request : mail.read().getPrefilled())
        self->state.placed->prefilled(request);
      for (const auto request : mail.read().getEnded())
        forget(self, request);
    },
  };
}

router_behaviour spawn_router(caf::actor_system& system, const std::string& model,
  const std::vector<worker_handles>& workers, const router_options& options) {
  return spawn_traced(system, router, model, workers, options);
}

letter<schema::PromptSource> prompt_source(const std::string& name, bool there) {
  return letter<schema::PromptSource>::make([&](schema::PromptSource::Builder b) {
    b.setName(name);
    b.setThere(there);
  });
}

letter<schema::WorkerJoin> worker_join(const worker_load& load) {
  return letter<schema::WorkerJoin>::make([&](schema::WorkerJoin::Builder b) {
    b.setName(load.name);
    b.setCapacity(load.capacity);
  });
}

} // namespace godwit
