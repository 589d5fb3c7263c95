#include "actors/session/session.hpp"

#include "actors/session/event_history.hpp"
#include "actors/session/event_streams.hpp"
#include "actors/session/fork.hpp"
#include "actors/session/generation_sink.hpp"
#include "actors/session/prompt_maker.hpp"
#include "actors/session/session_core.hpp"
#include "actors/session/session_views.hpp"
#include "actors/trace/spawn_traced.hpp"
#include "messages/actor_error.hpp"
#include "messages/text.hpp"

#include <caf/actor_system.hpp>
#include <caf/exit_reason.hpp>
#include <caf/send.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/system_messages.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <caf/typed_response_promise.hpp>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <utility>

namespace godwit {

namespace {

/// The journal's answer on its way from the journal's thread.
struct append_done {
  result<sequence_number> outcome;
};

} // namespace

} // namespace godwit

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(godwit::append_done)

namespace godwit {

namespace {

using orphan_atom = caf::atom_constant<caf::atom("orphan")>;
using end_atom = caf::atom_constant<caf::atom("end")>;

/// What a session answers to itself, beside its public interface.
using inner_actor = session_actor::extend<
  // An append is done.
  caf::reacts_to<append_done>,
  // Nobody can send tokens of this generation any more.
  caf::reacts_to<orphan_atom, request_id>,
  // The actor was lost before it had begun: it ends now.
  caf::reacts_to<end_atom>,
  // The time for which a tick was asked for; one that is not the last asked for is ignored.
  caf::reacts_to<tick_atom, std::int64_t>>;

constexpr auto never = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t milliseconds_a_second = 1000;
/// Records that a stream which has fallen behind reads at once.
constexpr std::size_t history_page = 64;

class session_shell;

struct session_actor_state {
  static inline const char* name = "session";
  std::unique_ptr<session_shell> shell;
};

using self_pointer = inner_actor::stateful_pointer<session_actor_state>;

session_core_config core_config(const session_config& config) {
  return {config.records, config.model, {config.node, config.incarnation, config.model.fingerprint},
    config.time, config.next_request, config.limits};
}

/// Joins a session's core to the actors around it.
class session_shell final : public session_ports {
 public:
  session_shell(self_pointer self, session_id session, std::shared_ptr<const session_config> config)
    : self_(self), config_(std::move(config)), core_(session, core_config(*config_), *this),
      history_(session, config_->records, history_page),
      streams_(core_.machine(), history_, config_->limits.subscriptions,
        [this](
          std::uint64_t number, letter<schema::EventBatch> batch) { deliver(number, std::move(batch)); }) {}

  void begin(const session_start& start) {
    if (auto revived = core_.revive(start.epoch); !revived) {
      broken_ = revived.error();
      report(*broken_);
      // The next one who asks tries again with a new actor.
      self_->delayed_send(self_, std::chrono::seconds(1), stop_atom::value);
      return;
    }
    looks_only_ = start.look_only;
    if (start.claim)
      if (const auto claimed = core_.claim(); !claimed && !broken_) {
        // Without the journal's word it is nobody's to show: its owner may go on with it.
        report(claimed.error());
        lost_ = true;
        broken_ = claimed.error();
      }
    if (!looks_only_ && !broken_)
      core_.start();
    begun_ = true;
    // An actor cannot end while it is being made.
    if (broken_)
      self_->send(self_, end_atom::value);
  }
  void end() { self_->quit(to_caf_error(*broken_)); }
  /// The actor is to end. @param reason one of ours is told to whoever listens
  void evict(const caf::error& reason) {
    const auto why = from_caf_error(reason);
    const bool elsewhere = why.code == errc::stale_epoch || why.code == errc::not_found;
    if (elsewhere && !broken_)
      core_.fence(why);
    else if (reason)
      self_->quit(reason);
  }

  /// Why the session cannot be used at all.
  const std::optional<error>& broken() const { return broken_; }
  session_core& core() { return core_; }

  using informed = std::function<void(result<letter<schema::SessionInfo>>)>;

  /// The session with what the cache has of it.
  void inform(const informed& done) {
    const auto& machine = core_.machine();
    if (broken_ || looks_only_ || !config_->cache || machine.tokens().empty())
      return done(info());
    self_->request(config_->cache, config_->limits.probe_timeout, cache_letter<schema::CacheProbe>())
      .then([this, done](const letter<schema::CacheHoldings>& has) { done(info(has.read())); },
        [this, done](const caf::error&) { done(info()); });
  }
  /// Moves the session's KV to the lowest tier.
  void suspend(const informed& done) {
    const auto& machine = core_.machine();
    if (machine.closed())
      return done(fail(errc::conflict, "the session is closed", {}, "session_closed"));
    if (machine.running() != 0 || core_.active() != 0)
      return done(fail(errc::conflict, "a turn is running", {}, "turn_running"));
    if (!config_->cache || machine.tokens().empty()) {
      suspended_ = true;
      return inform(done);
    }
    self_->request(config_->cache, config_->limits.suspend_timeout, cache_letter<schema::CacheSuspend>())
      .then(
        [this, done](const letter<schema::CacheHoldings>& has) {
          suspended_ = core_.machine().running() == 0;
          done(info(has.read()));
        },
        [done](const caf::error& why) { done(tl::unexpected<error>(from_caf_error(why))); });
  }
  using pinned = std::function<void(result<letter<schema::CachePinned>>)>;

  /// Keeps what the cache has of the session. An earlier pin ends when the new one holds.
  void pin(std::uint32_t seconds, const pinned& done) {
    if (core_.machine().closed())
      return done(fail(errc::conflict, "the session is closed", {}, "session_closed"));
    if (!config_->cache || core_.machine().tokens().empty())
      return done(fail(errc::conflict, "the cache has nothing of this session yet", {}, "nothing_cached"));
    const auto ask = cache_letter<schema::CachePin>([seconds](auto b) { b.setSeconds(seconds); });
    self_->request(config_->cache, config_->limits.request_timeout, ask)
      .then(
        [this, seconds, done](const letter<schema::CachePinned>& made) {
          unpin();
          pin_ = {
            made.read().getPin(), config_->time->steady_ms() + std::int64_t{seconds} * milliseconds_a_second};
          done(made);
        },
        [done](const caf::error& why) { done(tl::unexpected<error>(pin_refusal(from_caf_error(why)))); });
  }
  /// Ends the session's pin, if it has one.
  void unpin() {
    if (pin_.number != 0)
      self_->send(config_->cache, letter<schema::CacheUnpin>::make([&](schema::CacheUnpin::Builder b) {
        b.setTenant(core_.machine().settings().getTenant());
        b.setPin(pin_.number);
      }));
    pin_ = {};
  }

  result<letter<schema::SessionInfo>> info(schema::CacheHoldings::Reader has) const {
    const session_kv kv{has.getDevice(), has.getHost(), has.getDisk(), suspended_};
    return session_info(core_.machine(), history_.oldest().value_or(0), &kv);
  }
  result<letter<schema::SessionInfo>> info() const {
    if (!broken_) {
      const session_kv none{0, 0, 0, true};
      return session_info(core_.machine(), history_.oldest().value_or(0), suspended_ ? &none : nullptr);
    }
    if (broken_->code != errc::quarantined && broken_->code != errc::corrupt
        && broken_->code != errc::unsupported)
      return tl::unexpected<error>(*broken_);
    return letter<schema::SessionInfo>::make([&](schema::SessionInfo::Builder b) {
      b.setId(core_.machine().id().value);
      b.setStatus("quarantined");
    });
  }

  result<letter<schema::Subscribed>> subscribe(
    const letter<schema::SubscribeRequest>& request, const event_sink_actor& sink) {
    const auto number = streams_.open(request.read());
    if (!number)
      return fail(number);
    sinks_.emplace(*number, sink);
    self_->monitor(sink);
    opened_.push_back(*number);
    return letter<schema::Subscribed>::make(
      [&](schema::Subscribed::Builder b) { b.setSubscription(*number); });
  }
  /// Sends what opened streams begin with: behind the answer to their opening.
  void feed_opened() {
    for (const auto number : std::exchange(opened_, {}))
      streams_.feed(number);
  }
  void grant(schema::EventCredit::Reader credit) {
    streams_.grant(credit.getSubscription(), credit.getEvents());
  }
  void drop(std::uint64_t subscription, bool client_left) {
    forget(subscription);
    if (const auto turn = streams_.drop(subscription, client_left); turn != 0)
      core_.cancel(turn, schema::EndCause::CLIENT_LEFT, [](const result<letter<schema::TurnState>>&) {});
  }
  void sink_down(const caf::actor_addr& address) {
    // Only Unsubscribe says that a client has left: a gateway may go for its own reasons.
    while (true) {
      const auto found = std::find_if(
        sinks_.begin(), sinks_.end(), [&](const auto& entry) { return entry.second.address() == address; });
      if (found == sinks_.end())
        return;
      drop(found->first, false);
    }
  }

  result<letter<schema::SessionInfo>> fork(schema::ForkRequest::Reader request) {
    if (core_.draining())
      return fail(errc::draining, "this node is shutting down and opens no sessions");
    const std::string at = text_of(request.getAt());
    return fork_session(*config_->records, core_.machine(), at,
      {new_session_id(config_->random), {config_->node, config_->incarnation, config_->model.fingerprint},
        config_->time->wall_ms(), config_->model.text, config_->limits.fork_records,
        config_->limits.read_page});
  }

  /// A session with a pin stays, since nobody else knows its number.
  bool quiet() const {
    return broken_ || (core_.quiet() && streams_.size() == 0 && config_->time->steady_ms() >= pin_.until);
  }

  void stop() {
    core_.stop();
    streams_.fail_all({errc::draining, "the session is leaving this node", {}, {}});
  }

  /// An error once the session is another's.
  caf::result<letter<schema::ActorStatus>> status() const {
    if (broken_ && lost_)
      return to_caf_error(*broken_);
    return letter<schema::ActorStatus>::make([&](schema::ActorStatus::Builder b) {
      b.setName("session");
      b.setState(broken_ ? "stopped" : core_.draining() ? "draining" : "ready");
      if (broken_)
        b.setReason(text_view(broken_->message));
      auto gauges = b.initGauges(2);
      gauges[0].setName("streams");
      gauges[0].setValue(static_cast<double>(streams_.size()));
      gauges[1].setName("running_turns");
      gauges[1].setValue(core_.active());
    });
  }

  void tick(std::int64_t at) {
    if (at != wake_at_)
      return;
    wake_at_ = never;
    core_.tick();
  }

  // session_ports

  void append(append_request request) override {
    config_->records->append(std::move(request), [me = inner_actor(self_)](result<sequence_number> outcome) {
      caf::anon_send(me, append_done{std::move(outcome)});
    });
  }
  void prepare(prompt_task task) override {
    const auto ticket = task.ticket;
    std::make_shared<prompt_maker<self_pointer>>(self_, config_->tokenizer, config_->model.text,
      config_->limits.request_timeout, std::move(task),
      [this, ticket](result<prepared_prompt> prompt) { core_.prepared(ticket, std::move(prompt)); })
      ->start();
  }
  void generate(letter<schema::GenerateRequest> request) override {
    const auto number = request.read().getRequest();
    const auto sink = make_generation_sink(self_->system(), caf::strong_actor_ptr(self_->ctrl()),
      [me = inner_actor(self_), number] { caf::anon_send(me, orphan_atom::value, number); });
    generations_.add(sink);
    self_->request(config_->router, config_->limits.request_timeout, std::move(request), sink)
      .then([this, number](const letter<schema::GenerateAccepted>&) { core_.generating(number, {}); },
        [this, number](
          const caf::error& why) { core_.generating(number, tl::unexpected<error>(from_caf_error(why))); });
  }
  void grant(request_id request, std::uint32_t tokens) override {
    self_->send(config_->router, letter<schema::CreditGrant>::make([&](schema::CreditGrant::Builder b) {
      b.setRequest(request);
      b.setTokens(tokens);
    }));
  }
  void abandon(request_id request, schema::EndCause cause) override {
    self_->send(config_->router, letter<schema::CancelRequest>::make([&](schema::CancelRequest::Builder b) {
      b.initRequests(1).set(0, request);
      b.setCause(cause);
    }));
  }
  void passed(const event_maker& order) override { history_.passed(order); }
  void committed(const std::vector<session_event>& events) override {
    suspended_ = suspended_ && core_.machine().running() == 0;
    streams_.committed(events);
  }
  void wake_in(std::chrono::milliseconds delay) override {
    const auto at = config_->time->steady_ms() + delay.count();
    if (at >= wake_at_)
      return;
    wake_at_ = at;
    self_->delayed_send(self_, delay, tick_atom::value, at);
  }
  void lost(const error& why) override {
    // That another node took the session is how the mesh works, and no failure.
    if (why.code != errc::stale_epoch)
      report(why);
    streams_.fail_all(why);
    lost_ = true;
    broken_ = why;
    if (begun_)
      self_->quit(to_caf_error(why));
  }
  void report(const error& what) override {
    if (config_->report)
      config_->report(core_.machine().id(), what);
  }

 private:
  /// What the cache refuses, in the words of the session's interface: none of it is the node's fault.
  static error pin_refusal(error why) {
    if (why.code == errc::resource_exhausted)
      return {errc::conflict, std::move(why.message), {}, "pin_quota"};
    if (why.code == errc::not_found)
      return {errc::conflict, "the device has nothing of this session", {}, "nothing_cached"};
    return why;
  }
  /// The session's text, as the cache is asked for it.
  /// @param more sets what else there is
  template <class Schema, class More = void (*)(typename Schema::Builder)>
  letter<Schema> cache_letter(More more = [](typename Schema::Builder) {}) const {
    const auto& machine = core_.machine();
    return letter<Schema>::make([&](typename Schema::Builder b) {
      b.setTenant(machine.settings().getTenant());
      auto tokens = b.initTokens(static_cast<unsigned>(machine.tokens().size()));
      for (unsigned i = 0; i < tokens.size(); ++i)
        tokens.set(i, machine.tokens()[i]);
      more(b);
    });
  }
  void deliver(std::uint64_t number, letter<schema::EventBatch> batch) {
    const auto found = sinks_.find(number);
    if (found == sinks_.end())
      return;
    const bool ended = batch.read().getEnded();
    self_->send(found->second, std::move(batch));
    if (ended)
      forget(number);
  }
  void forget(std::uint64_t number) {
    const auto found = sinks_.find(number);
    if (found == sinks_.end())
      return;
    self_->demonitor(found->second.address());
    sinks_.erase(found);
  }

  self_pointer self_;
  std::shared_ptr<const session_config> config_;
  session_core core_;
  event_history history_;
  event_streams streams_;
  std::map<std::uint64_t, event_sink_actor> sinks_;
  std::vector<std::uint64_t> opened_;
  generation_sinks generations_;
  std::optional<error> broken_;
  bool begun_ = false;
  bool looks_only_ = false;
  bool lost_ = false;      ///< to another node, or erased, or not claimed
  bool suspended_ = false; ///< since its last turn
  struct {
    std::uint64_t number = 0;                                      ///< 0: none
    std::int64_t until = std::numeric_limits<std::int64_t>::min(); ///< steady
  } pin_;
  std::int64_t wake_at_ = never;
};

/// An answer that comes later, as a callback for the core.
template <class Schema>
auto deliver_to(caf::typed_response_promise<letter<Schema>> promise) {
  return [promise](result<letter<Schema>> outcome) mutable {
    if (outcome)
      promise.deliver(std::move(*outcome));
    else
      promise.deliver(to_caf_error(outcome.error()));
  };
}

template <class Schema>
caf::result<letter<Schema>> answer(result<letter<Schema>> outcome) {
  if (outcome)
    return std::move(*outcome);
  return to_caf_error(outcome.error());
}

inner_actor::behavior_type session(self_pointer self, session_id id,
  std::shared_ptr<const session_config> config, const session_start& start) {
  self->state.shell = std::make_unique<session_shell>(self, std::move(id), std::move(config));
  self->set_down_handler([self](const caf::down_msg& down) { self->state.shell->sink_down(down.source); });
  self->set_exit_handler([self](const caf::exit_msg& exit) { self->state.shell->evict(exit.reason); });
  self->state.shell->begin(start);
  return {
    [self](info_atom) -> caf::result<letter<schema::SessionInfo>> {
      auto promise = self->make_response_promise<letter<schema::SessionInfo>>();
      self->state.shell->inform(deliver_to<schema::SessionInfo>(promise));
      return promise;
    },
    [self](suspend_atom) -> caf::result<letter<schema::SessionInfo>> {
      auto& shell = *self->state.shell;
      if (shell.broken())
        return to_caf_error(*shell.broken());
      auto promise = self->make_response_promise<letter<schema::SessionInfo>>();
      shell.suspend(deliver_to<schema::SessionInfo>(promise));
      return promise;
    },
    [self](const letter<schema::CachePin>& mail) -> caf::result<letter<schema::CachePinned>> {
      auto& shell = *self->state.shell;
      if (shell.broken())
        return to_caf_error(*shell.broken());
      auto promise = self->make_response_promise<letter<schema::CachePinned>>();
      shell.pin(mail.read().getSeconds(), deliver_to<schema::CachePinned>(promise));
      return promise;
    },
    [self](const letter<schema::CacheUnpin>&) {
      self->state.shell->unpin();
      return letter<schema::CachePinned>();
    },
    [self](transcript_atom) -> caf::result<letter<schema::Transcript>> {
      auto& shell = *self->state.shell;
      if (shell.broken())
        return to_caf_error(*shell.broken());
      return session_transcript(shell.core().machine());
    },
    [self](const letter<schema::PostMessage>& mail) -> caf::result<letter<schema::MessageAccepted>> {
      auto& shell = *self->state.shell;
      if (shell.broken())
        return to_caf_error(*shell.broken());
      auto promise = self->make_response_promise<letter<schema::MessageAccepted>>();
      shell.core().post(mail, deliver_to<schema::MessageAccepted>(promise));
      return promise;
    },
    [self](const letter<schema::SubscribeRequest>& mail,
      const event_sink_actor& sink) -> caf::result<letter<schema::Subscribed>> {
      auto& shell = *self->state.shell;
      if (shell.broken())
        return to_caf_error(*shell.broken());
      auto opened = shell.subscribe(mail, sink);
      if (!opened)
        return to_caf_error(opened.error());
      auto promise = self->make_response_promise<letter<schema::Subscribed>>();
      promise.deliver(std::move(*opened));
      shell.feed_opened();
      return promise;
    },
    [self](const letter<schema::EventCredit>& mail) { self->state.shell->grant(mail.read()); },
    [self](const letter<schema::Unsubscribe>& mail) {
      self->state.shell->drop(mail.read().getSubscription(), mail.read().getClientLeft());
    },
    [self](const letter<schema::CancelTurn>& mail) -> caf::result<letter<schema::TurnState>> {
      auto& shell = *self->state.shell;
      if (shell.broken())
        return to_caf_error(*shell.broken());
      auto promise = self->make_response_promise<letter<schema::TurnState>>();
      shell.core().cancel(
        mail.read().getTurn(), mail.read().getCause(), deliver_to<schema::TurnState>(promise));
      return promise;
    },
    [self](const letter<schema::ForkRequest>& mail) -> caf::result<letter<schema::SessionInfo>> {
      auto& shell = *self->state.shell;
      if (shell.broken())
        return to_caf_error(*shell.broken());
      return answer(shell.fork(mail.read()));
    },
    [self](const letter<schema::CloseSession>& mail) -> caf::result<letter<schema::SessionInfo>> {
      auto& shell = *self->state.shell;
      if (shell.broken())
        return answer(shell.info());
      auto promise = self->make_response_promise<letter<schema::SessionInfo>>();
      shell.unpin();
      shell.core().close(text_of(mail.read().getCause()), deliver_to<schema::SessionInfo>(promise));
      return promise;
    },
    [self](passivate_atom) {
      const bool quiet = self->state.shell->quiet();
      if (quiet)
        self->quit();
      return quiet;
    },
    [self](const letter<schema::TokenBatch>& mail) { self->state.shell->core().tokens(mail.read()); },
    [self](status_atom) { return self->state.shell->status(); },
    [self](drain_atom) -> caf::result<letter<schema::Drained>> {
      auto& shell = *self->state.shell;
      if (shell.broken())
        return letter<schema::Drained>();
      auto promise = self->make_response_promise<letter<schema::Drained>>();
      shell.core().drain([promise]() mutable { promise.deliver(letter<schema::Drained>()); });
      return promise;
    },
    [self](stop_atom) {
      self->state.shell->stop();
      self->quit();
    },
    [self](orphan_atom, request_id request) { self->state.shell->core().orphaned(request); },
    [self](end_atom) { self->state.shell->end(); },
    [self](append_done& done) { self->state.shell->core().appended(std::move(done.outcome)); },
    [self](tick_atom, std::int64_t at) { self->state.shell->tick(at); },
  };
}

} // namespace

session_actor spawn_session(caf::actor_system& system, session_id id,
  std::shared_ptr<const session_config> config, const session_start& start) {
  return spawn_traced(system, session, std::move(id), std::move(config), start);
}

session_id new_session_id(const std::function<std::uint64_t()>& random) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string id = "ses_";
  for (int half = 0; half < 2; ++half) {
    auto bits = random();
    for (int i = 0; i < 16; ++i, bits >>= 4)
      id += digits[bits & 15U];
  }
  return session_id(std::move(id));
}

bool is_session_id(std::string_view text) {
  return text.size() == 36 && text.starts_with("ses_")
         && std::all_of(text.begin() + 4, text.end(),
           [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

} // namespace godwit
