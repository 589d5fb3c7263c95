#include "actors/prefill/prefill.hpp"

#include "messages/actor_error.hpp"

#include <caf/actor_cast.hpp>
#include <caf/system_messages.hpp>

namespace godwit {
namespace {

using self_pointer = prefill_behaviour::stateful_pointer<prefill_actor_state>;

/// How long the cache may take before a prompt goes on without it.
constexpr auto cache_patience = std::chrono::milliseconds(500);
/// How often prompts are looked at that wait for the cache.
constexpr auto tick = std::chrono::milliseconds(50);

void release(self_pointer self, const std::vector<block_id>& blocks) {
  if (!blocks.empty())
    self->send(self->state.cache, letter<schema::CacheRelease>::make([&](schema::CacheRelease::Builder b) {
      write_ids(b.initBlocks(static_cast<unsigned>(blocks.size())), blocks);
    }));
}

template <class Handle>
void send_forgo(self_pointer self, const Handle& to, const std::vector<request_id>& requests) {
  if (!requests.empty())
    self->send(to, letter<schema::CacheForgo>::make([&](schema::CacheForgo::Builder b) {
      write_keys(b.initRequests(static_cast<unsigned>(requests.size())), requests);
    }));
}

/// Has the cache stop bringing blocks, and other nodes computing them.
void forgo(self_pointer self, const std::vector<request_id>& requests) {
  std::vector<request_id> here;
  std::vector<request_id> elsewhere;
  for (const auto request : requests)
    (self->state.elsewhere.erase(request) > 0 ? elsewhere : here).push_back(request);
  send_forgo(self, self->state.cache, here);
  send_forgo(self, self->state.options.fetch, elsewhere);
}

void count(prefill_actor_state& state) {
  state.counters->queued = state.queue->queued();
  state.counters->prompts = state.queue->active();
  const auto cached = state.queue->cached_tokens();
  state.counters->cached_tokens = cached.all;
  state.counters->cached_host_tokens = cached.host;
  state.counters->cached_disk_tokens = cached.disk;
}

prefix_answer read_brought(schema::PromptBrought::Reader from) {
  prefix_answer to;
  to.blocks = read_ids(from.getBlocks());
  to.first = from.getFirst();
  to.host = from.getHost();
  to.disk = from.getDisk();
  to.fresh = from.getComputed();
  to.elsewhere = from.getElsewhere();
  to.patience = std::chrono::milliseconds(from.getPatienceMs());
  return to;
}

prefix_answer read_answer(schema::CacheFound::Reader from) {
  prefix_answer to;
  to.blocks = read_ids(from.getBlocks());
  to.first = from.getFirst();
  to.loading = from.getLoading();
  to.patience = std::chrono::milliseconds(from.getPatienceMs());
  to.waiting = from.getWaiting();
  to.host = from.getHost();
  to.disk = from.getDisk();
  to.gap = from.getGap();
  to.tail = from.getTail();
  return to;
}

/// Asks the cache for the prompts whose turn it is.
void begin(self_pointer self) {
  auto& state = self->state;
  for (const auto& question : state.queue->begin(prefill_queue::clock::now())) {
    const auto mail = letter<schema::CacheLookup>::make([&](schema::CacheLookup::Builder b) {
      b.setRequest(question.request);
      b.setTenant(*question.tenant);
      const auto size = static_cast<unsigned>(question.tokens->size());
      write_ids(b.initTokens(size), *question.tokens);
      // The last token is always computed: its logits are wanted.
      b.setLimit(size - 1);
    });
    if (state.elsewhere.contains(question.request))
      self->send(state.options.fetch, mail, caf::actor_cast<prompt_client_actor>(self));
    else
      self->send(state.cache, mail, caf::actor_cast<cache_client_actor>(self));
  }
  if (!state.timer && state.queue->looking_up()) {
    state.timer = true;
    self->delayed_send(self, tick, tick_atom::value);
  }
  count(state);
}

/// @param answer the device waits for it; else it is sent only if there is something new to run
void submit(self_pointer self, bool answer) {
  auto& state = self->state;
  if (state.outstanding && !answer)
    return;
  const auto wishes = state.queue->wishes();
  if (wishes.rows.empty() && !answer)
    return;
  state.outstanding = !wishes.rows.empty();
  self->send(state.device,
    pack_submission(step_role::prefill, state.seen, wishes.rows, wishes.openings, wishes.fillings));
}

template <class Handle>
void watch(self_pointer self, request_id request, const Handle& actor) {
  if (self->state.watched.add(request, actor.address()))
    self->monitor(actor);
}

/// @returns false if the prompt needs no work: there is nothing to generate
bool needs_work(schema::GenerateRequest::Reader ask, const request_limits& limits) {
  return ask.getMaxTokens() > 0 && ask.getTokens().size() < limits.longest();
}

/// Has the prompt computed by another node. The request goes on when its blocks are there, or will not come.
void have_computed(self_pointer self, const letter<schema::GenerateRequest>& ask, const std::string& source) {
  auto& state = self->state;
  const auto request = ask.read().getRequest();
  state.elsewhere.insert(request);
  const auto go_on = [self, request](bool more) {
    if (!more)
      forgo(self, {request});
    self->state.queue->proceed(request);
    begin(self);
  };
  self->request(state.options.fetch, state.options.elsewhere, ask, source)
    .then([go_on](const letter<schema::PromptReady>& said) { go_on(said.read().getBlocks() > 0); },
      [go_on](const caf::error&) { go_on(false); });
}

result<void> accept(self_pointer self, const letter<schema::GenerateRequest>& ask,
  const generation_sink_actor& sink, const placement_actor& placement, const std::string& source = {}) {
  auto& state = self->state;
  if (state.drain.draining())
    return fail(errc::draining, "this worker takes no new work");
  if (auto checked = check_request(ask.read(), state.options.requests); !checked)
    return checked;
  const bool held = state.options.fetch && !source.empty() && needs_work(ask.read(), state.options.requests);
  if (auto taken = state.queue->accept(ask, held); !taken)
    return taken;
  watch(self, ask.read().getRequest(), sink);
  watch(self, ask.read().getRequest(), placement);
  if (!needs_work(ask.read(), state.options.requests))
    state.queue->drop(ask.read().getRequest());
  self->send(state.decode, ask, sink, placement);
  if (held)
    have_computed(self, ask, source);
  begin(self);
  return {};
}

letter<schema::GenerateAccepted> acceptance(self_pointer self, request_id request) {
  return letter<schema::GenerateAccepted>::make([&](schema::GenerateAccepted::Builder b) {
    b.setRequest(request);
    b.setWorker(self->state.options.worker);
  });
}

/// Blocks for a prompt, from whoever was asked for them.
void take_blocks(self_pointer self, request_id request, const prefix_answer& what) {
  if (!self->state.queue->answer(request, what, prefill_queue::clock::now())) {
    release(self, what.blocks);
    if (what.loading > 0 || what.elsewhere > 0)
      forgo(self, {request});
  }
  submit(self, false);
}

void stop_prompts(
  self_pointer self, const std::vector<dropped_prompt>& dropped, const std::vector<sequence_key>& keys) {
  std::vector<sequence_key> close;
  std::vector<request_id> unwanted;
  for (std::size_t i = 0; i < dropped.size(); ++i) {
    if (dropped[i].close)
      close.push_back(keys[i]);
    if (dropped[i].forgo || self->state.elsewhere.contains(keys[i]))
      unwanted.push_back(keys[i]);
  }
  if (!close.empty()) {
    self->state.options.recalled->add(close);
    self->send(self->state.device, pack_close(close));
  }
  forgo(self, unwanted);
  for (const auto& each : dropped)
    release(self, each.unused);
  begin(self);
  submit(self, false);
}

/// Of requests whose prompt is done nobody waits for blocks any more.
void forgo_elsewhere(self_pointer self, const std::vector<request_id>& done) {
  std::vector<request_id> over;
  for (const auto request : done)
    if (self->state.elsewhere.contains(request))
      over.push_back(request);
  forgo(self, over);
}

/// Ends requests, whatever they are doing.
void cancel(self_pointer self, const letter<schema::CancelRequest>& mail) {
  std::vector<dropped_prompt> dropped;
  std::vector<sequence_key> keys;
  for (const auto request : mail.read().getRequests()) {
    dropped.push_back(self->state.queue->drop(request));
    keys.push_back(request);
  }
  // Straight to the device, whatever decode is doing: no step begins with them after this.
  stop_prompts(self, dropped, keys);
  self->send(self->state.decode, mail);
}

/// A router or a consumer is gone: nobody would grant credit or say that a request is not wanted any more.
void on_down(self_pointer self, const caf::actor_addr& actor) {
  const auto orphans = self->state.watched.of(actor);
  if (orphans.empty())
    return;
  cancel(self, letter<schema::CancelRequest>::make([&](schema::CancelRequest::Builder b) {
    write_keys(b.initRequests(static_cast<unsigned>(orphans.size())), orphans);
    b.setCause(schema::EndCause::PEER_LOST);
  }));
}

letter<schema::ActorStatus> describe(const prefill_actor_state& state) {
  const auto& queue = *state.queue;
  const gauge gauges[] = {
    {"queued", static_cast<double>(queue.queued())},
    {"prompts", static_cast<double>(queue.active())},
    {"requests", static_cast<double>(queue.size())},
    {"cached_tokens", static_cast<double>(queue.cached_tokens().all)},
    {"watched", static_cast<double>(state.watched.size())},
  };
  return status_letter("prefill", state.drain.draining() ? "draining" : "ready", "", gauges);
}

} // namespace

prefill_behaviour::behavior_type prefill(self_pointer self, const device_actor& device,
  const decode_actor& decode, const cache_actor& cache, const prefill_options& options,
  std::shared_ptr<engine_counters> counters) {
  auto& state = self->state;
  state.queue = std::make_unique<prefill_queue>(options.limits);
  state.options = options;
  state.counters = std::move(counters);
  state.device = device;
  state.decode = decode;
  state.cache = cache;
  // A worker without one of its parts is none: all of it ends.
  self->link_to(device);
  self->link_to(decode);
  self->link_to(cache);
  if (options.fetch)
    self->link_to(options.fetch);
  self->set_down_handler([self](const caf::down_msg& message) { on_down(self, message.source); });
  return {
    [self](const letter<schema::GenerateRequest>& ask, const generation_sink_actor& sink,
      const placement_actor& placement) -> caf::result<letter<schema::GenerateAccepted>> {
      if (const auto accepted = accept(self, ask, sink, placement); !accepted)
        return to_caf_error(accepted.error());
      return acceptance(self, ask.read().getRequest());
    },
    [self](const letter<schema::GenerateRequest>& ask, const generation_sink_actor& sink,
      const placement_actor& placement,
      const std::string& source) -> caf::result<letter<schema::GenerateAccepted>> {
      if (const auto accepted = accept(self, ask, sink, placement, source); !accepted)
        return to_caf_error(accepted.error());
      return acceptance(self, ask.read().getRequest());
    },
    [self](const letter<schema::CreditGrant>& mail) { self->send(self->state.decode, mail); },
    [self](const letter<schema::CancelRequest>& mail) { cancel(self, mail); },
    [self](const letter<schema::Recompute>& mail) {
      self->state.queue->recompute(mail.read().getRequest(), read_ids(mail.read().getTokens()));
      begin(self);
    },
    [self](const letter<schema::StreamsEnded>& mail) {
      std::vector<dropped_prompt> dropped;
      std::vector<sequence_key> keys;
      for (const auto request : mail.read().getRequests()) {
        dropped.push_back(self->state.queue->ended(request));
        keys.push_back(request);
        for (const auto& actor : self->state.watched.remove(request))
          self->demonitor(actor);
      }
      stop_prompts(self, dropped, keys);
      self->state.drain.check(self->state.queue->size());
    },
    [self](const letter<schema::StepResult>& mail) {
      self->state.seen = mail.read().getStep();
      const auto begun = self->state.queue->take(unpack(mail.read()));
      if (!self->state.elsewhere.empty())
        forgo_elsewhere(self, begun);
      if (const auto closing = self->state.queue->take_closing(); !closing.empty())
        self->send(self->state.device, pack_close(closing));
      release(self, self->state.queue->take_unused());
      forgo(self, self->state.queue->take_forgone());
      submit(self, true);
      begin(self);
    },
    [self](const letter<schema::BlocksFreed>&) {
      self->state.queue->unblock();
      submit(self, false);
      begin(self);
    },
    [self](const letter<schema::CacheFound>& mail) {
      take_blocks(self, mail.read().getRequest(), read_answer(mail.read()));
    },
    [self](const letter<schema::PromptBrought>& mail) {
      if (mail.read().getElsewhere() == 0)
        self->state.elsewhere.erase(mail.read().getRequest());
      take_blocks(self, mail.read().getRequest(), read_brought(mail.read()));
    },
    [self](status_atom) { return describe(self->state); },
    [self](drain_atom) {
      auto promise = self->make_response_promise<letter<schema::Drained>>();
      self->state.drain.add(promise);
      self->state.drain.check(self->state.queue->size());
      return promise;
    },
    [self](stop_atom) {
      self->send(self->state.decode, stop_atom::value);
      if (self->state.options.fetch)
        self->send(self->state.options.fetch, stop_atom::value);
      self->quit();
    },
    [self](tick_atom) {
      self->state.timer = false;
      const auto now = prefill_queue::clock::now();
      forgo(self, self->state.queue->expire(now - cache_patience, now));
      release(self, self->state.queue->take_unused());
      begin(self);
      submit(self, false);
    },
  };
}

} // namespace godwit
