#pragma once

#include "services/link/peers.hpp"
#include "services/link/receiver.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace godwit::link {

/// The answer to a request of this node, or why there is none. Called once, on the link's thread.
using answered = std::function<void(const result<incoming>&)>;

/// What a consumer gets of a stream: items, then once the end. `mail` is null with the end. Called on the
/// link's thread.
struct stream_event {
  const incoming* mail = nullptr;
  error why;             ///< of the end, unless `complete`
  bool complete = false; ///< the producer had nothing more
};
using stream_sink = std::function<void(const stream_event&)>;

struct core_options {
  peer_options peers;
  frame_limits frames;
  std::size_t pending = 65'536;         ///< requests of this node without an answer
  std::size_t serving = 4096;           ///< requests of one peer without an answer
  std::size_t streams = 16'384;         ///< in each direction
  std::uint64_t stream_credit = 65'536; ///< more is taken for this
  std::size_t topics = 1024;            ///< of events of one peer; those of more are dropped as malformed
};

/// Everything about a link but sockets, threads and clocks: who is there, requests and their deadlines,
/// streams and their credit. Pure: driven by messages and by time as an argument, so that a simulation drives
/// it as ZeroMQ does.
class core : private peer_observer {
 public:
  core(hello self, core_options most, transport& network, receiver& upper, link_counters& counters,
    std::uint64_t seed);

  peers& members() { return peers_; }
  /// All peers as they stand.
  std::vector<peer_status> status() const;
  /// How often a peer has come or gone.
  std::uint64_t peer_changes() const { return peer_changes_; }

  // --- from this node ---

  /// A letter without an answer. What cannot be sent is counted; if its node is there, that loses its place:
  /// it would miss a letter of those whose order is promised.
  void send(std::string_view node, lane which, parcel what, moment deadline, moment now);
  /// @param correlation of the parcel's header; no other request or stream of this node has it
  void request(std::string_view node, lane which, parcel what, std::uint64_t correlation, moment deadline,
    answered done, moment now);
  /// Ends a request of this node before its answer: `done` gets the cause, the peer is told.
  void cancel(std::uint64_t correlation, end_cause cause, moment now);
  /// @param what a reply or a failure, with the token's correlation
  void reply(const reply_token& token, lane which, parcel what, moment now);

  /// Asks for a stream. @param credit of the parcel's header
  void open_stream(std::string_view node, lane which, parcel what, std::uint64_t correlation,
    std::uint64_t credit, stream_sink sink, moment now);
  /// The consumer can take more items.
  void grant(std::uint64_t correlation, std::uint64_t items, moment now);
  /// The consumer wants no more.
  void end_stream(std::uint64_t correlation, end_cause cause, moment now);
  /// Something for a node was lost on its way here: it loses its place, and is told. @param node empty: all
  void overload(std::string_view node, moment now);
  /// The producer's item or end, with the token's correlation. Credit was taken already.
  void stream_send(const reply_token& token, lane which, parcel what, bool last, moment now);

  /// Whether send(), request() and reply() would now tell nobody of anything, and what they send would leave
  /// with flush(node).
  bool ready(std::string_view node, lane which);

  // --- from the network ---

  /// A message on an incoming connection. @param who sent it, by its key
  void on_message(lane which, std::string_view who, const return_path& path,
    std::span<const received_frame> frames, moment now);
  /// A message back on a channel of ours.
  void on_channel_message(channel_id channel, std::span<const received_frame> frames, moment now);
  /// An event on a channel of ours. @param frames after the topic
  void on_event_message(
    channel_id channel, std::string_view topic, std::span<const received_frame> frames, moment now);

  void tick(moment now);
  moment due() const;
  /// Sends what can be sent. @returns whether something waits for the network
  bool flush(moment now);
  /// The same for one peer, of which nothing waited before.
  bool flush(std::string_view node, moment now);
  /// Ends everything for this cause.
  void close(end_cause cause, moment now);

 private:
  struct pending {
    std::string node;
    moment deadline;
    answered done;
  };
  struct consumer {
    std::string node;
    std::uint64_t credit;
    stream_sink sink;
  };
  struct producer {
    reply_token token;
    std::shared_ptr<godwit::link::stream_credit> credit;
  };
  /// A request or stream of a peer.
  struct served_key {
    std::uint64_t session;
    std::uint64_t correlation;
    auto operator<=>(const served_key&) const = default;
  };

  void peer_up(peer& one) override;
  void peer_down(peer& one, end_cause cause, const std::string& why) override;

  void handle(peer& one, const incoming& mail, moment now);
  void serve(peer& one, const incoming& mail, moment now);
  void serve_stream(peer& one, const incoming& mail, moment now);
  void take_item(peer& one, const incoming& mail, moment now);
  void finish(std::uint64_t correlation, const result<incoming>& how);
  void finish_stream(std::uint64_t correlation, const stream_event& how);
  void post_control(std::string_view node, frame_kind kind, std::uint64_t correlation, std::uint64_t source,
    end_cause cause, moment now);
  void refuse(peer& one, std::uint64_t correlation, frame_kind kind, const error& why, moment now);
  std::optional<incoming> open(lane which, std::string_view who, std::span<const received_frame> frames);
  void count_queues();
  void forget_served(moment now);

  core_options most_;
  receiver& upper_;
  link_counters& counters_;
  peers peers_;
  std::unordered_map<std::uint64_t, pending> pending_;
  std::set<std::pair<moment, std::uint64_t>> deadlines_; ///< of pending requests
  std::unordered_map<std::uint64_t, consumer> consumers_;
  /// By node; the deadline after which a request is forgotten.
  std::map<std::string, std::map<served_key, moment>, std::less<>> serving_;
  std::map<std::string, std::map<served_key, producer>, std::less<>> producers_;
  using topics = std::map<std::string, std::uint64_t, std::less<>>;
  std::map<std::string, topics, std::less<>> event_counts_; ///< by node and topic
  std::uint64_t now_serving_ = 0;
  moment next_sweep_{0};
  std::uint64_t now_producing_ = 0;
  std::uint64_t peer_changes_ = 0;
};

} // namespace godwit::link
