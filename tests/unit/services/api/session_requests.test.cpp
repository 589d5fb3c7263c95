#include "services/api/session_requests.hpp"

#include <catch2/catch.hpp>

using namespace godwit;

namespace {

constexpr token_id vocabulary = 100;

template <class T>
error refusal(const result<T>& parsed) {
  REQUIRE_FALSE(parsed);
  return parsed.error();
}

std::string create_fault(std::string_view body) {
  return refusal(parse_create_session(body, vocabulary, {})).param;
}

std::string message_fault(std::string_view body) {
  return refusal(parse_message(body)).param;
}

} // namespace

TEST_CASE("a session may be created with nothing said") {
  const auto body = GENERATE(as<std::string>{}, "", "{}");
  const auto request = parse_create_session(body, vocabulary, {});
  REQUIRE(request);
  CHECK(request->model.empty());
  CHECK_FALSE(request->system);
  CHECK(request->on_busy == busy_rule::queue);
  CHECK(request->ttl_s == 0);
  CHECK(request->metadata == "{}");
}

TEST_CASE("every field of a new session reaches its place") {
  const auto request = parse_create_session(R"({"model":"m","system":"","sampling":{"temperature":0,
    "top_k":5,"seed":9,"max_tokens":3,"stop":["x"],"logit_bias":{"99":-1}},"metadata":{"b":1,"a":[2]},"ttl_s":60,
    "on_busy":"interrupt"})",
    vocabulary, {});
  REQUIRE(request);
  CHECK(request->model == "m");
  CHECK(request->system == "");
  CHECK(request->sampling.settings.temperature == 0.0F);
  CHECK(request->sampling.settings.top_k == 5);
  CHECK(request->sampling.settings.seed == 9);
  CHECK(request->sampling.seeded);
  CHECK(request->sampling.max_tokens == 3);
  CHECK(request->sampling.stop == std::vector<std::string>{"x"});
  CHECK(request->metadata == R"({"a":[2],"b":1})");
  CHECK(request->ttl_s == 60);
  CHECK(request->on_busy == busy_rule::interrupt);
}

TEST_CASE("what a session does not say of sampling is the node's choice") {
  const sampling_settings unnamed{
    .temperature = 0.5F, .top_k = 7, .top_p = 0.75F, .min_p = 0.25F, .bias = {}};
  const auto* body = GENERATE("", "{}", R"({"sampling":{}})", R"({"sampling":{"top_k":3}})");
  const auto request = parse_create_session(body, vocabulary, unnamed);
  REQUIRE(request);
  const auto& made = request->sampling.settings;
  CHECK(made.temperature == 0.5F);
  CHECK(made.top_k == (std::string_view(body).find("3") == std::string_view::npos ? 7 : 3));
  CHECK(made.top_p == 0.75F);
  CHECK(made.min_p == 0.25F);
}

TEST_CASE("a faulty new session is refused by the field's name") {
  CHECK(create_fault(R"({"tools":[]})") == "tools");
  CHECK(create_fault(R"({"sampling":{"temperature":3}})") == "sampling.temperature");
  CHECK(create_fault(R"({"sampling":{"n":2}})") == "sampling.n");
  CHECK(create_fault(R"({"sampling":{"stop":["a",1]}})") == "sampling.stop[1]");
  CHECK(create_fault(R"({"sampling":{"logit_bias":{"100":1}}})") == "sampling.logit_bias.100");
  CHECK(create_fault(R"({"sampling":[]})") == "sampling");
  CHECK(create_fault(R"({"temperature":1})") == "temperature");
  CHECK(create_fault(R"({"metadata":"x"})") == "metadata");
  CHECK(create_fault(R"({"metadata":{"x":")" + std::string(20'000, 'y') + R"("}})") == "metadata");
  CHECK(create_fault(R"({"ttl_s":0})") == "ttl_s");
  CHECK(create_fault(R"({"ttl_s":-1})") == "ttl_s");
  CHECK(create_fault(R"({"on_busy":"panic"})") == "on_busy");
  CHECK(create_fault(R"({"system":1})") == "system");
  CHECK(create_fault("[]").empty());
}

TEST_CASE("a message says what, how and for how long") {
  const auto request =
    parse_message(R"({"content":[{"type":"text","text":"Hi"}],"stream":true,"on_disconnect":"cancel"})");
  REQUIRE(request);
  CHECK(request->content == "Hi");
  CHECK(request->stream);
  CHECK(request->cancel_on_disconnect);
  CHECK_FALSE(parse_message(R"({"content":"Hi"})").value().stream);
}

TEST_CASE("a faulty message is refused by the field's name") {
  CHECK(message_fault("{}") == "content");
  CHECK(message_fault(R"({"content":null})") == "content");
  CHECK(message_fault(R"({"content":1})") == "content");
  CHECK(message_fault(R"({"tool_results":[{}]})") == "tool_results");
  CHECK(message_fault(R"({"content":"x","on_disconnect":"sulk"})") == "on_disconnect");
  CHECK(message_fault(R"({"content":"x","role":"user"})") == "role");
  CHECK(refusal(parse_message("")).code == errc::invalid_argument);
}

TEST_CASE("a message's digest depends on what it says, not on how it is written") {
  const auto digest = [](std::string_view body) { return parse_message(body).value().digest(); };
  const auto plain = digest(R"({"content":"Hi"})");
  CHECK(digest(R"( { "stream" : true , "content" : "\u0048i" } )") == plain);
  CHECK(digest(R"({"content":[{"type":"text","text":"Hi"}]})") == plain);
  CHECK(digest(R"({"content":"Hi","on_disconnect":"continue"})") == plain);
  CHECK(digest(R"({"content":"hi"})") != plain);
  CHECK(digest(R"({"content":"Hi","on_disconnect":"cancel"})") != plain);
}

TEST_CASE("a cancel names a turn or none") {
  CHECK(parse_cancel("").value().turn == 0);
  CHECK(parse_cancel(R"({"turn":3})").value().turn == 3);
  CHECK(refusal(parse_cancel(R"({"turn":0})")).param == "turn");
  CHECK(refusal(parse_cancel(R"({"why":"x"})")).param == "why");
}

TEST_CASE("a fork begins at an event, a turn or the end") {
  CHECK(parse_fork("").value().at.empty());
  CHECK(parse_fork(R"({"at":"e12"})").value().at == "e12");
  CHECK(parse_fork(R"({"at":2})").value().at == "2");
  CHECK(refusal(parse_fork(R"({"at":""})")).param == "at");
  CHECK(refusal(parse_fork(R"({"at":-1})")).param == "at");
  CHECK(refusal(parse_fork(R"({"at":[]})")).param == "at");
}

TEST_CASE("a pin lasts from a second to a day, and says how long") {
  CHECK(parse_pin(R"({"ttl_seconds":1})").value().ttl_seconds == 1);
  CHECK(parse_pin(R"({"ttl_seconds":86400})").value().ttl_seconds == 86400);
  for (const auto* body : {"{}", R"({"ttl_seconds":null})", R"({"ttl_seconds":0})",
         R"({"ttl_seconds":86401})", R"({"ttl_seconds":"1"})"})
    CHECK(refusal(parse_pin(body)).param == "ttl_seconds");
  CHECK(refusal(parse_pin(R"({"ttl_seconds":1,"blocks":2})")).param == "blocks");
  CHECK(refusal(parse_pin("")).code == errc::invalid_argument);
}
