#pragma once

#include <cstdint>
#include <memory>

namespace godwit {

/// Where actors get the time from, so that tests own it. Any thread may ask.
class time_source {
 public:
  virtual ~time_source() = default;

  /// Milliseconds since 1970; may jump. For what people read, and for dates that must outlive the process.
  virtual std::int64_t wall_ms() const = 0;
  /// Milliseconds since some start; never goes back. For waiting.
  virtual std::int64_t steady_ms() const = 0;
};

/// The time of this machine.
std::shared_ptr<const time_source> system_time();

} // namespace godwit
