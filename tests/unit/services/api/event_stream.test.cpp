#include "services/api/event_stream.hpp"

#include "messages/letter.hpp"
#include "services/api/sse.hpp"

#include <catch2/catch.hpp>

#include <tuple>
#include <vector>

using namespace godwit;

namespace {

letter<schema::EventBatch> events(
  const std::vector<std::tuple<const char*, const char*, const char*>>& list, bool ended = false) {
  return letter<schema::EventBatch>::make([&](auto b) {
    auto out = b.initEvents(static_cast<unsigned>(list.size()));
    for (unsigned i = 0; i < out.size(); ++i) {
      out[i].setId(std::get<0>(list[i]));
      out[i].setType(std::get<1>(list[i]));
      out[i].setData(std::get<2>(list[i]));
    }
    b.setEnded(ended);
  });
}

} // namespace

TEST_CASE("events are framed as the HTML standard says") {
  event_stream stream("");
  const auto taken =
    stream.take(events({{"5", "turn.started", R"({"turn":1})"}, {"6", "token", R"({"text":"Hi"})"}}).read());
  CHECK(
    taken.bytes
    == "id: 5\nevent: turn.started\ndata: {\"turn\":1}\n\nid: 6\nevent: token\ndata: {\"text\":\"Hi\"}\n\n");
  CHECK(taken.events == 2);
  CHECK_FALSE(taken.ended);
  CHECK(stream.last_id() == "6");
}

TEST_CASE("a stream knows where it is before and after its first event") {
  event_stream stream("41");
  CHECK(stream.last_id() == "41");
  CHECK_FALSE(stream.begun());
  stream.take(events({{"42", "token", "{}"}}).read());
  CHECK(stream.begun());
}

TEST_CASE("a turn runs from its message to one of its ends") {
  event_stream stream("");
  CHECK_FALSE(stream.turn_running());
  stream.take(events({{"1", "message.accepted", "{}"}}).read());
  CHECK(stream.turn_running());
  stream.take(events({{"2", "turn.completed", "{}"}}, true).read());
  CHECK_FALSE(stream.turn_running());
  stream.take(events({{"3", "token", "{}"}}).read());
  CHECK(stream.turn_running());
  stream.take(events({{"4", "turn.cancelled", "{}"}}).read());
  CHECK_FALSE(stream.turn_running());
}

TEST_CASE("a stream that had to end says why") {
  event_stream stream("");
  const auto taken = stream.take(letter<schema::EventBatch>::make([](auto b) {
    b.setErrorCode(static_cast<std::uint8_t>(errc::quarantined));
    b.setErrorMessage("damaged");
  }).read());
  CHECK(taken.ended);
  REQUIRE(taken.failure);
  CHECK(taken.failure->code == errc::quarantined);
  CHECK(taken.failure->message == "damaged");
}

TEST_CASE("lines of a stream cannot be broken from inside") {
  CHECK(sse::event("1\n2", "a\rb", "x\n\ny") == "id: 1 2\nevent: a b\ndata: x  y\n\n");
  CHECK(sse::event("", "error", "{}") == "event: error\ndata: {}\n\n");
  CHECK(sse::data("{}") == "data: {}\n\n");
  CHECK(sse::retry(1000) == "retry: 1000\n\n");
  CHECK(sse::heartbeat().front() == ':');
}
