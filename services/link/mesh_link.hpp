#pragma once

#include "services/link/core.hpp"
#include "services/link/zmq_transport.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace godwit::link {

struct link_options {
  node_name node;
  std::uint64_t incarnation =
    0; ///< higher than at each earlier start of the node; 0: the wall clock's milliseconds
  std::string software;
  std::string hash_mode;
  std::map<std::string, std::string> models; ///< fingerprints by the model's name
  std::uint16_t major = protocol_major;      ///< another version than today's is for tests of nodes of others
  std::uint16_t minor = protocol_minor;
  socket_options sockets; ///< `node` is filled in
  core_options core;
  /// On the way to the link's thread. Answers, cancels, credit and what else nobody can be refused have as
  /// much again for themselves; what finds no place then costs its peer its place.
  outbox_limits commands{.parcels = 65'536, .bytes = std::size_t{256} << 20};
  std::uint64_t seed = 0; ///< of the jitter; 0: a random one
};

/// Which actor of which node.
struct actor_address {
  std::string node;
  std::string name;     ///< that it was published under, or
  std::uint64_t id = 0; ///< the number by which its node knows it
};

/// What is sent. The bytes are copied before a call returns; attachments are not.
struct message {
  std::uint64_t type = 0; ///< schema id, or that of the signature
  std::span<const std::byte> words{};
  std::vector<attachment> attachments{};
  std::span<const std::byte> extras{};
  std::uint64_t source = 0;
  trace_context trace{};
};

/// A letter as a message, under its schema's id.
template <class Schema>
message to_message(const letter<Schema>& mail) {
  return {.type = capnp::typeId<Schema>(), .words = mail.bytes(), .attachments = mail.attachments()};
}

/// A node's end of the mesh: one thread that owns all sockets, and lends them to who sends while it sleeps.
/// Every function may be called from any thread, and none waits, unless it says so. What is sent to one node
/// in one lane arrives in order, at most once; letters with attachments, and those over a megabyte, take the
/// bulk lane.
class mesh_link {
 public:
  /// Binds, and answers from the time it returns.
  /// @param upper called on the link's thread
  /// @returns as zmq_transport::open, and `invalid_argument` for a name that is none
  static result<std::unique_ptr<mesh_link>> start(link_options options, std::shared_ptr<receiver> upper);

  virtual ~mesh_link() = default;

  virtual const node_name& self() const = 0;
  virtual const bound_endpoints& bound() const = 0;
  virtual const link_counters& counters() const = 0;
  /// That of now: it rises when this process was stopped for so long that others gave it up.
  virtual std::uint64_t incarnation() const = 0;
  /// Greets with this incarnation at least from now on. Conversations that are there go on.
  virtual void rise(std::uint64_t incarnation) = 0;

  /// Knows a node from now on: accepts its key and dials it. Again for the same name: its key or endpoints
  /// have changed. One with the key of another node is shown as refused, counted, and not talked to.
  virtual void add_peer(peer_record record) = 0;
  /// Says goodbye to a node, and accepts its key no more.
  virtual void remove_peer(node_name name, end_cause cause) = 0;
  /// All peers. Waits for the link's thread.
  virtual std::vector<peer_status> members() = 0;
  /// The same as it was at most half a second ago. Does not wait.
  virtual std::vector<peer_status> snapshot() const = 0;

  /// A letter without an answer; lost, and counted, if the node is not there. If there is no place for it, or
  /// it waits for longer, the node loses its place: it would miss one of a row.
  virtual void send(const actor_address& to, const message& what, std::chrono::microseconds within) = 0;
  /// A letter with an answer. `done` is called once: on the link's thread, or on this one if it is refused at
  /// once. When the time is over it gets `deadline`, when the node is lost `peer_lost`.
  /// @returns a number for cancel()
  virtual std::uint64_t request(
    const actor_address& to, const message& what, std::chrono::microseconds within, answered done) = 0;
  /// Ends a request before its answer.
  virtual void cancel(std::uint64_t request, end_cause cause) = 0;
  /// Answers a request. One that was cancelled, or of a peer that is gone, is dropped.
  virtual void reply(const reply_token& token, const message& what) = 0;
  virtual void fail(const reply_token& token, const error& why) = 0;
  /// `released` or `gone`: what nodes tell each other of references to actors.
  virtual void refer(
    const std::string& node, frame_kind kind, std::uint64_t actor, std::uint64_t count, end_cause cause) = 0;

  /// This node can take no more from a node, which loses its place and is told so. What it said before it
  /// hears of that may still come.
  virtual void overload(const std::string& node) = 0;

  /// Asks an actor for a stream. @returns its number, for grant() and end_stream()
  virtual std::uint64_t open_stream(
    const actor_address& to, const message& what, std::uint64_t credit, stream_sink sink) = 0;
  /// The consumer can take more items.
  virtual void grant(std::uint64_t stream, std::uint64_t items) = 0;
  /// The consumer wants no more.
  virtual void end_stream(std::uint64_t stream, end_cause cause) = 0;
  /// The producer's next item. @returns false without credit, after the end, or while too much waits: nothing
  /// is sent, no credit is taken
  virtual bool stream_item(const reply_token& token, stream_credit& credit, const message& what) = 0;
  /// The producer's end. @param why `code` counts; nothing: there are no more items
  virtual void stream_end(
    const reply_token& token, stream_credit& credit, const std::optional<error>& why) = 0;

  /// An event to whoever has subscribed to its topic. Slow subscribers lose events, and see that they did.
  virtual void publish(const std::string& topic, const message& what) = 0;
  /// Events of all peers whose topics begin so go to receiver::on_event.
  virtual void subscribe(const std::string& prefix) = 0;

  /// Waits until what is queued has left, at most so long, says goodbye for this cause, ends the thread.
  /// Whatever waits for an answer fails with the cause. `upper` is not called afterwards.
  virtual void stop(end_cause cause, std::chrono::milliseconds time) = 0;
};

} // namespace godwit::link
