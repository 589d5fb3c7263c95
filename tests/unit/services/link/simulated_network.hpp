#pragma once

// A mesh in one thread: cores on a network of which every delay and fault comes from a seed.

#include "messages/schemas/tokenizer.capnp.h"
#include "services/link/core.hpp"

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace godwit::link::simulated {

inline constexpr moment second{1'000'000};
inline constexpr moment millisecond{1'000};

/// A letter with a number in it.
inline letter<schema::DecodeRequest> number(std::uint64_t value) {
  return letter<schema::DecodeRequest>::make([&](schema::DecodeRequest::Builder b) {
    auto ids = b.initIds(2);
    ids.set(0, static_cast<std::uint32_t>(value >> 32U));
    ids.set(1, static_cast<std::uint32_t>(value));
  });
}

inline std::uint64_t number_of(std::span<const std::byte> words) {
  const auto mail = letter<schema::DecodeRequest>::parse(words);
  if (!mail || mail->read().getIds().size() != 2)
    return 0;
  const auto ids = mail->read().getIds();
  return (std::uint64_t{ids[0]} << 32U) | ids[1];
}

inline parcel numbered(
  frame_kind kind, std::uint64_t correlation, std::uint64_t value, std::uint64_t source = 0) {
  frame_header header;
  header.kind = kind;
  header.correlation = correlation;
  header.source = source;
  header.name = "echo";
  return {encode(header, number(value).bytes()), {}};
}

inline std::vector<received_frame> frames_of(const parcel& what) {
  std::vector<received_frame> frames{{what.head, nullptr}};
  for (const auto& each : what.attachments)
    frames.push_back({*each, each});
  return frames;
}

class network;

/// One start of a node. Records what it is handed; answers requests with their own number unless told
/// otherwise.
class node : public transport, public receiver {
 public:
  node(network& net, const std::string& name, std::uint64_t incarnation, core_options options,
    std::uint64_t seed)
    : net_(net), subject(self_of(name, incarnation), options, *this, *this, counters, seed) {}

  static hello self_of(const std::string& name, std::uint64_t incarnation) {
    return {.node = node_name(name),
      .incarnation = incarnation,
      .software = "test",
      .hash_mode = "kv-1",
      .models = {}};
  }

  // transport
  channel_id dial(lane which, const peer_record& whom) override;
  void hang_up(channel_id channel) override;
  bool send(channel_id channel, parcel& what) override;
  bool answer(const return_path& path, parcel what) override;

  // receiver
  void on_letter(const incoming& mail) override {
    letters.push_back(number_of(mail.words));
    if (hear)
      hear(mail);
  }
  void on_request(const incoming& mail, const reply_token& token) override {
    requests.push_back(number_of(mail.words));
    if (serve)
      serve(number_of(mail.words), token);
  }
  void on_cancel(const reply_token& token, end_cause cause) override { cancelled.emplace_back(token, cause); }
  bool on_stream(
    const incoming& mail, const reply_token& token, const std::shared_ptr<stream_credit>& credit) override {
    streams.push_back({number_of(mail.words), token, credit});
    return mail.header.name == "echo";
  }
  void on_credit(const reply_token&, const std::shared_ptr<stream_credit>&) override { ++credit_calls; }
  void on_peer(const peer_change& what) override {
    changes.push_back({std::string(what.node), what.incarnation, what.up, what.cause});
  }

  struct seen_change {
    std::string name;
    std::uint64_t incarnation;
    bool up;
    end_cause cause;
  };
  struct asked_stream {
    std::uint64_t value;
    reply_token token;
    std::shared_ptr<stream_credit> credit;
  };

 private:
  network& net_;

 public:
  link_counters counters;
  core subject;
  std::function<void(std::uint64_t, const reply_token&)> serve;
  std::function<void(const incoming&)> hear;
  std::vector<std::uint64_t> letters;
  std::vector<std::uint64_t> requests;
  std::vector<std::pair<reply_token, end_cause>> cancelled;
  std::vector<asked_stream> streams;
  std::vector<seen_change> changes;
  int credit_calls = 0;
  bool paused = false;
  std::uint64_t run = 0; ///< which start of all

  bool up(const std::string& name) {
    const auto* one = subject.members().find(name);
    return one != nullptr && one->state == peer_state::up;
  }
};

/// Who hears whom, and when.
class network {
 public:
  explicit network(std::uint64_t seed) : random(seed) {}

  moment now{0};
  std::mt19937_64 random;
  moment least_delay{200};
  moment most_delay{5'000};
  std::map<std::pair<std::string, std::string>, bool> cut; ///< from whom, to whom: nothing arrives
  std::map<std::string, std::shared_ptr<node>> alive;
  bool jam = false;        ///< connections take nothing more
  std::set<lane> jammed;   ///< those of these lanes
  moment letters_delay{0}; ///< that letters take longer, as behind others on a slow wire

  std::shared_ptr<node> start(
    const std::string& name, core_options options = {}, std::uint64_t incarnation = 0) {
    ++runs_;
    auto made = std::make_shared<node>(*this, name,
      incarnation == 0 ? 1000 + static_cast<std::uint64_t>(now.count()) : incarnation, options, random());
    made->run = runs_;
    made->serve = [node = made.get(), this](std::uint64_t value, const reply_token& token) {
      node->subject.reply(token, lane::letters, numbered(frame_kind::reply, token.correlation, value), now);
    };
    alive[name] = made;
    return made;
  }

  /// The process is gone at once; nobody is told.
  void kill(const std::string& name) { alive.erase(name); }

  static peer_record record(const std::string& name) { return {node_name(name), {}, name, name, ""}; }

  void introduce(const std::string& one, const std::string& other) {
    alive[one]->subject.members().add(record(other), now);
    alive[other]->subject.members().add(record(one), now);
  }

  bool reaches(const std::string& from, const std::string& to) { return !cut[{from, to}]; }

  moment delay() {
    return least_delay
           + moment(static_cast<moment::rep>(
             random() % static_cast<std::uint64_t>((most_delay - least_delay).count() + 1)));
  }

  void later(moment at, std::function<void()> what) {
    events_.emplace(std::make_pair(at, ++order_), std::move(what));
  }

  /// Lets time pass: what arrives, what is due.
  void pass(moment time) {
    const auto end = now + time;
    for (const auto& [name, one] : alive)
      if (!one->paused)
        one->subject.flush(now);
    for (;;) {
      auto next = events_.empty() ? end : std::min(end, events_.begin()->first.first);
      for (const auto& [name, one] : alive)
        if (!one->paused)
          next = std::min(next, std::max(now, one->subject.due()));
      now = std::max(now, next);
      while (!events_.empty() && events_.begin()->first.first <= now) {
        const auto what = std::move(events_.begin()->second);
        events_.erase(events_.begin());
        what();
      }
      for (const auto& [name, one] : std::map(alive))
        if (!one->paused) {
          one->subject.tick(now);
          one->subject.flush(now);
        }
      if (now >= end)
        return;
      // A core that is due for ever would stop the time.
      if (++steps_ > 5'000'000)
        throw std::runtime_error("the simulation does not move on");
    }
  }

  struct connection {
    std::string from;
    std::string to;
    lane which;
    std::weak_ptr<node> dialer;
    std::weak_ptr<node> acceptor;
    channel_id channel = 0;
    bool open = false;
    bool closed = false;
    bool broken = false;                       ///< by the network; neither side is told
    std::deque<std::shared_ptr<parcel>> there; ///< on its way, in order
    moment last_there{0};
    moment last_back{0};
  };

  std::shared_ptr<node> of(const node* which) {
    for (const auto& [name, one] : alive)
      if (one.get() == which)
        return one;
    return nullptr;
  }

  /// What is on its way there arrives in order: behind a cut or a pause, as TCP brings it again, or never.
  void arrive(const std::shared_ptr<connection>& line) {
    const auto one = line->acceptor.lock();
    if (line->broken || line->there.empty() || !one || of(one.get()) == nullptr)
      return;
    if (one->paused || !reaches(line->from, line->to)) {
      if (!line->closed)
        later(now + 10 * millisecond, [this, line] { arrive(line); });
      return;
    }
    const auto what = std::move(line->there.front());
    line->there.pop_front();
    deliver(line->acceptor, [this, line, what](node& there) {
      const auto frames = frames_of(*what);
      there.subject.on_message(
        line->which, line->from, {line->which, std::to_string(line->channel)}, frames, now);
    });
  }

  /// A node's connections of a lane break, with what is on them.
  void break_lane(const std::string& from, lane which) {
    for (const auto& [key, line] : connections)
      if (line->from == from && line->which == which)
        line->broken = true;
  }

  std::map<std::pair<const node*, channel_id>, std::shared_ptr<connection>> connections;
  std::map<std::string, std::shared_ptr<connection>> paths;
  channel_id last_channel = 0;

  /// Hands bytes to a node when it is not paused.
  void deliver(const std::weak_ptr<node>& whom, std::function<void(node&)> what) {
    const auto one = whom.lock();
    if (!one || of(one.get()) == nullptr)
      return;
    if (one->paused) {
      later(now + 10 * millisecond, [this, whom, what = std::move(what)] { deliver(whom, what); });
      return;
    }
    what(*one);
    one->subject.flush(now);
  }

 private:
  std::map<std::pair<moment, std::uint64_t>, std::function<void()>> events_;
  std::uint64_t order_ = 0;
  std::uint64_t runs_ = 0;
  std::uint64_t steps_ = 0;
};

inline channel_id node::dial(lane which, const peer_record& whom) {
  auto made = std::make_shared<network::connection>();
  const auto id = ++net_.last_channel;
  made->from = subject.members().self().node.value;
  made->to = whom.letters;
  made->which = which;
  made->channel = id;
  net_.connections[{this, id}] = made;
  net_.paths[std::to_string(id)] = made;
  // Three ways over the network, as TCP does.
  net_.later(net_.now + net_.delay() * 3, [this, made, &net = net_] {
    const auto dialer = net.of(this);
    const auto found = net.alive.find(made->to);
    if (!dialer || made->closed || found == net.alive.end() || !found->second
        || !net.reaches(made->from, made->to) || !net.reaches(made->to, made->from))
      return;
    made->dialer = dialer;
    made->acceptor = found->second;
    made->open = true;
    dialer->subject.flush(net.now);
  });
  return id;
}

inline void node::hang_up(channel_id channel) {
  const auto found = net_.connections.find({this, channel});
  if (found == net_.connections.end())
    return;
  found->second->closed = true;
  net_.paths.erase(std::to_string(channel));
  net_.connections.erase(found);
}

inline bool node::send(channel_id channel, parcel& what) {
  const auto found = net_.connections.find({this, channel});
  if (found == net_.connections.end() || !found->second->open || found->second->broken || net_.jam
      || net_.jammed.contains(found->second->which))
    return false;
  const auto line = found->second;
  const auto longer = line->which == lane::letters ? net_.letters_delay : moment(0);
  line->last_there = std::max(line->last_there, net_.now + net_.delay() + longer);
  line->there.push_back(std::make_shared<parcel>(std::move(what)));
  net_.later(line->last_there, [line, &net = net_] { net.arrive(line); });
  return true;
}

inline bool node::answer(const return_path& path, parcel what) {
  const auto found = net_.paths.find(path.id);
  if (found == net_.paths.end())
    return false;
  const auto line = found->second;
  if (line->broken)
    return false;
  line->last_back = std::max(line->last_back, net_.now + net_.delay());
  net_.later(line->last_back, [line, &net = net_, what = std::make_shared<parcel>(std::move(what))] {
    if (line->closed || line->broken || !net.reaches(line->to, line->from))
      return;
    net.deliver(line->dialer, [line, &net, what](node& there) {
      const auto frames = frames_of(*what);
      there.subject.on_channel_message(line->channel, frames, net.now);
    });
  });
  return true;
}

} // namespace godwit::link::simulated
