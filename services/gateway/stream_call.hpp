#pragma once

#include "messages/catalogue.hpp"
#include "services/api/event_stream.hpp"
#include "services/gateway/atoms.hpp"
#include "services/gateway/call.hpp"
#include "services/gateway/owner_search.hpp"
#include "services/gateway/stream_writer.hpp"

#include <caf/actor_clock.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace godwit {

/// What the actor of a stream of session events answers.
using stream_actor = event_sink_actor::extend<
  // The end of a write to the client.
  caf::reacts_to<written_atom, bool>,
  // The client has left.
  caf::reacts_to<left_atom>,
  // Time to look for the session again.
  caf::reacts_to<again_atom>,
  // Time has passed.
  caf::reacts_to<tick_atom>,
  // The gateway goes.
  caf::reacts_to<stop_atom>>;

/// Which events a stream is for.
struct stream_wish {
  std::string after;
  std::string after_name = "after"; ///< the parameter or header that it stood in
  bool snapshot = false;
  bool past_only = false; ///< end behind the last event that there is
  /// A message to post first: then the events are those of its turn.
  std::optional<letter<schema::PostMessage>> message;
};

/// One client's stream of a session's events. In order: the session is located, a message is posted if there
/// is one, the events are subscribed to, and what the session sends goes to the socket, which earns the
/// session its credit back. When the session's actor ends, perhaps because its node died, the stream looks
/// for the session again and goes on behind the last event. Until the subscription stands any failure is an
/// ordinary refusal, unless the session only has another owner by now; afterwards it is an event.
class stream_call {
 public:
  stream_call(stream_actor::pointer self, call request, stream_wish wish)
    : self_(self), call_(std::move(request)), wish_(std::move(wish)), events_(wish_.after) {}

  void start();
  void take(schema::EventBatch::Reader batch);
  void written(bool there);
  void left();
  void again();
  void tick();
  void stop();
  /// An actor has ended, perhaps the session's.
  void down(const caf::actor_addr& source);

  /// How often tick() should come; under load it comes later.
  static std::chrono::milliseconds interval(const gateway_options& options);

 private:
  void locate();
  void post();
  void subscribe();
  void subscribed(std::uint64_t subscription);
  void pump();
  void fail(error failure);
  /// The client's place is not kept any more: asks the session which is, and says so.
  void gone(const error& failure);
  /// Ends a stream that has begun with an event `error`.
  void finish(const error& failure, const std::string& json);
  /// A failure that may pass: look for the session again, or give up.
  void lost(const error& failure);
  void unsubscribe(bool client_left);

  stream_actor::pointer self_;
  call call_;
  stream_wish wish_;
  event_stream events_;
  session_actor session_;
  std::uint32_t turn_ = 0; ///< of the posted message; 0 is all turns
  std::optional<std::uint64_t> subscription_;
  std::optional<stream_writer> writer_;
  caf::actor_clock::time_point last_tick_;
  std::optional<owner_search> search_; ///< before the first byte
  unsigned attempts_ = 0;              ///< to find the session again, without an event between them
};

/// Starts the actor of one stream.
void spawn_stream_call(caf::actor_system& system, call request, stream_wish wish);

} // namespace godwit
