#include "actors/decode/decode.hpp"

#include "actors/device/step_letters.hpp"

#include <utility>

namespace godwit {
namespace {

using self_pointer = decode_actor::stateful_pointer<decode_actor_state>;

letter<schema::TokenBatch> pack(const token_batch& batch) {
  return letter<schema::TokenBatch>::make([&](schema::TokenBatch::Builder b) {
    b.setRequest(batch.request);
    b.setPosition(batch.position);
    auto tokens = b.initTokens(static_cast<unsigned>(batch.tokens.size()));
    for (unsigned i = 0; i < tokens.size(); ++i)
      write_token(tokens[i], batch.tokens[i]);
    b.setFinish(batch.finish);
    if (batch.finish == schema::FinishReason::FAILED) {
      b.setErrorCode(static_cast<std::uint8_t>(batch.failure.code));
      b.setErrorMessage(batch.failure.message);
    }
    if (batch.usage) {
      b.setPromptTokens(batch.prompt_tokens);
      b.setCachedTokens(batch.cached_tokens);
      b.setCachedHost(batch.cached_host);
      b.setCachedDisk(batch.cached_disk);
    }
  });
}

/// @param answer the device waits for it; else it is sent only if there is something to run
void submit(self_pointer self, bool answer) {
  auto& state = self->state;
  if (state.outstanding && !answer)
    return;
  const auto rows = state.set->rows();
  state.counters->running = rows.size();
  if (rows.empty() && !answer)
    return;
  state.outstanding = !rows.empty();
  self->send(state.device, pack_submission(step_role::decode, state.seen, rows));
}

letter<schema::WorkerReport> report(
  std::span<const request_id> prefilled, std::span<const request_id> ended) {
  return letter<schema::WorkerReport>::make([&](schema::WorkerReport::Builder b) {
    write_keys(b.initPrefilled(static_cast<unsigned>(prefilled.size())), prefilled);
    write_keys(b.initEnded(static_cast<unsigned>(ended.size())), ended);
  });
}

void tell_ended(self_pointer self, const std::vector<request_id>& ended) {
  auto& state = self->state;
  for (const auto request : ended) {
    if (const auto told = state.told.find(request); told != state.told.end()) {
      self->send(told->second.placement, report({}, std::span(&request, 1)));
      state.told.erase(told);
    }
  }
  if (!ended.empty())
    self->send(state.prefill, letter<schema::StreamsEnded>::make([&](schema::StreamsEnded::Builder b) {
      write_keys(b.initRequests(static_cast<unsigned>(ended.size())), ended);
    }));
}

/// Tells the observer how long a batch's tokens took.
void measure(decode_actor_state& state, decode_actor_state::listeners& told, std::size_t tokens) {
  if (!state.observer || tokens == 0)
    return;
  const auto now = std::chrono::steady_clock::now();
  const auto took =
    std::chrono::duration_cast<std::chrono::nanoseconds>(now - std::exchange(told.since, now));
  if (!std::exchange(told.started, true)) {
    state.observer->first_token(took);
    return;
  }
  const auto each = took / static_cast<std::int64_t>(tokens);
  for (std::size_t i = 0; i < tokens; ++i)
    state.observer->next_token(each);
}

/// The device comes first: it waits for the submission, and the consumers' letters are written meanwhile.
void apply(self_pointer self, const decode_actions& actions, bool answer) {
  auto& state = self->state;
  if (!actions.close.empty())
    self->send(state.device, pack_close(actions.close));
  submit(self, answer);
  for (const auto& batch : actions.batches)
    if (const auto told = state.told.find(batch.request); told != state.told.end()) {
      self->send(told->second.sink, pack(batch));
      measure(state, told->second, batch.tokens.size());
    }
  for (const auto request : actions.prefilled)
    if (const auto told = state.told.find(request); told != state.told.end())
      self->send(told->second.placement, report(std::span(&request, 1), {}));
  for (const auto& lost : actions.lost)
    self->send(state.prefill, letter<schema::Recompute>::make([&](schema::Recompute::Builder b) {
      b.setRequest(lost.request);
      write_ids(b.initTokens(static_cast<unsigned>(lost.tokens.size())), lost.tokens);
    }));
  tell_ended(self, actions.ended);
  state.counters->streams = state.set->size();
  state.counters->released_tokens = state.set->released_tokens();
  state.drain.check(state.set->size());
}

letter<schema::ActorStatus> describe(const decode_actor_state& state) {
  const gauge gauges[] = {
    {"streams", static_cast<double>(state.set->size())},
    {"running", static_cast<double>(state.set->rows().size())},
    {"released_tokens", static_cast<double>(state.set->released_tokens())},
  };
  return status_letter("decode", state.drain.draining() ? "draining" : "ready", "", gauges);
}

} // namespace

decode_actor::behavior_type decode(self_pointer self, const device_actor& device,
  std::shared_ptr<const token_text> vocabulary, std::uint32_t longest,
  std::shared_ptr<engine_counters> counters, std::shared_ptr<stream_observer> observer) {
  auto& state = self->state;
  state.observer = std::move(observer);
  state.set = std::make_unique<decode_set>(std::move(vocabulary), longest);
  state.counters = std::move(counters);
  state.device = device;
  // Another part of the worker died: the consumers still learn the end of their streams.
  self->set_exit_handler([self](const caf::exit_msg& message) {
    if (!message.reason)
      return;
    const error failure{errc::unavailable, "the engine has stopped after a fault", {}, {}};
    apply(self, self->state.set->fail_all(failure), false);
    self->quit(message.reason);
  });
  return {
    [self](join_atom, const prefill_actor& prefill) { self->state.prefill = prefill; },
    [self](const letter<schema::GenerateRequest>& ask, const generation_sink_actor& sink,
      const placement_actor& placement) {
      self->state.told[ask.read().getRequest()] = {sink, placement, std::chrono::steady_clock::now()};
      apply(self, self->state.set->announce(ask), false);
    },
    [self](const letter<schema::CreditGrant>& mail) {
      apply(self, self->state.set->grant(mail.read().getRequest(), mail.read().getTokens()), false);
    },
    [self](const letter<schema::CancelRequest>& mail) {
      const auto requests = read_keys(mail.read().getRequests());
      apply(self, self->state.set->cancel(requests, mail.read().getCause()), false);
    },
    [self](const letter<schema::StepResult>& mail) {
      self->state.seen = mail.read().getStep();
      apply(self, self->state.set->take(unpack(mail.read())), true);
    },
    [self](const letter<schema::BlocksFreed>&) {
      self->state.set->unblock();
      submit(self, false);
    },
    [self](status_atom) { return describe(self->state); },
    [self](drain_atom) {
      auto promise = self->make_response_promise<letter<schema::Drained>>();
      self->state.drain.add(promise);
      self->state.drain.check(self->state.set->size());
      return promise;
    },
    [self](stop_atom) {
      const error failure{errc::draining, "this node is shutting down", {}, {}};
      apply(self, self->state.set->fail_all(failure), false);
      self->send(self->state.device, stop_atom::value);
      self->quit();
    },
  };
}

} // namespace godwit
