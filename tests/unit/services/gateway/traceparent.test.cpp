#include "services/gateway/traceparent.hpp"

#include "actors/trace/trace_scope.hpp"
#include "tests/unit/services/gateway/fixture.hpp"

#include <catch2/catch.hpp>

using namespace godwit;
using namespace godwit::test;

namespace {

// The example of the W3C's recommendation.
const std::string example = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const trace_context expected{0x4bf92f3577b34da6, 0xa3ce929d0e0e4736, 0x00f067aa0ba902b7, 1};

} // namespace

TEST_CASE("a trace context is read as the recommendation writes it") {
  CHECK((parse_traceparent(example) == expected));
  CHECK(parse_traceparent(example).sampled());
  CHECK(to_traceparent(expected) == example);
  CHECK_FALSE(parse_traceparent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00").sampled());
  // Half of an id may be zero.
  CHECK(parse_traceparent("00-0000000000000000a3ce929d0e0e4736-00f067aa0ba902b7-00").known());
}

TEST_CASE("a later version is read as far as it is known") {
  auto later = example;
  later.replace(0, 2, "cc");
  CHECK((parse_traceparent(later) == expected));
  CHECK((parse_traceparent(later + "-what-the-future-brings") == expected));
  CHECK_FALSE(parse_traceparent(later + ".what").known());
  later.replace(53, 2, "ff");
  CHECK((parse_traceparent(later) == expected));
}

TEST_CASE("what is no trace context counts as absent") {
  for (std::size_t length = 0; length < example.size(); ++length)
    CHECK_FALSE(parse_traceparent(example.substr(0, length)).known());
  for (std::size_t i = 0; i < example.size(); ++i)
    for (const char wrong : {'x', 'A', ' ', '\0'}) {
      auto bad = example;
      bad[i] = wrong;
      CHECK_FALSE(parse_traceparent(bad).known());
    }
  for (const auto* bad : {"ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
         "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
         "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
         "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-00"})
    CHECK_FALSE(parse_traceparent(bad).known());
}

TEST_CASE_METHOD(
  fixture, "a call is made for the trace that its client names, and one that is malformed stops nothing") {
  const auto traces = [&](http::headers fields) {
    world_->seen_traces.clear();
    const auto view = ask("GET", "/v1/sessions/" + session_id, {}, std::move(fields));
    CHECK(view->answer->status == 200);
    return world_->seen_traces;
  };
  CHECK(traces({}) == std::vector<std::string>{"none", "none"});
  CHECK(traces({{"TraceParent", example}}) == std::vector<std::string>{example, example});
  CHECK(traces({{"traceparent", "nonsense"}}) == std::vector<std::string>{"none", "none"});
  CHECK(
    traces({{"traceparent", example}, {"Traceparent", example}}) == std::vector<std::string>{"none", "none"});
}

TEST_CASE_METHOD(fixture, "completions and streams are made for the client's trace") {
  world_->seen_traces.clear();
  ask("POST", "/v1/chat/completions", chat_body,
    {{"Content-Type", "application/json"}, {"traceparent", example}});
  REQUIRE_FALSE(world_->seen_traces.empty());
  for (const auto& each : world_->seen_traces)
    CHECK(each == example);
}
