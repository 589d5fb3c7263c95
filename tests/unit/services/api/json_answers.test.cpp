#include "services/api/letters.hpp"
#include "services/api/node_json.hpp"
#include "services/api/session_json.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

using namespace godwit;
using nlohmann::json;

namespace {

letter<schema::SessionInfo> session_info() {
  create_session_request request;
  request.sampling.settings.temperature = 0.7F;
  request.sampling.settings.bias = {{5, -1.5F}};
  request.sampling.max_tokens = 0;
  request.sampling.stop = {"END"};
  request.metadata = R"({"a":1})";
  request.on_busy = busy_rule::reject;
  const auto settings = settings_letter(request, tenant_id("acme"), "m", 42);
  return letter<schema::SessionInfo>::make([&](auto b) {
    b.setId("ses_1");
    b.setStatus("running");
    b.setSettings(settings.read());
    b.setOwnerNode("n1");
    b.setOwnerEpoch(3);
    b.setTurns(2);
    b.initUsage().setPromptTokens(10);
    b.getUsage().setCompletionTokens(4);
    b.getUsage().setCachedTokens(8);
    b.setKvDevice(14);
    b.setJournalSequence(9);
    b.setOldestEvent("123");
    b.setCreatedAt(1700000000);
  });
}

letter<schema::NodeStatus> node(const char* state, const char* actor_state, const char* reason) {
  return letter<schema::NodeStatus>::make([&](auto b) {
    b.setName("n1");
    b.setIncarnation("i1");
    b.setState(state);
    b.initRoles(1).set(0, "all");
    b.setModel("m");
    b.setStartedAt(5);
    auto actors = b.initActors(1);
    actors[0].setName("router");
    actors[0].setState(actor_state);
    actors[0].setReason(reason);
    auto gauges = actors[0].initGauges(2);
    gauges[0].setName("running");
    gauges[0].setValue(3);
    gauges[1].setName("load");
    gauges[1].setValue(0.5);
  });
}

} // namespace

TEST_CASE("the session object says all that the API promises") {
  CHECK(
    session_json(session_info().read())
    == R"({"id":"ses_1","object":"session","status":"running","model":"m","owner":{"node":"n1","epoch":3},)"
       R"("turns":2,"queued":0,"usage":{"prompt_tokens":10,"completion_tokens":4,"total_tokens":14,)"
       R"("prompt_tokens_details":{"cached_tokens":8,"cached_tokens_by_tier":{"device":8,"host":0,"disk":0}}},"kv":{"device":14,"host":0,"disk":0},)"
       R"("journal":{"sequence":9,"oldest_event":"123"},"created_at":1700000000,"expires_at":null,"on_busy":"reject",)"
       R"("sampling":{"temperature":0.7,"top_p":1.0,"top_k":0,"min_p":0.0,"repeat_penalty":1.0,)"
       R"("frequency_penalty":0.0,"presence_penalty":0.0,"seed":42,"logit_bias":{"5":-1.5},)"
       R"("max_tokens":null,"stop":["END"]},"metadata":{"a":1}})");
}

TEST_CASE("a fork names its origin and an erased session says so") {
  const auto fork = letter<schema::SessionInfo>::make([](auto b) {
    b.setForkedFrom("ses_0");
    b.setForkedAt("7");
    b.setExpiresAt(99);
  });
  CHECK(
    json::parse(session_json(fork.read()))["forked_from"] == json::parse(R"({"session":"ses_0","at":"7"})"));
  CHECK(json::parse(session_json(fork.read()))["expires_at"] == 99);
  CHECK(json::parse(erased_session_json(fork.read()))["deleted"] == true);
}

TEST_CASE("a page of sessions says where the next one begins") {
  const auto list = letter<schema::SessionList>::make([](auto b) {
    b.initSessions(1)[0].setId("ses_1");
    b.setHasMore(true);
    b.setNext("ses_1");
  });
  const auto body = json::parse(session_list_json(list.read()));
  CHECK(body["data"][0]["id"] == "ses_1");
  CHECK(body["has_more"] == true);
  CHECK(body["next"] == "ses_1");
  CHECK(json::parse(session_list_json(letter<schema::SessionList>().read()))["next"].is_null());
}

TEST_CASE("a transcript lists its messages in order") {
  const auto transcript = letter<schema::Transcript>::make([](auto b) {
    auto messages = b.initMessages(2);
    messages[0].setRole("user");
    messages[0].setContent("Hi");
    messages[1].setRole("assistant");
    messages[1].setContent("Yo");
    b.setRunning(true);
  });
  CHECK(
    transcript_json(transcript.read())
    == R"({"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":"Yo"}],"running":true})");
}

TEST_CASE("an accepted message and a cancelled turn say which turn it is") {
  const auto accepted = letter<schema::MessageAccepted>::make([](auto b) {
    b.setTurn(2);
    b.setSequence(17);
    b.setEventBefore("16");
  });
  CHECK(accepted_json(accepted.read()) == R"({"turn":2,"sequence":17,"after":"16"})");
  const auto turn = letter<schema::TurnState>::make([](auto b) {
    b.setTurn(2);
    b.setStatus("cancelled");
    b.setSequence(20);
  });
  CHECK(turn_json(turn.read()) == R"({"turn":2,"status":"cancelled","sequence":20})");
}

TEST_CASE("a pin tells its tokens and its end, and one that is no more neither") {
  const auto pinned = letter<schema::CachePinned>::make([](auto b) {
    b.setPin(7);
    b.setBlocks(3);
  });
  CHECK(pin_json(session_id("ses_1"), pinned.read(), 99)
        == R"({"id":"ses_1","pinned_tokens":48,"expires_at":99})");
  CHECK(pin_json(session_id("ses_1"), letter<schema::CachePinned>().read(), 99)
        == R"({"id":"ses_1","pinned_tokens":0,"expires_at":null})");
}

TEST_CASE("nodes and actors are lists") {
  const auto status = list_of_one(node("ready", "ready", "").read());
  CHECK(node_list_json(status.read())
        == R"({"object":"list","data":[{"name":"n1","incarnation":"i1","state":"ready","roles":["all"],)"
           R"("model":"m","fingerprint":"","version":"","capacity":0,"started_at":5,"link":"self"}]})");
  CHECK(actor_list_json(status.read())
        == R"({"object":"list","data":[{"name":"router","node":"n1","state":"ready",)"
           R"("gauges":{"running":3,"load":0.5}}]})");
}

TEST_CASE("of many nodes each is shown as the link sees it, and actors by their node") {
  const auto one = node("ready", "ready", "");
  const auto list = letter<schema::NodeList>::make([&](schema::NodeList::Builder b) {
    auto nodes = b.initNodes(3);
    nodes.setWithCaveats(0, one.read());
    nodes[0].setLink("self");
    nodes.setWithCaveats(1, one.read());
    nodes[1].setName("n2");
    nodes[1].setLink("up");
    nodes[1].setRoundTrip(0.00025);
    nodes[2].setName("n3");
    nodes[2].setState("away");
    nodes[2].setLink("away");
    nodes[2].setWhy("it does not answer");
  });
  const auto shown = json::parse(node_list_json(list.read()))["data"];
  REQUIRE(shown.size() == 3);
  CHECK_FALSE(shown[0].contains("round_trip_s"));
  CHECK(shown[1]["round_trip_s"] == 0.00025);
  CHECK(shown[2]["reason"] == "it does not answer");
  CHECK(shown[2]["link"] == "away");
  const auto actors = json::parse(actor_list_json(list.read()))["data"];
  REQUIRE(actors.size() == 2);
  CHECK(actors[1]["node"] == "n2");
  CHECK(json::parse(actor_list_json(list.read(), "n2"))["data"].size() == 1);
  CHECK(json::parse(actor_list_json(list.read(), "n3"))["data"].empty());
}

TEST_CASE("a node is ready when all of its actors are, else it says who is not") {
  CHECK(readiness_of(node("ready", "ready", "").read()).ready);
  const auto waiting = readiness_of(node("ready", "starting", "loading weights").read());
  CHECK_FALSE(waiting.ready);
  CHECK(
    waiting.body
    == R"({"status":"not_ready","reasons":[{"actor":"router","state":"starting","reason":"loading weights"}]})");
  const auto lonely =
    readiness_of(node("ready", "ready", "").read(), {{"tokenizer", "no node with it is there"}});
  CHECK(
    lonely.body
    == R"({"status":"not_ready","reasons":[{"role":"tokenizer","state":"away","reason":"no node with it is there"}]})");
  const auto draining = readiness_of(node("draining", "ready", "").read());
  CHECK_FALSE(draining.ready);
  CHECK(json::parse(draining.body)["reasons"][0]["actor"] == "node");
}

TEST_CASE("models have OpenAI's shape") {
  model_card card;
  card.id = "m";
  card.created = 7;
  card.context = 2048;
  card.fingerprint = "f";
  const auto body = json::parse(model_list_json(card));
  CHECK(body["object"] == "list");
  CHECK(body["data"][0] == json::parse(model_json(card)));
  CHECK(body["data"][0]["id"] == "m");
  CHECK(body["data"][0]["object"] == "model");
  CHECK(body["data"][0]["created"] == 7);
  CHECK(body["data"][0]["owned_by"].is_string());
}
