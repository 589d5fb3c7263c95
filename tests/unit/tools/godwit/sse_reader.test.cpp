#include "tools/godwit/sse_reader.hpp"

#include <catch2/catch.hpp>

#include <vector>

using namespace godwit::cli;

namespace {

std::vector<sse_event> read(std::string_view stream, std::size_t piece) {
  std::vector<sse_event> events;
  sse_reader reader([&](const sse_event& event) { events.push_back(event); });
  for (std::size_t at = 0; at < stream.size(); at += piece)
    CHECK(reader.feed(stream.substr(at, piece)));
  return events;
}

} // namespace

TEST_CASE("events are the same however the stream is cut, with every kind of line end") {
  const std::string_view stream = ": heartbeat\n\nretry: 1000\nid: 7\nevent: token\ndata: "
                                  "{\"text\":\"a\"}\n\nid: 8\r\ndata:b\r\ndata: c\r\n\r\ndata: d\r\r";
  for (const std::size_t piece : {1U, 2U, 3U, 7U, 1000U}) {
    const auto events = read(stream, piece);
    REQUIRE(events.size() == 3);
    CHECK(events[0].id == "7");
    CHECK(events[0].type == "token");
    CHECK(events[0].data == "{\"text\":\"a\"}");
    CHECK(events[1].type == "message");
    CHECK(events[1].data == "b\nc");
    CHECK(events[2].id == "8");
    CHECK(events[2].data == "d");
  }
}

TEST_CASE("an event without data is not dispatched, and an unfinished one neither") {
  CHECK(read("event: token\n\n", 100).empty());
  CHECK(read("data: x\n", 100).empty());
}
