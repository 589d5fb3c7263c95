#include "actors/session/time_source.hpp"

#include <chrono>

namespace godwit {

namespace {

template <class Clock>
std::int64_t milliseconds_now() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now().time_since_epoch()).count();
}

class machine_time final : public time_source {
 public:
  std::int64_t wall_ms() const override { return milliseconds_now<std::chrono::system_clock>(); }
  std::int64_t steady_ms() const override { return milliseconds_now<std::chrono::steady_clock>(); }
};

} // namespace

std::shared_ptr<const time_source> system_time() {
  return std::make_shared<machine_time>();
}

} // namespace godwit
