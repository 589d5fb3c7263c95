#include "actors/session/token_stream.hpp"
#include "actors/session/retry_pause.hpp"
#include "messages/letter.hpp"

#include <catch2/catch.hpp>

using namespace godwit;

namespace {

letter<schema::TokenBatch> batch(position_t position, std::vector<token_id> tokens,
  schema::FinishReason finish = schema::FinishReason::NONE, errc code = {}) {
  return letter<schema::TokenBatch>::make([&](schema::TokenBatch::Builder b) {
    b.setRequest(1);
    b.setPosition(position);
    auto list = b.initTokens(static_cast<unsigned>(tokens.size()));
    for (unsigned i = 0; i < tokens.size(); ++i)
      list[i].setToken(tokens[i]);
    b.setFinish(finish);
    b.setErrorCode(static_cast<std::uint8_t>(code));
    b.setCachedTokens(3);
  });
}

bool takes(token_stream& stream, const letter<schema::TokenBatch>& mail) {
  return stream.take(mail.read(), 100).has_value();
}

} // namespace

TEST_CASE("a stream takes tokens in order, within its credit") {
  token_stream stream(1, 1, 10, 3);
  CHECK(takes(stream, batch(10, {1, 2})));
  CHECK(!takes(stream, batch(13, {4})));
  CHECK(!takes(stream, batch(11, {2})));
  CHECK(!takes(stream, batch(12, {3, 4})));
  CHECK(!takes(stream, batch(12, {100})));
  CHECK(takes(stream, batch(12, {3})));
  CHECK(!takes(stream, batch(13, {4})));
  stream.granted(1);
  CHECK(takes(stream, batch(13, {4}, schema::FinishReason::STOP)));
  CHECK(stream.ended());
  CHECK(stream.finish() == "stop");
  CHECK(stream.cached() == 3);
  CHECK(!takes(stream, batch(14, {})));
}

TEST_CASE("a stream forgets what is committed, once") {
  token_stream stream(1, 1, 10, 8);
  REQUIRE(takes(stream, batch(10, {1, 2, 3})));
  CHECK(stream.committed(12) == 2);
  CHECK(stream.committed(12) == 0);
  CHECK(stream.pending().size() == 1);
  CHECK(stream.pending().front().token == 3);
  CHECK(takes(stream, batch(13, {4})));
  CHECK(stream.committed(100) == 2);
}

TEST_CASE("a stream that fails says why") {
  token_stream failed(1, 1, 0, 8);
  REQUIRE(takes(failed, batch(0, {}, schema::FinishReason::FAILED, errc::overloaded)));
  CHECK(failed.finish().empty());
  CHECK(failed.failure().code == errc::overloaded);
  token_stream given_up(1, 1, 0, 8);
  REQUIRE(takes(given_up, batch(0, {}, schema::FinishReason::CANCELLED)));
  CHECK(given_up.failure().code == errc::peer_lost);
}

TEST_CASE("pauses double up to a limit and begin anew after a success") {
  using std::chrono::milliseconds;
  retry_pause pause(milliseconds(100), milliseconds(350));
  CHECK(!pause.active(0));
  std::vector<std::int64_t> lengths;
  for (int i = 0; i < 4; ++i) {
    pause.failed(1'000);
    lengths.push_back(pause.until() - 1'000);
  }
  CHECK(lengths == std::vector<std::int64_t>{100, 200, 350, 350});
  CHECK(pause.active(1'349));
  CHECK(!pause.active(1'350));
  pause.succeeded();
  CHECK(!pause.active(0));
  pause.failed(0);
  CHECK(pause.until() == 100);
}
