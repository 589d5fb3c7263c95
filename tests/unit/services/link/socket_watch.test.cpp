#include "services/link/socket_watch.hpp"
#include "services/link/waker.hpp"

#include <catch2/catch.hpp>

#include <memory>
#include <set>
#include <thread>
#include <vector>

using namespace godwit::link::detail;
using namespace std::chrono_literals;

namespace {

std::set<socket_watch::mark> told(socket_watch& watch, std::chrono::milliseconds time = 0ms) {
  const auto marks = watch.wait(time);
  return {marks.begin(), marks.end()};
}

} // namespace

TEST_CASE("a watch tells of those descriptors that have something, until it was taken") {
  const waker one;
  const waker other;
  socket_watch watch;
  REQUIRE(watch.add(one.descriptor(), 7));
  REQUIRE(watch.add(other.descriptor(), std::uint64_t{1} << 40U));
  CHECK(told(watch).empty());
  other.wake();
  CHECK(told(watch) == std::set<socket_watch::mark>{std::uint64_t{1} << 40U});
  one.wake();
  CHECK(told(watch) == std::set<socket_watch::mark>{7, std::uint64_t{1} << 40U});
  one.settle();
  CHECK(told(watch) == std::set<socket_watch::mark>{std::uint64_t{1} << 40U});
  watch.remove(other.descriptor());
  CHECK(told(watch).empty());
}

TEST_CASE("a wait ends when another thread has something") {
  const waker one;
  socket_watch watch;
  REQUIRE(watch.add(one.descriptor(), 1));
  std::thread other([&] { one.wake(); });
  CHECK(told(watch, 60s) == std::set<socket_watch::mark>{1});
  other.join();
}

TEST_CASE("of very many that have something each is told of in the end") {
  constexpr socket_watch::mark count = 500;
  std::vector<std::unique_ptr<waker>> all;
  socket_watch watch;
  for (socket_watch::mark i = 0; i < count; ++i) {
    all.push_back(std::make_unique<waker>());
    REQUIRE(watch.add(all.back()->descriptor(), i));
    all.back()->wake();
  }
  std::set<socket_watch::mark> heard;
  for (socket_watch::mark waits = 0; waits < count && heard.size() < count; ++waits)
    for (const auto mark : told(watch)) {
      heard.insert(mark);
      all[mark]->settle();
    }
  CHECK(heard.size() == count);
}

TEST_CASE("a descriptor that is none cannot be watched") {
  socket_watch watch;
  CHECK_FALSE(watch.add(-1, 1));
}
