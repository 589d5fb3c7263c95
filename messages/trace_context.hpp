#pragma once

#include <cstdint>
#include <memory>

namespace godwit {

/// On whose behalf something is done, for tracing; the W3C's trace context.
struct trace_context {
  std::uint64_t high = 0; ///< of the trace id
  std::uint64_t low = 0;
  std::uint64_t span = 0;
  std::uint16_t flags = 0;

  /// Whether it is one: no trace has the id 0.
  bool known() const { return high != 0 || low != 0; }
  /// Whether whoever began the trace wants it recorded.
  bool sampled() const { return (flags & 1U) != 0; }
  bool operator==(const trace_context&) const = default;
};

/// A trace for which something is done later, held until that is over (see keep_trace); null: none.
using kept_trace = std::shared_ptr<const trace_context>;

} // namespace godwit
