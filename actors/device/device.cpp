#include "actors/device/device.hpp"

#include "actors/device/step_letters.hpp"
#include "messages/actor_error.hpp"

namespace godwit {
namespace {

using self_pointer = device_behaviour::stateful_pointer<device_actor_state>;

/// How long the device waits for a role's answer, and for starved rows before they are looked at again.
constexpr auto patience = std::chrono::milliseconds(250);
constexpr auto cache_patience = std::chrono::seconds(2);

void send_insertions(self_pointer self) {
  for (const auto& insertion : self->state.device->take_insertions())
    self->send(self->state.cache, letter<schema::CacheInsert>::make([&](schema::CacheInsert::Builder b) {
      b.setTenant(insertion.tenant);
      b.setParentLow(insertion.parent.low);
      b.setParentHigh(insertion.parent.high);
      write_names(b.initNames(static_cast<unsigned>(2 * insertion.names.size())), insertion.names);
      write_ids(b.initBlocks(static_cast<unsigned>(insertion.blocks.size())), insertion.blocks);
      b.setSwapped(insertion.swapped);
    }));
}

void drive(self_pointer self);

void ask_cache(self_pointer self) {
  const auto wanted = self->state.device->wanted_blocks();
  self
    ->request(self->state.cache, cache_patience,
      letter<schema::CacheEvict>::make([&](schema::CacheEvict::Builder b) { b.setBlocks(wanted); }))
    .then(
      [self](const letter<schema::CacheEvicted>& mail) {
        self->state.device->evicted(mail.read().getBlocks());
        drive(self);
      },
      [self](const caf::error&) {
        self->state.device->evicted(0);
        drive(self);
      });
}

void run_step(self_pointer self) {
  auto& state = self->state;
  const auto outcome = state.device->run();
  send_insertions(self);
  const auto mail = pack(outcome.result);
  const auto tell = [&] {
    // Decode first: its answer carries most rows.
    if (outcome.told[static_cast<std::size_t>(step_role::decode)])
      self->send(state.decode, mail);
    if (outcome.told[static_cast<std::size_t>(step_role::prefill)])
      self->send(state.prefill, mail);
  };
  if (state.roles)
    state.roles->run(self, tell);
  else
    tell();
}

/// Does whatever can be done now. One step at most: closes and answers are in the mailbox behind it.
void drive(self_pointer self) {
  auto& state = self->state;
  const auto action = state.device->next(device_state::clock::now());
  send_insertions(self);
  if (action == device_state::action::evict)
    ask_cache(self);
  else if (action == device_state::action::run)
    run_step(self);
  if (state.device->take_freed()) {
    self->send(state.decode, letter<schema::BlocksFreed>());
    self->send(state.prefill, letter<schema::BlocksFreed>());
  }
  if (!state.timer && (state.device->waiting() || state.device->starving())) {
    state.timer = true;
    self->delayed_send(self, patience, tick_atom::value);
  }
}

/// On the timer: a role that owes the same answer as before is not waited for any longer.
void look_again(self_pointer self) {
  auto& state = self->state;
  state.timer = false;
  const auto steps = state.counters->steps.load();
  if (state.device->waiting() && std::exchange(state.steps_at_tick, steps) == steps)
    state.device->give_up();
  if (state.device->starving())
    state.device->retry();
  drive(self);
}

double number(const engine_counters::number& counter) {
  return static_cast<double>(counter.load());
}

letter<schema::ActorStatus> describe(const device_actor_state& state) {
  const auto& counters = *state.counters;
  const gauge gauges[] = {
    {"steps", number(counters.steps)},
    {"sequences", number(counters.sequences)},
    {"free_blocks", number(counters.free_blocks)},
    {"prefilled_tokens", number(counters.prefilled_tokens)},
    {"decoded_tokens", number(counters.decoded_tokens)},
    {"preemptions", number(counters.preemptions)},
    {"starved_rows", number(counters.starved_rows)},
    {"step_seconds_total", number(counters.step_nanoseconds) * 1e-9},
    {"step_seconds_last", number(counters.last_step_nanoseconds) * 1e-9},
    {"pauses", number(counters.pauses)},
    {"pause_seconds_total", number(counters.pause_nanoseconds) * 1e-9},
  };
  return status_letter("device", "ready", state.device->last_failure(), gauges);
}

} // namespace

device_behaviour::behavior_type device(self_pointer self, std::shared_ptr<model> model,
  std::shared_ptr<page_pool> pool, const block_hasher& hasher, const cache_actor& cache,
  const device_options& options, std::shared_ptr<engine_counters> counters) {
  auto& state = self->state;
  state.device = std::make_unique<device_state>(
    std::move(model), std::move(pool), hasher, options.limits, options.stall, counters, options.recalled);
  state.counters = std::move(counters);
  state.cache = cache;
  if (options.same_thread)
    state.roles = std::make_unique<same_thread>(self->system());
  return {
    [self](join_atom, const step_client_actor& prefill, const step_client_actor& decode) {
      self->state.prefill = prefill;
      self->state.decode = decode;
      if (self->state.roles) {
        self->state.roles->choose(prefill);
        self->state.roles->choose(decode);
      }
    },
    [self](const letter<schema::StepSubmission>& mail) {
      self->state.device->submit(unpack(mail.read()));
      drive(self);
    },
    [self](const letter<schema::CloseSequences>& mail) {
      self->state.device->close(read_keys(mail.read().getSequences()));
      drive(self);
      self->state.drain.check(self->state.device->open_sequences());
    },
    [self](tick_atom) { look_again(self); },
    [self](status_atom) { return describe(self->state); },
    [self](drain_atom) {
      auto promise = self->make_response_promise<letter<schema::Drained>>();
      self->state.drain.add(promise);
      self->state.drain.check(self->state.device->open_sequences());
      return promise;
    },
    [self](stop_atom) { self->quit(); },
  };
}

} // namespace godwit
