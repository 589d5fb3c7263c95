#pragma once

// How an actor knows on whose behalf it is asked. A message of CAF has nothing beside its content, but it has
// a sender: the actor of one call, or whoever asks from another node, carries its trace all its life. Where
// an actor asks another while it is asked, the request takes the trace along to the next actor that was
// started by spawn_traced. Letters without an answer take none along: they would hand a trace around for
// ever. What an actor does later for somebody, behind its answer, it does in a scope of its own, with a
// trace that it has kept.

#include "messages/trace_context.hpp"

#include <caf/actor_control_block.hpp>
#include <caf/mailbox_element.hpp>

#include <atomic>
#include <cstddef>
#include <string>

namespace godwit {

/// The trace of what this thread handles now; unknown if there is none.
const trace_context& current_trace();

/// Handles something on behalf of a trace.
class trace_scope {
 public:
  explicit trace_scope(const trace_context& trace);
  explicit trace_scope(const kept_trace& trace) : trace_scope(trace ? *trace : trace_context{}) {}
  ~trace_scope();
  trace_scope(const trace_scope&) = delete;
  trace_scope& operator=(const trace_scope&) = delete;

 private:
  trace_context before_;
};

/// As a header `traceparent` says it: "00-" trace id "-" span "-" flags.
std::string to_traceparent(const trace_context& trace);

/// An actor all of whose messages are sent on behalf of one trace, if it has one.
class trace_carrier {
 public:
  explicit trace_carrier(const trace_context& carried);
  virtual ~trace_carrier();
  trace_carrier(const trace_carrier&) = delete;
  trace_carrier& operator=(const trace_carrier&) = delete;

  const trace_context& carried() const { return carried_; }

  /// Whether any actor of the process has a trace. While none has, a message costs this look.
  static bool any() { return carriers.load(std::memory_order_relaxed) != 0; }

 private:
  static std::atomic<std::size_t> carriers;

  const trace_context carried_;
};

/// Keeps a trace: while it is held, messages are looked at for traces. @returns null for one that is unknown
kept_trace keep_trace(const trace_context& trace);

/// What an actor carries; unknown if it is no carrier.
trace_context trace_of(const caf::strong_actor_ptr& sender);
/// What a message to another node is sent for, on the thread that sends it.
trace_context trace_to_send(const caf::strong_actor_ptr& sender);

/// A request that this thread's trace is taken along with; all else as it is.
caf::mailbox_element_ptr with_trace(caf::mailbox_element_ptr what);
/// What a message that came is to be handled for.
trace_context trace_in(const caf::mailbox_element& what);

} // namespace godwit
