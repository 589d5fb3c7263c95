#pragma once

#include "actors/session/event_history.hpp"
#include "actors/session/event_streams.hpp"
#include "actors/session/fork.hpp"
#include "actors/session/generation_sink.hpp"
#include "actors/session/open_calls.hpp"
#include "actors/session/prompt_maker.hpp"
#include "actors/session/session.hpp"
#include "actors/session/session_core.hpp"
#include "actors/session/session_views.hpp"
#include "actors/trace/trace_scope.hpp"
#include "messages/actor_error.hpp"
#include "messages/catalogue.hpp"
#include "messages/text.hpp"

#include <caf/actor_system.hpp>
#include <caf/send.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/system_messages.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <algorithm>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <utility>

namespace godwit::detail {

/// The journal's answers on their way from other threads.
struct append_done {
  result<sequence_number> outcome;
};
struct question_done {
  journal_answer answer;
};

} // namespace godwit::detail

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(godwit::detail::append_done)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(godwit::detail::question_done)

namespace godwit::detail {

using orphan_atom = caf::atom_constant<caf::atom("orphan")>;
using end_atom = caf::atom_constant<caf::atom("end")>;

/// What a session answers to itself, beside its public interface.
using inner_actor = session_actor::extend<
  // An append is done.
  caf::reacts_to<append_done>,
  // The journal has answered a question.
  caf::reacts_to<question_done>,
  // Nobody can send tokens of this generation any more.
  caf::reacts_to<orphan_atom, request_id>,
  // The actor was lost before it had begun: it ends now.
  caf::reacts_to<end_atom>,
  // The time for which a tick was asked for; one that is not the last asked for is ignored.
  caf::reacts_to<tick_atom, std::int64_t>>;

inline constexpr auto never = std::numeric_limits<std::int64_t>::max();
inline constexpr std::int64_t milliseconds_a_second = 1000;
/// Records that a stream which has fallen behind reads at once.
inline constexpr std::size_t history_page = 64;

class session_shell;

struct session_actor_state {
  static inline const char* name = "session";
  std::unique_ptr<session_shell> shell;
};

using self_pointer = inner_actor::stateful_pointer<session_actor_state>;

inline session_core_config core_config(const session_config& config) {
  return {config.records, config.model, {config.node, config.incarnation, config.model.fingerprint},
    config.time, config.next_request, config.limits};
}

/// Joins a session's core to the actors around it.
class session_shell final : public session_ports {
 public:
  session_shell(self_pointer self, session_id session, std::shared_ptr<const session_config> config)
    : self_(self), config_(std::move(config)), core_(session, core_config(*config_), *this),
      history_(session, history_page),
      streams_(
        core_.machine(), history_, config_->limits.subscriptions,
        [this](std::uint64_t number, letter<schema::EventBatch> batch) { deliver(number, std::move(batch)); },
        [this](journal_question question) { consult(std::move(question)); }),
      open_(config_->limits.open_calls) {}

  void begin(const session_start& start) {
    looks_only_ = start.look_only;
    claims_ = start.claim;
    // An actor cannot end while it is being made.
    making_ = true;
    core_.revive(start.epoch, [this](const result<void>& revived) {
      if (revived && claims_)
        return core_.claim([this](const result<void>& claimed) {
          if (!claimed && !broken_) {
            // Without the journal's word it is nobody's to show: its owner may go on with it.
            report(claimed.error());
            lost_ = true;
            broken_ = claimed.error();
          }
          begun();
        });
      if (!revived) {
        broken_ = revived.error();
        report(*broken_);
        // The next one who asks tries again with a new actor.
        self_->delayed_send(self_, std::chrono::seconds(1), stop_atom::value);
      }
      begun();
    });
    making_ = false;
  }
  void end() { leave(*broken_); }
  /// The actor is to end. @param reason one of ours is told to whoever listens
  void evict(const caf::error& reason) {
    const auto why = from_caf_error(reason);
    const bool elsewhere = why.code == errc::stale_epoch || why.code == errc::not_found;
    if (elsewhere && !broken_) {
      core_.fence(why);
      // What the journal answers from now on is not heard.
      begun();
    } else if (reason) {
      open_.refuse(why);
      self_->quit(reason);
    }
  }

  /// A call waits until the journal was replayed.
  /// @returns false if too many do
  bool once_begun(std::function<void()> call) {
    if (begun_) {
      call();
      return true;
    }
    if (early_.size() >= config_->limits.waiting_commands)
      return false;
    early_.push_back(std::move(call));
    return true;
  }
  /// How it is, is told at once, but for one that is being claimed.
  bool shows_status() const { return begun_ || !claims_; }
  open_calls& open() { return open_; }

  /// Why the session cannot be used at all.
  const std::optional<error>& broken() const { return broken_; }
  session_core& core() { return core_; }

  using informed = std::function<void(result<letter<schema::SessionInfo>>)>;

  /// The session with what the cache has of it.
  void inform(const informed& done) {
    const auto& machine = core_.machine();
    if (broken_ || looks_only_ || !config_->cache || machine.tokens().empty())
      return show(std::nullopt, done);
    self_->request(config_->cache, config_->limits.probe_timeout, cache_letter<schema::CacheProbe>())
      .then([this, done](const letter<schema::CacheHoldings>& has) { show(kv_of(has.read()), done); },
        [this, done](const caf::error&) { show(std::nullopt, done); });
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
          show(kv_of(has.read()), done);
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

  /// The session and the oldest place that its journal has.
  void show(const std::optional<session_kv>& kv, const informed& done) {
    if (broken_)
      return done(broken_info());
    consult([this, kv, done, pages = history_.pages()](journal& records) -> journal_answer {
      const auto oldest = pages.oldest(records).value_or(0);
      return [this, kv, done, oldest] {
        const session_kv none{0, 0, 0, true};
        const auto* has = kv ? &*kv : suspended_ ? &none : nullptr;
        done(broken_ ? broken_info() : session_info(core_.machine(), oldest, has));
      };
    });
  }
  result<letter<schema::SessionInfo>> broken_info() const {
    if (broken_->code != errc::quarantined && broken_->code != errc::corrupt
        && broken_->code != errc::unsupported)
      return tl::unexpected<error>(*broken_);
    return letter<schema::SessionInfo>::make([&](schema::SessionInfo::Builder b) {
      b.setId(core_.machine().id().value);
      b.setStatus("quarantined");
    });
  }

  using subscribed = std::function<void(result<letter<schema::Subscribed>>)>;

  void subscribe(
    const letter<schema::SubscribeRequest>& request, const event_sink_actor& sink, const subscribed& done) {
    streams_.open(request.read(), [this, sink, done](const result<std::uint64_t>& number) {
      if (!number)
        return done(fail(number));
      sinks_.emplace(*number, sink);
      self_->monitor(sink);
      done(
        letter<schema::Subscribed>::make([&](schema::Subscribed::Builder b) { b.setSubscription(*number); }));
      // What it begins with comes behind the answer.
      streams_.feed(*number);
    });
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

  void fork(schema::ForkRequest::Reader request, const informed& done) {
    if (core_.draining())
      return done(fail(errc::draining, "this node is shutting down and opens no sessions"));
    const fork_order order{new_session_id(config_->random),
      {config_->node, config_->incarnation, config_->model.fingerprint}, config_->time->wall_ms(),
      config_->model.text, config_->limits.fork_records, config_->limits.read_page};
    // The session may go on meanwhile: the fork is of what it is now.
    consult([parent = std::make_shared<const session_machine>(core_.machine()), at = text_of(request.getAt()),
              order, done](journal& records) -> journal_answer {
      return [done, made = fork_session(records, *parent, at, order)] { done(made); };
    });
  }

  /// A session with a pin stays, since nobody else knows its number.
  bool quiet() const {
    return broken_
           || (begun_ && core_.quiet() && streams_.size() == 0 && open_.size() == 0
               && config_->time->steady_ms() >= pin_.until);
  }

  void stop() {
    const error why{errc::draining, "the session is leaving this node", {}, {}};
    core_.stop();
    streams_.fail_all(why);
    open_.refuse(broken_.value_or(why));
  }

  /// An error once the session is another's.
  result<letter<schema::ActorStatus>> status() const {
    if (broken_ && lost_)
      return tl::unexpected<error>(*broken_);
    return letter<schema::ActorStatus>::make([&](schema::ActorStatus::Builder b) {
      b.setName("session");
      b.setState(broken_ ? "stopped" : core_.draining() ? "draining" : begun_ ? "ready" : "starting");
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
  void consult(journal_question question) override {
    if (!config_->clerks)
      return question(*config_->records)();
    config_->clerks->ask(std::move(question), [me = inner_actor(self_)](journal_answer answer) {
      caf::anon_send(me, question_done{std::move(answer)});
    });
  }
  void claim(epoch_t expected, journal_record claimed, journal::claimed_head done) override {
    config_->records->begin_claim(core_.machine().id(), expected, config_->node, claimed,
      [me = inner_actor(self_), done = std::move(done)](result<journal_head> head) {
        caf::anon_send(me, question_done{[done, head = std::move(head)] { done(head); }});
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
    const trace_scope scope(core_.trace());
    self_->request(config_->router, config_->limits.request_timeout, std::move(request), sink)
      .then([this, number](const letter<schema::GenerateAccepted>&) { core_.generating(number, {}); },
        [this, number](
          const caf::error& why) { core_.generating(number, tl::unexpected<error>(from_caf_error(why))); });
  }
  void grant(request_id request, std::uint32_t tokens) override {
    const trace_scope scope(trace_or_current());
    self_->send(config_->router, letter<schema::CreditGrant>::make([&](schema::CreditGrant::Builder b) {
      b.setRequest(request);
      b.setTokens(tokens);
    }));
  }
  void abandon(request_id request, schema::EndCause cause) override {
    const trace_scope scope(trace_or_current());
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
      leave(why);
  }
  void report(const error& what) override {
    const trace_scope scope(trace_or_current());
    if (config_->report)
      config_->report(core_.machine().id(), what);
  }

 private:
  /// The journal was replayed, or will not be: calls that waited for it are taken.
  void begun() {
    if (begun_)
      return;
    if (!looks_only_ && !broken_)
      core_.start();
    begun_ = true;
    for (auto& call : std::exchange(early_, {}))
      call();
    if (broken_ && lost_)
      leave(*broken_);
  }
  void leave(const error& why) {
    open_.refuse(why);
    if (making_)
      self_->send(self_, end_atom::value);
    else
      self_->quit(to_caf_error(why));
  }
  /// That of the turn, or of whoever has called.
  trace_context trace_or_current() const {
    const auto turn = core_.trace();
    return turn ? *turn : current_trace();
  }
  session_kv kv_of(schema::CacheHoldings::Reader has) const {
    return {has.getDevice(), has.getHost(), has.getDisk(), suspended_};
  }
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
  generation_sinks generations_;
  open_calls open_;
  std::deque<std::function<void()>> early_; ///< calls that wait until it has begun
  std::optional<error> broken_;
  bool making_ = false; ///< the actor is
  bool claims_ = false; ///< at once
  bool begun_ = false;  ///< the journal was replayed, and claimed if it was to be
  bool looks_only_ = false;
  bool lost_ = false;      ///< to another node, or erased, or not claimed
  bool suspended_ = false; ///< since its last turn
  struct {
    std::uint64_t number = 0;                                      ///< 0: none
    std::int64_t until = std::numeric_limits<std::int64_t>::min(); ///< steady
  } pin_;
  std::int64_t wake_at_ = never;
};

} // namespace godwit::detail
