#include "actors/supervisor/restart_policy.hpp"

#include <catch2/catch.hpp>

using namespace godwit;
using std::chrono::milliseconds;

namespace {

using action = restart_verdict::action;

restart_limits limits() {
  return {3, milliseconds(1'000), milliseconds(100), milliseconds(250)};
}

} // namespace

TEST_CASE("pauses double up to a limit, and one restart too many in the window escalates") {
  restart_policy policy(restart_when::always, limits());
  CHECK(policy.ended(0, false) == restart_verdict{action::restart, milliseconds(100)});
  CHECK(policy.ended(10, true) == restart_verdict{action::restart, milliseconds(200)});
  CHECK(policy.ended(20, false) == restart_verdict{action::restart, milliseconds(250)});
  CHECK(policy.ended(999, false).what == action::escalate);
  CHECK(policy.restarts() == 3);
}

TEST_CASE("restarts that are long ago do not count") {
  restart_policy policy(restart_when::always, limits());
  for (std::int64_t time = 0; time < 10'000; time += 500)
    CHECK(policy.ended(time, false).what == action::restart);
  CHECK(policy.ended(20'000, false).pause == milliseconds(100));
}

TEST_CASE("some children are started again only after a failure, some never") {
  restart_policy abnormal(restart_when::abnormal, limits());
  CHECK(abnormal.ended(0, true).what == action::leave);
  CHECK(abnormal.ended(0, false).what == action::restart);
  restart_policy never(restart_when::never, limits());
  CHECK(never.ended(0, false).what == action::leave);
}
