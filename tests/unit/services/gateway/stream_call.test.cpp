#include "tests/unit/services/gateway/fixture.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

using namespace godwit;
using namespace godwit::test;
using namespace std::chrono_literals;
using nlohmann::json;

namespace {

const std::string events_path = "/v1/sessions/" + fixture::session_id + "/events";
const std::string messages_path = "/v1/sessions/" + fixture::session_id + "/messages";
const std::string preamble = "retry: 1000\n\n";

std::string framed(const std::string& id, const std::string& type, const std::string& data = "{}") {
  return "id: " + id + "\nevent: " + type + "\ndata: " + data + "\n\n";
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t out = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++out;
  return out;
}

} // namespace

TEST_CASE_METHOD(fixture, "events are streamed from the place that the client names") {
  const auto view = ask("GET", events_path + "?after=5", {}, {{"X-Tenant-ID", "acme"}});
  CHECK(view->status == 200);
  CHECK(view->bytes == preamble);
  REQUIRE(world_->subscriptions.size() == 1);
  const auto wish = world_->subscriptions[0].request.read();
  CHECK(wish.getAfter() == "5");
  CHECK(wish.getCredit() == 64);
  CHECK(wish.getOnlyTurn() == 0);
  CHECK_FALSE(wish.getSnapshot());
  CHECK(world_->located[0].read().getTenant() == "acme");
  events(0, {{"6", "turn.started", "{}"}, {"7", "token", R"({"text":"Hi"})"}});
  CHECK(view->bytes == preamble + framed("6", "turn.started") + framed("7", "token", R"({"text":"Hi"})"));
  REQUIRE(world_->event_credits.size() == 1);
  CHECK(world_->event_credits[0].read().getEvents() == 2);
  CHECK(world_->event_credits[0].read().getSubscription() == 1);
  events(0, {{"8", "turn.completed", "{}"}}, true);
  CHECK(view->ended);
  CHECK(view->dropped);
}

TEST_CASE_METHOD(fixture, "a snapshot is asked for once") {
  ask("GET", events_path + "?snapshot=1");
  CHECK(world_->subscriptions.at(0).request.read().getSnapshot());
  events(0, {{"20", "snapshot", "{}"}});
  replace_session();
  pass(1s);
  REQUIRE(world_->subscriptions.size() == 2);
  CHECK_FALSE(world_->subscriptions[1].request.read().getSnapshot());
  CHECK(world_->subscriptions[1].request.read().getAfter() == "20");
}

TEST_CASE_METHOD(fixture, "a refused subscription is an ordinary answer") {
  world_->session_error = error{errc::gone, "that event is not kept any more", "after", {}};
  const auto view = ask("GET", events_path + "?after=1");
  REQUIRE(view->answer);
  CHECK(view->answer->status == 410);
  const auto told = json::parse(view->answer->body)["error"];
  CHECK(told["code"] == "gone");
  CHECK(told["oldest"] == "50");
  CHECK(told["snapshot"] == events_path + "?snapshot=1");
  CHECK(view->status == 0);
  CHECK(ask("GET", "/v1/sessions/ses_ffffffffffffffffffffffffffffffff/events")->answer->status == 404);
}

TEST_CASE_METHOD(fixture, "a place that is refused is named as the client named it") {
  world_->session_error = error{errc::invalid_argument, "not an event id", "after", {}};
  const auto by_query = ask("GET", events_path + "?after=1");
  REQUIRE(by_query->answer);
  CHECK(json::parse(by_query->answer->body)["error"]["param"] == "after");
  const auto by_header = ask("GET", events_path + "?after=1", {}, {{"Last-Event-ID", "2"}});
  REQUIRE(by_header->answer);
  CHECK(json::parse(by_header->answer->body)["error"]["param"] == "Last-Event-ID");
}

TEST_CASE_METHOD(fixture, "a stream whose place goes while it is read says where to go on") {
  const auto view = ask("GET", events_path);
  events(0, {{"1", "token", "{}"}}, true, error{errc::gone, "not kept any more", {}, {}});
  CHECK(view->ended);
  const auto at = view->bytes.find("event: error\ndata: ");
  REQUIRE(at != std::string::npos);
  const auto told = json::parse(view->bytes.substr(at + 19))["error"];
  CHECK(told["oldest"] == "50");
  CHECK(told["snapshot"] == events_path + "?snapshot=1");
}

TEST_CASE_METHOD(fixture, "a stream of past events only is asked for as such") {
  ask("GET", events_path + "?follow=0");
  ask("GET", events_path + "?follow=1");
  ask("GET", events_path);
  REQUIRE(world_->subscriptions.size() == 3);
  CHECK(world_->subscriptions[0].request.read().getPastOnly());
  CHECK_FALSE(world_->subscriptions[1].request.read().getPastOnly());
  CHECK_FALSE(world_->subscriptions[2].request.read().getPastOnly());
}

TEST_CASE_METHOD(fixture, "draining ends a stream that is looking for its session") {
  const auto view = ask("GET", events_path);
  world_->directory_error = error{errc::unavailable, "no node has the session", {}, {}};
  replace_session();
  gateway_->drain();
  pass(2s);
  CHECK(view->ended);
  CHECK(view->bytes.find("\"draining\"") != std::string::npos);
}

TEST_CASE_METHOD(fixture, "a message with a stream is posted and its turn's events follow") {
  const auto by_body = GENERATE(true, false);
  const auto view =
    by_body ? ask("POST", messages_path, R"({"content":"Hi","stream":true})", {{"Idempotency-Key", "k"}})
            : ask("POST", messages_path, R"({"content":"Hi"})",
              {{"Accept", "text/event-stream"}, {"Idempotency-Key", "k"}});
  REQUIRE(world_->posted.size() == 1);
  CHECK(world_->posted[0].read().getContent() == "Hi");
  CHECK(world_->posted[0].read().getIdempotencyKey() == "k");
  REQUIRE(world_->subscriptions.size() == 1);
  CHECK(world_->subscriptions[0].request.read().getAfter() == "10");
  CHECK(world_->subscriptions[0].request.read().getOnlyTurn() == 2);
  events(0, {{"11", "message.accepted", "{}"}, {"12", "turn.completed", "{}"}}, true);
  CHECK(view->bytes == preamble + framed("11", "message.accepted") + framed("12", "turn.completed"));
  CHECK(view->ended);
}

TEST_CASE_METHOD(fixture, "a refused message with a stream is an ordinary answer") {
  world_->session_error = error{errc::conflict, "a turn is running", {}, "turn_running"};
  const auto view = ask("POST", messages_path, R"({"content":"Hi","stream":true})");
  REQUIRE(view->answer);
  CHECK(view->answer->status == 409);
  CHECK(json::parse(view->answer->body)["error"]["code"] == "turn_running");
}

TEST_CASE_METHOD(fixture, "a slow reader holds the session up instead of filling the memory") {
  const auto view = ask_slowly("GET", events_path);
  REQUIRE(view->waiting.size() == 1);
  events(0, {{"1", "token", "{}"}, {"2", "token", "{}"}});
  events(0, {{"3", "token", "{}"}});
  CHECK(view->waiting.size() == 1);
  CHECK(world_->event_credits.empty());
  view->take();
  run();
  CHECK(world_->event_credits.empty());
  view->take();
  run();
  REQUIRE(world_->event_credits.size() == 1);
  CHECK(world_->event_credits[0].read().getEvents() == 3);
  CHECK(count(view->bytes, "event: token") == 3);
}

TEST_CASE_METHOD(fixture, "a quiet stream sends a comment within 15 seconds, a slow one nothing") {
  const auto view = ask("GET", events_path);
  pass(14s);
  CHECK(view->bytes == preamble + ": alive\n\n");
  pass(60s);
  CHECK(count(view->bytes, ": alive") >= 5);
  const auto slow = ask_slowly("GET", events_path);
  pass(120s);
  CHECK(slow->waiting.size() == 1);
}

TEST_CASE_METHOD(fixture, "a late timer does not make a heartbeat later") {
  const auto view = ask("GET", events_path);
  scheduler_.advance_time(std::chrono::seconds(10));
  run();
  CHECK(view->bytes == preamble + ": alive\n\n");
}

TEST_CASE_METHOD(fixture, "a client that leaves is unsubscribed, and the session decides about its turn") {
  const auto view = ask("POST", messages_path, R"({"content":"Hi","stream":true,"on_disconnect":"cancel"})");
  CHECK(world_->posted.at(0).read().getCancelOnDisconnect());
  view->leave();
  run();
  REQUIRE(world_->unsubscribed.size() == 1);
  CHECK(world_->unsubscribed[0].read().getSubscription() == 1);
  CHECK(world_->unsubscribed[0].read().getClientLeft());
  CHECK(world_->cancelled_turns.empty());
  CHECK(view->dropped);
}

TEST_CASE_METHOD(fixture, "a failed write counts as leaving") {
  const auto view = ask_slowly("GET", events_path);
  view->on_leave = nullptr;
  view->leave();
  run();
  CHECK(world_->unsubscribed.size() == 1);
  CHECK(view->dropped);
}

TEST_CASE_METHOD(fixture, "a stream goes on behind its last event when the session's actor is replaced") {
  const auto view = ask("POST", messages_path, R"({"content":"Hi","stream":true})");
  events(0, {{"11", "message.accepted", "{}"}, {"12", "token", "{}"}});
  replace_session();
  pass(1s);
  REQUIRE(world_->subscriptions.size() == 2);
  CHECK(world_->posted.size() == 1);
  CHECK(world_->subscriptions[1].request.read().getAfter() == "12");
  CHECK(world_->subscriptions[1].request.read().getOnlyTurn() == 2);
  events(1, {{"13", "turn.completed", "{}"}}, true);
  CHECK(
    view->bytes
    == preamble + framed("11", "message.accepted") + framed("12", "token") + framed("13", "turn.completed"));
  CHECK(view->ended);
}

TEST_CASE_METHOD(fixture, "a session that cannot be found again ends the stream with an error event") {
  const auto view = ask("GET", events_path);
  events(0, {{"1", "token", "{}"}});
  world_->directory_error = error{errc::unavailable, "no node has the session", {}, {}};
  replace_session();
  CHECK_FALSE(view->ended);
  pass(30s);
  CHECK(view->ended);
  const auto at = view->bytes.find("event: error\ndata: ");
  REQUIRE(at != std::string::npos);
  CHECK(view->bytes.starts_with(preamble + framed("1", "token")));
  CHECK(count(view->bytes, "event: ") == 2);
  CHECK(json::parse(view->bytes.substr(at + 19))["error"]["code"] == "unavailable");
}

TEST_CASE_METHOD(fixture, "the session's own failure is an error event and a clean end") {
  const auto view = ask("GET", events_path);
  events(0, {{"1", "token", "{}"}}, true, error{errc::quarantined, "the journal is damaged", {}, {}});
  CHECK(view->ended);
  CHECK(view->bytes.find("event: error\ndata: {\"error\":") != std::string::npos);
  CHECK(view->bytes.find(framed("1", "token")) != std::string::npos);
}

TEST_CASE_METHOD(fixture, "draining lets a running turn finish and ends idle streams") {
  const auto idle = ask("GET", events_path);
  const auto running = ask("GET", events_path);
  events(1, {{"1", "turn.started", "{}"}});
  gateway_->drain();
  pass(2s);
  CHECK(idle->ended);
  CHECK(idle->bytes.find("\"draining\"") != std::string::npos);
  REQUIRE(world_->unsubscribed.size() == 1);
  CHECK_FALSE(world_->unsubscribed[0].read().getClientLeft());
  CHECK_FALSE(running->ended);
  events(1, {{"2", "turn.completed", "{}"}});
  pass(2s);
  CHECK(running->ended);
}

TEST_CASE_METHOD(fixture, "when the gateway goes, streams end with an event, and nobody is taken for gone") {
  const auto view = ask("GET", events_path);
  events(0, {{"1", "turn.started", "{}"}});
  gateway_.reset();
  run();
  CHECK(view->ended);
  CHECK(view->dropped);
  CHECK(view->bytes.find("event: error\ndata: {\"error\":") != std::string::npos);
  REQUIRE(world_->unsubscribed.size() == 1);
  CHECK_FALSE(world_->unsubscribed[0].read().getClientLeft());
}

TEST_CASE_METHOD(fixture, "a streamed message that meets an overtaken owner is posted to the new one") {
  world_->session_error = error{errc::stale_epoch, "another node owns the session", {}, {}};
  const auto view = ask("POST", messages_path, R"({"content":"Hi","stream":true})");
  CHECK_FALSE(view->answer);
  CHECK(view->status == 0);
  world_->session_error.reset();
  pass(1s);
  REQUIRE(world_->posted.size() == 2);
  CHECK(world_->posted[0].read().getIdempotencyKey() == world_->posted[1].read().getIdempotencyKey());
  REQUIRE(world_->subscriptions.size() == 1);
  CHECK(world_->subscriptions[0].request.read().getOnlyTurn() == 2);
  CHECK(view->status == 200);
}
