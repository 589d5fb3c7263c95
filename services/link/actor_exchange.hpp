#pragma once

#include "services/link/actor_codec.hpp"
#include "services/link/mesh_link.hpp"

#include <caf/actor_cast.hpp>
#include <caf/fwd.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace godwit::link {

/// A request of another node, when it is over.
struct served_request {
  std::string_view node;
  std::string_view actor; ///< the name under which it is published, or its number
  trace_context trace;
  std::chrono::microseconds took{0};
  /// Of its end; nothing if it was answered.
  std::optional<errc> failure;
};

struct exchange_options {
  /// How long a remote actor may take to answer at most. A request of CAF does not say how long its sender
  /// waits; it is cancelled when the sender ends, and when it times out there if the sender was started by
  /// spawn_traced.
  std::chrono::milliseconds answer{60'000};
  std::chrono::milliseconds letter{10'000}; ///< how long a letter without an answer may wait for its peer
  std::size_t references = 65'536;          ///< actors of this node that others may hold
  /// Places that letters of one node may take which actors here have not taken yet (see untaken_letters). A
  /// node whose letter finds none loses its place.
  std::int64_t untaken = 65'536;
  /// Told of requests whose trace is sampled, for a log; any thread, nothing in it may wait. May be left out.
  std::function<void(const served_request&)> served = {};
};

/// What came of messages that went nowhere, for metrics.
struct exchange_counts {
  /// Letters, in either direction, that no actor got: it is not published, has ended, or its node is gone.
  /// Those that reach an actor in the moment of its end are not seen here.
  std::uint64_t dead_letters = 0;
  /// Messages of other nodes that do not check, or of no signature of their actor. The link counts frames of
  /// its own (link_counters::malformed).
  std::uint64_t malformed = 0;
  /// Places that letters of other nodes take now which actors have not taken yet.
  std::uint64_t untaken = 0;
  /// Nodes that have lost their place because there was none for a letter.
  std::uint64_t untaken_overflows = 0;
};

/// Where actors of this node and of others meet. Actors are *published* under a name; `remote` gives a handle
/// of one that is published elsewhere. Handles in messages work as well: an actor that was passed to another
/// node is kept alive until that node drops it, ends, or is lost.
///
/// A handle of a remote actor behaves as a local one: it takes exactly the messages of its interface, answers
/// requests, and can be monitored. It is bound to one conversation with the node: when that ends, the actor
/// counts as dead
/// (`remote_link_unreachable`), requests fail with `peer_lost`, and a new handle must be asked for. Messages
/// to end it (exit messages) are ignored.
///
/// To an actor that is asked from another node, the sender of the request is an actor which lives until it is
/// answered: monitoring it tells when nobody waits any more, with `cancelled`, `deadline`, `peer_lost` or
/// `draining` as the reason (from_caf_error). Order is kept between any two actors for letters without
/// attachments.
class actor_exchange : public receiver {
 public:
  static std::shared_ptr<actor_exchange> make(caf::actor_system& system, exchange_options options = {});

  /// Before the link has any peer. Whoever owns the link stops it before letting it go.
  virtual void use(const std::shared_ptr<mesh_link>& link) = 0;
  /// Called on the link's thread when a node comes or goes.
  virtual void watch_peers(std::function<void(const peer_change&)> watcher) = 0;
  /// Gives up all actors and handles. Before the link is stopped and the actor system ends.
  virtual void close() = 0;

  /// Other nodes reach the actor by this name from now on.
  template <class Interface>
  void publish(const std::string& name, const Interface& actor) {
    publish_as(name, caf::actor_cast<caf::strong_actor_ptr>(actor), codec_of<Interface>());
  }
  virtual void withdraw(const std::string& name) = 0;

  /// An actor that another node has published. Is given whether that node is there or not.
  template <class Interface>
  Interface remote(const std::string& node, const std::string& name) {
    return caf::actor_cast<Interface>(remote_as(node, name, codec_of<Interface>()));
  }

  /// Actors that other nodes hold now.
  virtual std::size_t references() const = 0;
  virtual exchange_counts counts() const = 0;

 protected:
  virtual void publish_as(
    const std::string& name, caf::strong_actor_ptr actor, const interface_codec& codec) = 0;
  virtual caf::strong_actor_ptr remote_as(
    const std::string& node, const std::string& name, const interface_codec& codec) = 0;
};

} // namespace godwit::link
