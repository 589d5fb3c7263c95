#include "services/daemon/termination.hpp"

#include <catch2/catch.hpp>

#include <unistd.h>

#include <atomic>
#include <csignal>

using namespace godwit;
using namespace std::chrono_literals;

TEST_CASE("the first signal is a request, each further one is told") {
  std::atomic<int> again{0};
  termination stop([&] { ++again; });
  CHECK_FALSE(stop.requested());
  CHECK_FALSE(stop.wait_for(5ms));
  ::kill(::getpid(), SIGTERM);
  CHECK(stop.wait_for(10s));
  CHECK(stop.requested());
  for (int i = 1; i <= 2; ++i) {
    ::kill(::getpid(), SIGINT);
    for (int waited = 0; again < i && waited < 2000; ++waited)
      ::usleep(1000);
    CHECK(again == i);
  }
}

TEST_CASE("one that never came ends without it") {
  for (int i = 0; i < 20; ++i) {
    termination stop([] {});
    CHECK_FALSE(stop.requested());
  }
}

TEST_CASE("a broken pipe is an error of the write, not the end of the process") {
  termination stop([] {});
  int pipe[2];
  REQUIRE(::pipe(pipe) == 0);
  ::close(pipe[0]);
  CHECK(::write(pipe[1], "x", 1) == -1);
  ::close(pipe[1]);
}
