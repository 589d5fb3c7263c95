#include "services/postgres/promise.hpp"

#include <catch2/catch.hpp>

using namespace godwit;
using namespace godwit::postgres;

namespace {

bool says(const result<std::string>& promise, const std::string& words) {
  REQUIRE(promise);
  return promise->find(words) != std::string::npos;
}

const server_settings alone{"on", "on", "", 0, 0, 0};
const server_settings two{"on", "on", "ANY 1 (a, b)", 2, 2, 0};

} // namespace

TEST_CASE("settings under which a crash loses what was acknowledged are refused, unless allowed") {
  auto unsafe = alone;
  unsafe.fsync = "off";
  CHECK(promise_of(unsafe, false).error().code == errc::unsupported);
  CHECK(promise_of(unsafe, false).error().message.find("fsync is off") != std::string::npos);
  CHECK(says(promise_of(unsafe, true), "may be lost"));
  unsafe = two;
  unsafe.synchronous_commit = "off";
  CHECK(promise_of(unsafe, false).error().message.find("synchronous_commit is off") != std::string::npos);
  CHECK(says(promise_of(unsafe, true), "may be lost"));
}

TEST_CASE("the promise follows from the standbys that commits wait for") {
  CHECK(says(promise_of(alone, false), "not the loss of its disk"));
  CHECK(says(promise_of(two, false), "survives the loss of any one server"));
  CHECK(says(promise_of(two, false), "2 of 2 connected standbys count"));
  auto local = two;
  local.synchronous_commit = "local";
  CHECK(says(promise_of(local, false), "not the loss of its disk"));
  auto memory = two;
  memory.synchronous_commit = "remote_write";
  CHECK(says(promise_of(memory, false), "loses power"));
  auto lost = two;
  lost.standbys = lost.synchronous = 0;
  CHECK(says(promise_of(lost, false), "nothing is acknowledged until"));
  auto hidden = two;
  hidden.hidden = 2;
  CHECK(says(promise_of(hidden, false), "may not see"));
}
