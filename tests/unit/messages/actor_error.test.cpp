#include "messages/actor_error.hpp"

#include <caf/sec.hpp>
#include <catch2/catch.hpp>

using namespace godwit;

TEST_CASE("an error keeps its parts through CAF") {
  const error failure{errc::conflict, "a turn is running", "", "turn_running"};
  CHECK(from_caf_error(to_caf_error(failure)) == failure);
}

TEST_CASE("a time-out of CAF is a deadline of ours") {
  CHECK(from_caf_error(caf::make_error(caf::sec::request_timeout)).code == errc::deadline);
  CHECK(from_caf_error(caf::make_error(caf::sec::request_receiver_down)).code == errc::peer_lost);
}
