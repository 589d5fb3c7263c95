#include "services/gateway/owner_search.hpp"

#include <catch2/catch.hpp>

using namespace godwit;
using namespace std::chrono_literals;

namespace {

const owner_search::time begin{};

error of(errc code, std::string reason = {}) {
  return {code, {}, {}, std::move(reason)};
}

} // namespace

TEST_CASE("a session that has another owner is looked for until the call's time is over") {
  owner_search search(begin + 15s);
  CHECK(search.next(of(errc::stale_epoch), true, begin) == 50ms);
  CHECK(search.next(of(errc::stale_epoch), true, begin + 1s) == 100ms);
  CHECK(search.next(of(errc::stale_epoch), true, begin + 14s) == 200ms);
  CHECK_FALSE(search.next(of(errc::stale_epoch), true, begin + 14s + 900ms));
}

TEST_CASE("an owner that died under a question is looked for only if the question may be repeated") {
  CHECK_FALSE(owner_search(begin + 15s).next(of(errc::peer_lost), true, begin));
  CHECK(owner_search(begin + 15s).next(of(errc::peer_lost), false, begin) == 50ms);
}

TEST_CASE("nobody there is an answer, but not while a new owner is on its way") {
  owner_search search(begin + 15s);
  CHECK_FALSE(search.next(of(errc::unavailable), false, begin));
  CHECK(search.next(of(errc::stale_epoch), false, begin));
  CHECK(search.next(of(errc::unavailable), false, begin));
  CHECK_FALSE(search.next(of(errc::unavailable), true, begin));
  CHECK_FALSE(search.next(of(errc::not_found), false, begin));
}

TEST_CASE("a session whose node cannot be reached is looked for, whatever is asked, since nobody was") {
  const auto once = GENERATE(false, true);
  for (const auto* reason : {"node_unreachable", "session_moves"}) {
    owner_search search(begin + 15s);
    CHECK(search.next(of(errc::unavailable, reason), once, begin) == 50ms);
    CHECK(search.next(of(errc::unavailable, reason), once, begin + 1s) == 100ms);
    CHECK_FALSE(search.next(of(errc::unavailable, reason), once, begin + 15s));
  }
  CHECK_FALSE(owner_search(begin + 15s).next(of(errc::unavailable, "model_loading"), once, begin));
}
