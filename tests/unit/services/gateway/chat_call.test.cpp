#include "actors/prefill/request_check.hpp"
#include "tests/unit/services/gateway/fixture.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

using namespace godwit;
using namespace godwit::test;
using nlohmann::json;
using schema::FinishReason;

namespace {

const std::string path = "/v1/chat/completions";

std::string body(const char* fields) {
  auto out = json::parse(fixture::chat_body);
  out.merge_patch(json::parse(fields));
  return out.dump();
}

/// The data of every event that a client has seen.
std::vector<json> chunks(const client_view& view) {
  std::vector<json> out;
  const std::string prefix = "data: ";
  for (std::size_t at = 0; (at = view.bytes.find(prefix, at)) != std::string::npos;) {
    at += prefix.size();
    const auto end = view.bytes.find("\n\n", at);
    const auto text = view.bytes.substr(at, end - at);
    out.push_back(text == "[DONE]" ? json("[DONE]") : json::parse(text));
  }
  return out;
}

std::string content(const client_view& view) {
  std::string out;
  for (const auto& chunk : chunks(view))
    if (chunk.is_object() && chunk.contains("choices") && !chunk["choices"].empty())
      out += chunk["choices"][0]["delta"].value("content", "");
  return out;
}

json refusal(const std::shared_ptr<client_view>& view, int status) {
  REQUIRE(view->answer);
  CHECK(view->answer->status == status);
  return json::parse(view->answer->body)["error"];
}

} // namespace

TEST_CASE_METHOD(fixture, "a completion is rendered, placed and answered whole") {
  const auto view =
    ask("POST", path, body(R"({"stream":false,"max_tokens":5,"temperature":0})"), {{"X-Tenant-ID", "acme"}});
  REQUIRE(world_->renders.size() == 1);
  CHECK(world_->renders[0].read().getMessages()[0].getContent() == "Hi");
  CHECK(world_->renders[0].read().getAddGenerationPrompt());
  REQUIRE(world_->generations.size() == 1);
  const auto placed = world_->generations[0].request.read();
  CHECK(placed.getTenant() == "acme");
  CHECK(placed.getModel() == "m");
  CHECK(placed.getTokens().size() == 3);
  CHECK(placed.getPromptLength() == 3);
  CHECK(placed.getMaxTokens() == 5);
  CHECK(placed.getSampling().getSeed() == 7);
  CHECK(placed.getSampling().getTemperature() == 0.0F);
  CHECK(placed.getCredit() == 64);
  CHECK_FALSE(view->answer);
  tokens(0, {.tokens = {{0}, {1}}, .prompt = 3, .cached = 2});
  // Nothing holds back a client that waits for the whole.
  REQUIRE(world_->token_credits.size() == 1);
  CHECK(world_->token_credits[0].read().getTokens() == 2);
  tokens(0, {.finish = FinishReason::LENGTH});
  REQUIRE(view->answer);
  const auto answer = json::parse(view->answer->body);
  CHECK(answer["choices"][0]["message"]["content"] == "ab");
  CHECK(answer["choices"][0]["finish_reason"] == "length");
  CHECK(answer["system_fingerprint"] == "fp_0123456789abcdef");
  CHECK(answer["created"] == 1700000000);
  CHECK(answer["usage"]["prompt_tokens_details"]["cached_tokens"] == 2);
  CHECK(world_->cancels.empty());
  CHECK(view->dropped);
}

TEST_CASE_METHOD(fixture, "a stream sends tokens as they come and ends with [DONE]") {
  const auto view = ask("POST", path, chat_body);
  CHECK(view->status == 0);
  tokens(0, {.tokens = {{0}}, .prompt = 3});
  CHECK(view->status == 200);
  CHECK(view->fields.front() == std::pair<std::string, std::string>{"Content-Type", "text/event-stream"});
  CHECK(content(*view) == "a");
  tokens(0, {.tokens = {{1}, {3}}, .finish = FinishReason::STOP});
  CHECK(content(*view) == "ab");
  CHECK(chunks(*view).back() == "[DONE]");
  CHECK(view->ended);
  CHECK(view->dropped);
}

TEST_CASE_METHOD(fixture, "an answer without a limit may fill what the context has left") {
  ask("POST", path, chat_body);
  ask("POST", path, body(R"({"max_tokens":1000})"));
  CHECK(world_->generations[0].request.read().getMaxTokens() == 97);
  CHECK(world_->generations[1].request.read().getMaxTokens() == 97);
}

TEST_CASE_METHOD(fixture, "three choices are three generations of one group with seeds of their own") {
  const auto view = ask("POST", path, body(R"({"n":3,"stream":false})"));
  REQUIRE(world_->generations.size() == 3);
  const auto group = world_->generations[0].request.read().getGroup();
  CHECK(group != 0);
  for (std::uint64_t i = 0; i < 3; ++i) {
    CHECK(world_->generations[i].request.read().getGroup() == group);
    CHECK(world_->generations[i].request.read().getSampling().getSeed() == 7 + i);
  }
  CHECK(
    world_->generations[0].request.read().getRequest() != world_->generations[1].request.read().getRequest());
  tokens(2, {.tokens = {{2}}, .finish = FinishReason::LENGTH, .prompt = 3});
  tokens(0, {.tokens = {{0}}, .finish = FinishReason::LENGTH, .prompt = 3});
  CHECK_FALSE(view->answer);
  tokens(1, {.tokens = {{1}}, .finish = FinishReason::LENGTH, .prompt = 3});
  REQUIRE(view->answer);
  const auto answer = json::parse(view->answer->body);
  CHECK(answer["choices"][0]["message"]["content"] == "a");
  CHECK(answer["choices"][1]["message"]["content"] == "b");
  CHECK(answer["choices"][2]["message"]["content"] == "c");
  CHECK(answer["usage"]["completion_tokens"] == 3);
}

TEST_CASE_METHOD(fixture, "a completion without a seed gets a drawn one") {
  ask("POST", path, body(R"({"seed":null})"));
  ask("POST", path, body(R"({"seed":null})"));
  CHECK(world_->generations[0].request.read().getSampling().getSeed()
        != world_->generations[1].request.read().getSampling().getSeed());
}

TEST_CASE_METHOD(fixture, "a stop string ends its choice in the engine too") {
  const auto view = ask("POST", path, body(R"({"stop":"b","n":2,"stream":false})"));
  tokens(0, {.tokens = {{0}, {1}, {2}}, .prompt = 3});
  REQUIRE(world_->cancels.size() == 1);
  const auto cancel = world_->cancels[0].read();
  REQUIRE(cancel.getRequests().size() == 1);
  CHECK(cancel.getRequests()[0] == world_->generations[0].request.read().getRequest());
  CHECK(cancel.getGroup() == 0);
  CHECK(cancel.getCause() == schema::EndCause::STOP_SEQUENCE);
  tokens(0, {.finish = FinishReason::CANCELLED});
  tokens(1, {.tokens = {{2}}, .finish = FinishReason::LENGTH, .prompt = 3});
  REQUIRE(view->answer);
  const auto answer = json::parse(view->answer->body);
  CHECK(answer["choices"][0]["message"]["content"] == "a");
  CHECK(answer["choices"][0]["finish_reason"] == "stop");
  CHECK(answer["choices"][1]["message"]["content"] == "c");
}

TEST_CASE_METHOD(fixture, "a slow reader holds the engine up instead of filling the memory") {
  const auto view = ask_slowly("POST", path, chat_body);
  tokens(0, {.tokens = {{0}}, .prompt = 3});
  REQUIRE(view->waiting.size() == 1);
  for (int i = 0; i < 63; ++i)
    tokens(0, {.tokens = {{1}}});
  // The engine has used up its credit, and one write is under way.
  CHECK(view->waiting.size() == 1);
  CHECK(world_->token_credits.empty());
  view->take();
  run();
  REQUIRE(world_->token_credits.size() == 1);
  CHECK(world_->token_credits[0].read().getTokens() == 1);
  view->take();
  run();
  CHECK(world_->token_credits[1].read().getTokens() == 63);
  CHECK(content(*view) == "a" + std::string(63, 'b'));
  tokens(0, {.finish = FinishReason::STOP});
  CHECK_FALSE(view->ended);
  view->take();
  run();
  CHECK(view->ended);
}

TEST_CASE_METHOD(fixture, "a slow reader is not taken for a stalled engine") {
  const auto view = ask_slowly("POST", path, chat_body);
  tokens(0, {.tokens = {{0}}, .prompt = 3});
  pass(std::chrono::minutes(10));
  CHECK(world_->cancels.empty());
  CHECK_FALSE(view->ended);
}

TEST_CASE_METHOD(fixture, "a client that leaves ends its generations, all of them") {
  const auto view = ask("POST", path, body(R"({"n":2})"));
  if (GENERATE(false, true))
    tokens(0, {.tokens = {{0}}, .prompt = 3});
  view->leave();
  run();
  REQUIRE(world_->cancels.size() == 1);
  CHECK(world_->cancels[0].read().getGroup() == world_->generations[0].request.read().getGroup());
  CHECK(world_->cancels[0].read().getCause() == schema::EndCause::CANCELLED);
  tokens(0, {.tokens = {{0}}});
  CHECK(world_->cancels.size() == 1);
  CHECK(view->dropped);
}

TEST_CASE_METHOD(fixture, "a client that leaves with a write under way is noticed once") {
  const auto slow = ask_slowly("POST", path, chat_body);
  tokens(0, {.tokens = {{0}}, .prompt = 3});
  slow->leave();
  run();
  CHECK(world_->cancels.size() == 1);
  CHECK(slow->dropped);
}

TEST_CASE_METHOD(fixture, "a failure before the first byte is an ordinary refusal") {
  const auto stream = GENERATE(false, true);
  const auto view = ask("POST", path, body(stream ? "{}" : R"({"stream":false})"));
  tokens(
    0, {.finish = FinishReason::FAILED, .code = errc::resource_exhausted, .message = "no pages are free"});
  CHECK(refusal(view, 529)["code"] == "resource_exhausted");
  CHECK(view->status == 0);
}

TEST_CASE_METHOD(fixture, "a prompt that no worker can ever hold is refused, not put off") {
  world_->router_error =
    check_request(letter<schema::GenerateRequest>::make([](schema::GenerateRequest::Builder b) {
      b.initTokens(48);
      b.setPromptLength(48);
    }).read(),
      {.vocabulary = 100, .context = 64, .pool_tokens = 48})
      .error();
  const auto view = ask("POST", path, body(R"({"stream":false})"));
  CHECK(refusal(view, 400)["code"] == "kv_capacity_exceeded");
  for (const auto& [name, value] : view->answer->fields)
    CHECK(name != "Retry-After");
  CHECK(world_->generations.size() == 1);
}

TEST_CASE_METHOD(fixture, "a failure in mid-stream is an event and a clean end") {
  const auto view = ask("POST", path, chat_body);
  tokens(0, {.tokens = {{0}}, .prompt = 3});
  tokens(0, {.finish = FinishReason::FAILED, .code = errc::deadline, .message = "too late"});
  CHECK(view->ended);
  CHECK(chunks(*view).back()["error"]["code"] == "deadline");
  CHECK(content(*view) == "a");
  CHECK(view->bytes.find("[DONE]") == std::string::npos);
}

TEST_CASE_METHOD(fixture, "one failed choice ends the others") {
  const auto view = ask("POST", path, body(R"({"n":2})"));
  tokens(0, {.tokens = {{0}}, .prompt = 3});
  tokens(1, {.finish = FinishReason::FAILED, .code = errc::deadline, .message = "too late"});
  REQUIRE(world_->cancels.size() == 1);
  CHECK(world_->cancels[0].read().getGroup() != 0);
  CHECK(world_->cancels[0].read().getCause() == schema::EndCause::DEADLINE);
  CHECK(view->ended);
}

TEST_CASE_METHOD(fixture, "the words of an internal failure go to the log and not to the client") {
  const auto view = ask("POST", path, chat_body);
  tokens(0, {.tokens = {{0}}, .prompt = 3});
  tokens(0, {.finish = FinishReason::FAILED, .code = errc::internal, .message = "null at 0xdead"});
  CHECK(view->bytes.find("0xdead") == std::string::npos);
  REQUIRE(world_->reports.size() == 1);
  CHECK(world_->reports[0].first == path);
  CHECK(world_->reports[0].second.message == "null at 0xdead");
}

TEST_CASE_METHOD(fixture, "an overloaded mesh says 529 and when to come back") {
  world_->router_error = error{errc::overloaded, "all workers are busy", {}, {}};
  const auto view = ask("POST", path, chat_body);
  CHECK(refusal(view, 529)["type"] == "overloaded_error");
  CHECK(view->answer->fields.back() == std::pair<std::string, std::string>{"Retry-After", "1"});
}

TEST_CASE_METHOD(fixture, "a draining router and a missing worker say 503") {
  const auto code = GENERATE(errc::draining, errc::unavailable);
  world_->router_error = error{code, "not now", {}, {}};
  refusal(ask("POST", path, chat_body), 503);
}

TEST_CASE_METHOD(fixture, "a router that does not answer is a deadline, and what it took is ended") {
  world_->silent_router = true;
  const auto view = ask("POST", path, chat_body);
  pass(std::chrono::seconds(20));
  refusal(view, 504);
  CHECK(world_->cancels.size() == 1);
}

TEST_CASE_METHOD(fixture, "an engine that sends nothing for too long is given up") {
  const auto view = ask("POST", path, chat_body);
  tokens(0, {.tokens = {{0}}, .prompt = 3});
  pass(std::chrono::seconds(290));
  CHECK_FALSE(view->ended);
  // A quiet stream stays alive for proxies meanwhile.
  CHECK(view->bytes.find(": alive\n\n") != std::string::npos);
  pass(std::chrono::seconds(20));
  CHECK(view->ended);
  CHECK(chunks(*view).back()["error"]["code"] == "generation_stalled");
  REQUIRE(world_->cancels.size() == 1);
  CHECK(world_->cancels[0].read().getCause() == schema::EndCause::DEADLINE);
}

TEST_CASE_METHOD(fixture, "a prompt longer than the context is refused with both numbers") {
  world_->prompt_tokens = 100;
  const auto failure = refusal(ask("POST", path, chat_body), 400);
  CHECK(failure["code"] == "context_length_exceeded");
  CHECK(failure["message"].get<std::string>().find("100 tokens") != std::string::npos);
  CHECK(failure["message"].get<std::string>().find("holds 100") != std::string::npos);
  CHECK(world_->generations.empty());
  world_->prompt_tokens = 99;
  ask("POST", path, chat_body);
  CHECK(world_->generations.at(0).request.read().getMaxTokens() == 1);
}

TEST_CASE_METHOD(fixture, "a prompt that cannot fit is not even tokenised") {
  auto huge = json::parse(chat_body);
  huge["messages"][0]["content"] = std::string(1'000'000, 'x');
  const auto failure = refusal(ask("POST", path, huge.dump()), 400);
  CHECK(failure["code"] == "context_length_exceeded");
  CHECK(world_->renders.empty());
}

TEST_CASE_METHOD(fixture, "an unknown model is not found") {
  const auto failure = refusal(ask("POST", path, body(R"({"model":"other"})")), 404);
  CHECK(failure["code"] == "model_not_found");
  CHECK(failure["param"] == "model");
}

TEST_CASE_METHOD(fixture, "a template that refuses the messages is the client's fault") {
  world_->tokenizer_error = error{errc::invalid_argument, "roles must alternate", "messages", {}};
  CHECK(refusal(ask("POST", path, chat_body), 400)["param"] == "messages");
}

TEST_CASE_METHOD(fixture, "a bound session must be the tenant's") {
  ask("POST", path, chat_body, {{"X-Session-ID", session_id}, {"X-Tenant-ID", "acme"}});
  CHECK(world_->generations.size() == 1);
  REQUIRE(world_->located.size() == 1);
  CHECK(world_->located[0].read().getTenant() == "acme");
  refusal(ask("POST", path, chat_body, {{"X-Session-ID", "ses_ffffffffffffffffffffffffffffffff"}}), 404);
  refusal(ask("POST", path, chat_body, {{"X-Session-ID", "nonsense"}}), 404);
  CHECK(world_->generations.size() == 1);
}

TEST_CASE_METHOD(fixture, "when the gateway goes, completions end: refused, told in the stream, or cut off") {
  const auto waiting = ask("POST", path, chat_body);
  const auto streaming = ask("POST", path, chat_body);
  tokens(1, {.tokens = {{0}}, .prompt = 3});
  const auto slow = ask_slowly("POST", path, chat_body);
  tokens(2, {.tokens = {{0}}, .prompt = 3});
  gateway_.reset();
  run();
  CHECK(refusal(waiting, 503)["code"] == "draining");
  CHECK(streaming->ended);
  CHECK(chunks(*streaming).back()["error"]["code"] == "draining");
  CHECK_FALSE(slow->ended);
  CHECK(slow->dropped);
  REQUIRE(world_->cancels.size() == 3);
  CHECK(world_->cancels[0].read().getCause() == schema::EndCause::DRAINING);
}

TEST_CASE_METHOD(fixture, "a lost generation is begun again behind its tokens, and nothing comes twice") {
  const auto view = ask("POST", path, body(R"({"max_tokens":10,"logprobs":true})"));
  tokens(0, {.tokens = {{0}, {1}}, .prompt = 3});
  if (GENERATE(false, true))
    lose(0);
  else
    // Worker and router at once: nobody is left that could tell.
    world_->generations[0].sink = generation_sink_actor();
  pass(std::chrono::seconds(1));
  REQUIRE(world_->generations.size() == 2);
  const auto first = world_->generations[0].request.read();
  const auto second = world_->generations[1].request.read();
  CHECK(second.getRequest() != first.getRequest());
  CHECK(second.getGroup() == first.getGroup());
  CHECK(second.getSampling().getSeed() == 7);
  CHECK(second.getPromptLength() == 3);
  REQUIRE(second.getTokens().size() == 5);
  CHECK(second.getTokens()[3] == 0);
  CHECK(second.getTokens()[4] == 1);
  CHECK(second.getMaxTokens() == 8);
  CHECK(second.getCredit() == 64);

  // What the first one still had under way does not count any more.
  if (world_->generations[0].sink)
    tokens(0, {.tokens = {{2}}});
  tokens(1, {.tokens = {{2}}, .prompt = 3});
  tokens(1, {.tokens = {{0}}, .finish = FinishReason::STOP});
  CHECK(content(*view) == "abca");
  CHECK(chunks(*view).back() == "[DONE]");
  std::size_t listed = 0;
  for (const auto& chunk : chunks(*view))
    if (chunk.is_object() && !chunk["choices"][0]["logprobs"].is_null())
      listed += chunk["choices"][0]["logprobs"]["content"].size();
  CHECK(listed == 4);
  CHECK(view->ended);
}

TEST_CASE_METHOD(fixture, "a worker that was lost before its first token costs nothing but time") {
  const auto view = ask("POST", path, body(R"({"stream":false})"));
  world_->router_error = error{errc::unavailable, "no worker is there", {}, {}};
  lose(0);
  pass(std::chrono::seconds(5));
  CHECK_FALSE(view->answer);
  CHECK(world_->generations.size() > 3);
  world_->router_error.reset();
  pass(std::chrono::seconds(2));
  const auto last = world_->generations.size() - 1;
  tokens(last, {.tokens = {{1}}, .finish = FinishReason::LENGTH, .prompt = 3});
  REQUIRE(view->answer);
  CHECK(view->answer->status == 200);
  CHECK(json::parse(view->answer->body)["choices"][0]["message"]["content"] == "b");
}

TEST_CASE_METHOD(fixture, "a completion whose worker was lost waits only so long for another one") {
  const auto view = ask("POST", path, chat_body);
  const auto begun = GENERATE(false, true);
  if (begun)
    tokens(0, {.tokens = {{0}}, .prompt = 3});
  world_->router_error = error{errc::unavailable, "no worker is there", {}, {}};
  lose(0);
  pass(std::chrono::seconds(14));
  CHECK_FALSE(view->ended);
  CHECK_FALSE(view->answer);
  pass(std::chrono::seconds(3));
  if (begun)
    CHECK(chunks(*view).back()["error"]["code"] == "unavailable");
  else
    CHECK(refusal(view, 503)["code"] == "unavailable");
}

TEST_CASE_METHOD(fixture, "a completion that loses worker after worker without a token is given up") {
  const auto view = ask("POST", path, chat_body);
  for (std::size_t i = 0; i < 3; ++i) {
    REQUIRE(world_->generations.size() == i + 1);
    lose(i);
    pass(std::chrono::seconds(1));
  }
  CHECK(world_->generations.size() == 3);
  CHECK(refusal(view, 503)["code"] == "peer_lost");
}

TEST_CASE_METHOD(fixture, "a router that is lost while it is asked is asked again") {
  world_->router_error = error{errc::peer_lost, "the node core is gone", {}, {}};
  const auto view = ask("POST", path, chat_body);
  CHECK_FALSE(view->answer);
  world_->router_error.reset();
  pass(std::chrono::seconds(1));
  tokens(1, {.tokens = {{0}}, .finish = FinishReason::LENGTH, .prompt = 3});
  CHECK(content(*view) == "a");
}

TEST_CASE_METHOD(fixture, "only the choice whose worker was lost is begun again") {
  const auto view = ask("POST", path, body(R"({"n":2,"stream":false})"));
  tokens(0, {.tokens = {{0}}, .prompt = 3});
  tokens(1, {.tokens = {{1}}, .prompt = 3});
  lose(1);
  pass(std::chrono::seconds(1));
  REQUIRE(world_->generations.size() == 3);
  CHECK(world_->generations[2].request.read().getSampling().getSeed() == 8);
  CHECK(world_->generations[2].request.read().getTokens()[3] == 1);
  tokens(0, {.tokens = {{0}}, .finish = FinishReason::LENGTH});
  tokens(2, {.tokens = {{2}}, .finish = FinishReason::LENGTH, .prompt = 3});
  REQUIRE(view->answer);
  const auto answer = json::parse(view->answer->body);
  CHECK(answer["choices"][0]["message"]["content"] == "aa");
  CHECK(answer["choices"][1]["message"]["content"] == "bc");
  CHECK(answer["usage"]["completion_tokens"] == 4);
  CHECK(world_->cancels.empty());
}

TEST_CASE_METHOD(fixture, "a generation that is begun again has only the credit that its client has left") {
  const auto view = ask_slowly("POST", path, chat_body);
  tokens(0, {.tokens = {{0}}, .prompt = 3});
  for (int i = 0; i < 9; ++i)
    tokens(0, {.tokens = {{1}}});
  lose(0);
  pass(std::chrono::seconds(1));
  REQUIRE(world_->generations.size() == 2);
  CHECK(world_->generations[1].request.read().getCredit() == 54);
  view->take();
  run();
  view->take();
  run();
  REQUIRE(world_->token_credits.size() == 2);
  for (const auto& credit : world_->token_credits)
    CHECK(credit.read().getRequest() == world_->generations[1].request.read().getRequest());
  CHECK(world_->token_credits[0].read().getTokens() + world_->token_credits[1].read().getTokens() == 10);
}

TEST_CASE_METHOD(fixture, "whoever ends a completion that waits for a worker is named in its end") {
  const auto view = ask("POST", path, chat_body);
  tokens(0, {.tokens = {{0}}, .prompt = 3});
  world_->router_error = error{errc::unavailable, "no worker is there", {}, {}};
  // A worker that ends what nobody here has ended is a worker lost, and no client's cancel.
  tokens(0, {.finish = FinishReason::CANCELLED});
  CHECK_FALSE(view->ended);
  if (GENERATE(false, true)) {
    view->leave();
    run();
    REQUIRE(world_->cancels.size() == 1);
    CHECK(world_->cancels[0].read().getCause() == schema::EndCause::CANCELLED);
  } else {
    gateway_.reset();
    run();
    CHECK(chunks(*view).back()["error"]["code"] == "draining");
    REQUIRE(world_->cancels.size() == 1);
    CHECK(world_->cancels[0].read().getCause() == schema::EndCause::DRAINING);
  }
}

TEST_CASE_METHOD(fixture, "tokens that leave a gap are not shown") {
  const auto view = ask("POST", path, chat_body);
  tokens(0, {.tokens = {{0}}, .prompt = 3});
  world_->generations[0].sent += 1;
  tokens(0, {.tokens = {{1}}});
  CHECK(content(*view) == "a");
  CHECK(chunks(*view).back()["error"]["code"] == "internal");
}
