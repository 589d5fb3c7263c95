#include "actors/directory/live_sessions.hpp"

#include <catch2/catch.hpp>

using namespace godwit;

namespace {

using ids = std::vector<session_id>;
const session_id a("a"), b("b"), c("c");

} // namespace

TEST_CASE("sessions that nobody asks for are unused after a while, the longest unused first") {
  live_sessions live(10, 5, std::chrono::milliseconds(100));
  live.add(b, 0);
  live.add(a, 10);
  live.add(c, 20);
  CHECK(live.unused(99, 10).empty());
  CHECK(live.unused(110, 10) == ids{b, a});
  CHECK(live.unused(110, 1) == ids{b});
  live.used(b, 110);
  CHECK(live.unused(120, 10) == ids{a, c});
  live.remove(a);
  CHECK(live.unused(120, 10) == ids{c});
  live.remove(a);
  CHECK(live.size() == 2);
}

TEST_CASE("too many idle sessions are unused at once") {
  live_sessions live(10, 1, std::chrono::milliseconds(1'000));
  live.add(a, 1);
  live.add(b, 2);
  live.add(c, 3);
  CHECK(live.unused(4, 10) == ids{a, b});
}

TEST_CASE("there is room for a bounded number") {
  live_sessions live(2, 2, std::chrono::milliseconds(1'000));
  CHECK(live.room());
  live.add(a, 1);
  live.add(b, 1);
  CHECK(!live.room());
  live.remove(a);
  CHECK(live.room());
}
