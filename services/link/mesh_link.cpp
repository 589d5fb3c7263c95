#include "services/link/mesh_link.hpp"

#include "messages/check.hpp"
#include "services/link/packing.hpp"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <utility>

namespace godwit::link {

namespace {

using namespace std::chrono_literals;

/// How old a snapshot of the peers may be; not more than an idle thread sleeps.
constexpr moment snapshot_age{500'000};
/// Nodes and topics for which something found no place that are told apart.
constexpr std::size_t most_overrun = 1024;
/// Rounds of a busy thread between two looks at everything.
constexpr unsigned busy_rounds = 4;
/// Who has more to say within that time says it to the thread: the two work at the same time then.
constexpr moment at_once_pause{10};

class threaded_link final : public mesh_link, private message_sink {
 public:
  threaded_link(link_options options, std::unique_ptr<zmq_transport> network, std::shared_ptr<receiver> upper,
    std::unique_ptr<link_counters> counters)
    : options_(std::move(options)), counters_(std::move(counters)), network_(std::move(network)),
      upper_(std::move(upper)),
      core_(greeting(options_), options_.core, *network_, *upper_, *counters_, options_.seed),
      thread_([this] { run(); }) {}

  ~threaded_link() override { stop(end_cause::draining, 0ms); }

  const node_name& self() const override { return options_.node; }
  const bound_endpoints& bound() const override { return network_->bound(); }
  const link_counters& counters() const override { return *counters_; }
  std::uint64_t incarnation() const override { return incarnation_; }

  void rise(std::uint64_t least) override {
    post(0, [this, least](moment) {
      core_.members().rise(least);
      incarnation_ = core_.members().self().incarnation;
    });
  }

  void add_peer(peer_record record) override {
    must({}, 0, [this, record = std::move(record)](moment now) mutable { add(std::move(record), now); });
  }

  void remove_peer(node_name name, end_cause cause) override {
    must({}, 0, [this, name = std::move(name), cause](moment now) {
      network_->allowed().forget(name);
      core_.members().remove(name, cause, now);
    });
  }

  std::vector<peer_status> members() override {
    struct answer {
      std::mutex mutex;
      std::condition_variable ready;
      std::optional<std::vector<peer_status>> all;
    };
    auto held = std::make_shared<answer>();
    const bool posted = post(
      0,
      [this, held](moment) {
        auto all = core_.status();
        const std::lock_guard lock(held->mutex);
        held->all = std::move(all);
        held->ready.notify_all();
      },
      room::reserved);
    std::unique_lock lock(held->mutex);
    if (!posted || !held->ready.wait_for(lock, 5s, [&] { return held->all.has_value(); }))
      return {};
    return std::move(*held->all);
  }

  std::vector<peer_status> snapshot() const override {
    const std::lock_guard lock(snapshot_mutex_);
    return snapshot_;
  }

  void send(const actor_address& whom, const message& what, std::chrono::microseconds within) override {
    auto packed = pack(to(frame_kind::letter, whom), what);
    const auto which = lane_of(what);
    if (at_once(whom.node, which,
          [&](moment at) { core_.send(whom.node, which, std::move(packed), at + within, at); }))
      return;
    const auto bytes = packed.bytes();
    const auto deadline = now() + within;
    if (!post(bytes, [this, node = whom.node, which, packed = std::move(packed), deadline](
                       moment at) mutable { core_.send(node, which, std::move(packed), deadline, at); }))
      lost_letter(whom.node);
  }

  std::uint64_t request(const actor_address& whom, const message& what, std::chrono::microseconds within,
    answered done) override {
    const auto number = ++last_number_;
    auto header = to(frame_kind::request, whom);
    header.correlation = number;
    auto packed = pack(header, what);
    const auto which = lane_of(what);
    if (within.count() > 0 && at_once(whom.node, which, [&](moment at) {
          core_.request(whom.node, which, std::move(packed), number, at + within, std::move(done), at);
        }))
      return number;
    const auto bytes = packed.bytes();
    const auto deadline = now() + within;
    // Shared, so that it can still be called if the queue does not take the command.
    auto shared = std::make_shared<answered>(std::move(done));
    if (!post(bytes, [this, node = whom.node, which, packed = std::move(packed), number, deadline, shared](
                       moment at) mutable {
          core_.request(node, which, std::move(packed), number, deadline, std::move(*shared), at);
        }))
      (*shared)(refusal());
    return number;
  }

  void cancel(std::uint64_t number, end_cause cause) override {
    must({}, 0, [this, number, cause](moment at) { core_.cancel(number, cause, at); });
  }

  void reply(const reply_token& token, const message& what) override {
    frame_header header;
    header.kind = frame_kind::reply;
    header.correlation = token.correlation;
    answer(token, lane_of(what), pack(header, what));
  }

  void fail(const reply_token& token, const error& why) override {
    answer(token, lane::letters, failure_parcel(frame_kind::failure, token, why));
  }

  void refer(const std::string& node, frame_kind kind, std::uint64_t actor, std::uint64_t count,
    end_cause cause) override {
    frame_header header;
    header.kind = kind;
    header.source = actor;
    header.correlation = count;
    header.cause = cause;
    must(node, 0, [this, node, packed = parcel{encode(header), {}}](moment at) mutable {
      core_.send(node, lane::letters, std::move(packed), never, at);
    });
  }

  void overload(const std::string& node) override { lost(node); }

  std::uint64_t open_stream(
    const actor_address& whom, const message& what, std::uint64_t credit, stream_sink sink) override {
    const auto number = ++last_number_;
    auto header = to(frame_kind::stream_open, whom);
    header.correlation = number;
    auto opening = what;
    opening.source = credit;
    auto packed = pack(header, opening);
    const auto bytes = packed.bytes();
    auto shared = std::make_shared<stream_sink>(std::move(sink));
    if (!post(bytes, [this, node = whom.node, which = lane_of(what), packed = std::move(packed), number,
                       credit, shared](moment at) mutable {
          core_.open_stream(node, which, std::move(packed), number, credit, std::move(*shared), at);
        }))
      (*shared)({nullptr, refusal().value(), false});
    return number;
  }

  void grant(std::uint64_t stream, std::uint64_t items) override {
    must({}, 0, [this, stream, items](moment at) { core_.grant(stream, items, at); });
  }

  void end_stream(std::uint64_t stream, end_cause cause) override {
    must({}, 0, [this, stream, cause](moment at) { core_.end_stream(stream, cause, at); });
  }

  bool stream_item(const reply_token& token, stream_credit& credit, const message& what) override {
    if (!credit.take())
      return false;
    frame_header header;
    header.kind = frame_kind::stream_item;
    header.correlation = token.correlation;
    auto item = what;
    item.source = 0;
    auto packed = pack(header, item);
    const auto bytes = packed.bytes();
    if (post(bytes, [this, token, which = lane_of(what), packed = std::move(packed)](
                      moment at) mutable { core_.stream_send(token, which, std::move(packed), false, at); }))
      return true;
    credit.items.fetch_add(1, std::memory_order_relaxed); // it was not sent
    return false;
  }

  void stream_end(const reply_token& token, stream_credit& credit, const std::optional<error>& why) override {
    if (!credit.open.exchange(false))
      return;
    if (why) {
      finish_stream(token, failure_parcel(frame_kind::stream_end, token, *why));
      return;
    }
    frame_header header;
    header.kind = frame_kind::stream_end;
    header.correlation = token.correlation;
    finish_stream(token, {encode(header), {}});
  }

  void publish(const std::string& topic, const message& what) override {
    frame_header header;
    header.kind = frame_kind::event;
    header.name = topic;
    auto event = what;
    event.attachments.clear();
    // Counted on the link's thread, so that the counts leave in their order.
    const bool posted =
      post(what.words.size(), [this, topic, header, words = std::vector(what.words.begin(), what.words.end()),
                                type = what.type, trace = what.trace](moment) mutable {
        header.name = topic;
        header.type = type;
        header.trace = trace;
        header.correlation = ++event_counts_[topic];
        link_counters::add(counters_->events_sent);
        network_->publish(topic, {encode(header, words), {}});
      });
    if (!posted)
      skip(topic);
  }

  void subscribe(const std::string& prefix) override {
    must({}, 0, [this, prefix](moment) { network_->subscribe(prefix); });
  }

  void stop(end_cause cause, std::chrono::milliseconds time) override {
    {
      const std::lock_guard lock(mutex_);
      if (!stopping_) {
        stopping_ = true;
        stop_cause_ = cause;
        stop_by_ = now() + time;
      }
    }
    network_->wake();
    const std::lock_guard lock(join_mutex_);
    if (thread_.joinable())
      thread_.join();
  }

 private:
  using command = std::function<void(moment)>;
  /// Which part of the queue a command may take.
  enum class room : std::uint8_t { common = 1, reserved = 2 };

  static hello greeting(const link_options& options) {
    return {.major = options.major,
      .minor = options.minor,
      .node = options.node,
      .incarnation = options.incarnation,
      .software = options.software,
      .hash_mode = options.hash_mode,
      .models = options.models};
  }

  moment now() const { return std::chrono::duration_cast<moment>(std::chrono::steady_clock::now() - begin_); }

  tl::unexpected<error> refusal() {
    const std::lock_guard lock(mutex_);
    return stopping_ ? godwit::fail(error_of(stop_cause_), "the link to other nodes has stopped")
                     : godwit::fail(errc::overloaded, "too much waits for other nodes");
  }

  void answer(const reply_token& token, lane which, parcel packed) {
    if (at_once(token.node, which, [&](moment at) { core_.reply(token, which, std::move(packed), at); }))
      return;
    const auto bytes = packed.bytes();
    must(token.node, bytes, [this, token, which, packed = std::move(packed)](moment at) mutable {
      core_.reply(token, which, std::move(packed), at);
    });
  }

  void finish_stream(const reply_token& token, parcel packed) {
    const auto bytes = packed.bytes();
    must(token.node, bytes, [this, token, packed = std::move(packed)](moment at) mutable {
      core_.stream_send(token, lane::letters, std::move(packed), true, at);
    });
  }

  /// On the link's thread.
  void add(peer_record record, moment now) {
    result<void> allowed;
    if (record.key)
      allowed = network_->allowed().allow({record.name, *record.key});
    if (allowed)
      return core_.members().add(std::move(record), now);
    // The key stays the other node's. Without one this node is not dialled, and shows why.
    link_counters::add(counters_->key_conflicts);
    network_->allowed().forget(record.name);
    record.key.reset();
    const auto name = record.name.value;
    core_.members().add(std::move(record), now);
    core_.members().find(name)->refusal = allowed.error().message;
  }

  /// What nobody could be told of if it were refused: has a part of the queue for itself, and costs the node
  /// its place if that is full too. @param node empty: whichever it is for, so all lose theirs
  void must(const std::string& node, std::size_t bytes, command what) {
    if (!post(bytes, std::move(what), room::reserved))
      lost(node);
  }

  void lost_letter(const std::string& node) {
    link_counters::add(counters_->dead_letters);
    lost(node);
  }

  /// Something for a node found no place.
  void lost(const std::string& node) {
    bool asleep = false;
    {
      const std::lock_guard lock(mutex_);
      if (stopping_)
        return; // everybody is told
      // Beyond that it hardly matters who else.
      overrun_.insert(overrun_.size() < most_overrun ? node : std::string());
      asleep = std::exchange(asleep_, false);
    }
    if (asleep)
      network_->wake();
  }

  /// An event found no place: the next one's count shows that.
  void skip(const std::string& topic) {
    const std::lock_guard lock(mutex_);
    if (!stopping_ && (skipped_.size() < most_overrun || skipped_.contains(topic)))
      ++skipped_[topic];
  }

  /// Does what the thread would have to be woken for, on this one: if the thread sleeps, nobody is told of
  /// anything by it, and what it sends leaves at once. @returns whether it was done
  template <class What>
  bool at_once(const std::string& node, lane which, const What& what) {
    if (which != lane::letters)
      return false; // pages take longer than waking it
    std::unique_lock turn(turn_, std::defer_lock);
    const auto at = now();
    {
      const std::lock_guard lock(mutex_);
      if (!asleep_ || stopping_ || at - last_at_once_ < at_once_pause || !turn.try_lock())
        return false;
      asleep_ = false; // what others want now is queued behind this
      last_at_once_ = at;
    }
    const bool done = core_.ready(node, which);
    bool wake = false;
    if (done) {
      what(at);
      wake = core_.flush(node, at);
      wake = network_->settle() || core_.due() < sleeps_until_ || wake;
    }
    {
      const std::lock_guard lock(mutex_);
      wake = wake || !commands_.empty() || !overrun_.empty() || stopping_;
      asleep_ = !wake;
    }
    turn.unlock();
    if (wake)
      network_->wake();
    return done;
  }

  /// Hands a command to the thread. @returns false if too many wait, or the link stops
  bool post(std::size_t bytes, command what, room may_take = room::common) {
    const auto times = static_cast<std::size_t>(may_take);
    bool asleep = false;
    {
      const std::lock_guard lock(mutex_);
      if (stopping_)
        return false;
      if (!commands_.empty()
          && (commands_.size() >= times * options_.commands.parcels
              || command_bytes_ + bytes > times * options_.commands.bytes)) {
        link_counters::add(counters_->overflows);
        return false;
      }
      commands_.push_back(std::move(what));
      posted_.store(true, std::memory_order_relaxed);
      command_bytes_ += bytes;
      asleep = std::exchange(asleep_, false);
    }
    if (asleep)
      network_->wake();
    return true;
  }

  // --- the thread ---

  void run() {
    unsigned busy = 0;
    std::unique_lock turn(turn_);
    for (;;) {
      bool any = run_commands();
      core_.tick(now());
      incarnation_ = core_.members().self().incarnation;
      take_snapshot(now());
      bool waits = core_.flush(now());
      any = network_->receive(*this) || any;
      // What came may have made answers, which need not wait for a poll.
      if (any && ++busy % busy_rounds != 0)
        continue;
      waits = core_.flush(now());
      if (ended(waits))
        break;
      if (any) {
        network_->wait(moment(0), turn);
        continue;
      }
      {
        const std::lock_guard lock(mutex_);
        if (!commands_.empty() || !overrun_.empty())
          continue;
        asleep_ = true;
      }
      const auto at = now();
      sleeps_until_ = std::min(core_.due(), at + snapshot_age);
      network_->wait(std::max(moment(0), sleeps_until_ - at), turn);
      const std::lock_guard lock(mutex_);
      asleep_ = false;
    }
    // Nobody is left waiting.
    core_.close(stop_cause_, now());
    run_commands();
    network_->linger(200ms);
  }

  void take_snapshot(moment at) {
    // Who has just heard that a peer is there, or is not, must not read otherwise.
    if (at < next_snapshot_ && core_.peer_changes() == seen_changes_)
      return;
    next_snapshot_ = at + snapshot_age;
    seen_changes_ = core_.peer_changes();
    auto all = core_.status();
    const std::lock_guard lock(snapshot_mutex_);
    snapshot_.swap(all);
  }

  bool run_commands() {
    {
      const std::lock_guard lock(mutex_);
      running_.swap(commands_);
      posted_.store(false, std::memory_order_relaxed);
      command_bytes_ = 0;
      if (!overrun_.empty())
        losing_.swap(overrun_);
      for (const auto& [topic, count] : skipped_)
        event_counts_[topic] += count;
      skipped_.clear();
    }
    link_counters::set(counters_->queued_commands, running_.size());
    const auto at = now();
    for (auto& each : running_)
      each(at);
    for (const auto& node : losing_) // behind what was taken before it
      core_.overload(node, at);
    const bool any = !running_.empty() || !losing_.empty();
    running_.clear();
    losing_.clear();
    return any;
  }

  bool ended(bool waits) {
    const std::lock_guard lock(mutex_);
    return stopping_ && commands_.empty() && (!waits || now() >= stop_by_);
  }

  void on_message(lane which, std::string_view who, const return_path& path,
    std::span<const received_frame> frames) override {
    core_.on_message(which, who, path, frames, now());
    // An answer that was made of it leaves before anything else is looked at. Those to bulk go together.
    if (which == lane::letters && posted_.load(std::memory_order_relaxed) && run_commands())
      core_.flush(now());
  }
  void on_channel_message(channel_id channel, std::span<const received_frame> frames) override {
    core_.on_channel_message(channel, frames, now());
  }
  void on_event_message(
    channel_id channel, std::string_view topic, std::span<const received_frame> frames) override {
    core_.on_event_message(channel, topic, frames, now());
  }

  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  link_options options_;
  std::unique_ptr<link_counters> counters_;
  std::unique_ptr<zmq_transport> network_;
  std::shared_ptr<receiver> upper_;
  core core_;
  std::map<std::string, std::uint64_t> event_counts_;
  /// Who holds it uses the core, the sockets and what else is the thread's: the thread itself unless it
  /// waits. Other threads only ever try to get it, so that they may hold locks of their own.
  std::mutex turn_;
  moment sleeps_until_{0}; ///< while it waits
  std::vector<command> running_;
  std::set<std::string> losing_;
  moment next_snapshot_{0};
  std::uint64_t seen_changes_ = 0; ///< of the core, at the last snapshot

  mutable std::mutex snapshot_mutex_;
  std::vector<peer_status> snapshot_;

  std::atomic<std::uint64_t> incarnation_{options_.incarnation};
  std::atomic<std::uint64_t> last_number_{0};
  std::mutex mutex_;
  std::vector<command> commands_;
  std::size_t command_bytes_ = 0;
  std::set<std::string> overrun_;                ///< nodes for which something found no place; "" are all
  std::map<std::string, std::uint64_t> skipped_; ///< events that found none, by topic
  bool asleep_ = false;
  moment last_at_once_ = -at_once_pause;
  std::atomic<bool> posted_{false}; ///< there are commands; written with the lock
  bool stopping_ = false;
  end_cause stop_cause_ = end_cause::none;
  moment stop_by_{0};
  std::mutex join_mutex_;
  std::thread thread_; ///< last: it uses all of the above
};

} // namespace

result<std::unique_ptr<mesh_link>> mesh_link::start(link_options options, std::shared_ptr<receiver> upper) {
  GODWIT_CHECK(upper != nullptr);
  if (!valid_node_name(options.node.value))
    return godwit::fail(errc::invalid_argument,
      "a node's name has 1 to 63 letters, digits, dots, hyphens or underscores", "node");
  if (options.sockets.keys && options.sockets.keys->node != options.node)
    return godwit::fail(errc::invalid_argument,
      "the keys are those of the node " + options.sockets.keys->node.value + ", not of " + options.node.value,
      "keys");
  options.sockets.node = options.node;
  if (options.incarnation == 0)
    options.incarnation = static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::system_clock::now().time_since_epoch())
                                                       .count());
  if (options.seed == 0)
    options.seed = std::random_device{}();
  auto counters = std::make_unique<link_counters>();
  auto network = zmq_transport::open(options.sockets, *counters);
  if (!network)
    return godwit::fail(network);
  return std::make_unique<threaded_link>(
    std::move(options), std::move(*network), std::move(upper), std::move(counters));
}

} // namespace godwit::link
