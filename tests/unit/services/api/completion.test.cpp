#include "services/api/completion.hpp"

#include "tests/unit/services/api/words.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <limits>

using namespace godwit;
using namespace godwit::test;
using nlohmann::json;
using schema::FinishReason;

namespace {

enum : token_id { hel, lo, world, stop_a, stop_b, e_acute_1, e_acute_2, end_token };

std::shared_ptr<const token_text> vocabulary() {
  return std::make_shared<words>(std::vector<std::string>{"Hel", "lo", " world", "EN", "D", "\xc3", "\xa9"});
}

completion_settings settings() {
  return {.id = "chatcmpl-1",
    .created = 1700000000,
    .model = "m",
    .fingerprint = "fp_1",
    .stop = {},
    .vocabulary = vocabulary()};
}

completion_settings streaming() {
  auto out = settings();
  out.stream = true;
  return out;
}

std::string chunk(const std::string& choice, const std::string& usage = "") {
  return R"(data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"m",)"
         R"("system_fingerprint":"fp_1","choices":[)"
         + choice + "]" + usage + "}\n\n";
}

std::string delta(const std::string& fields, const std::string& finish = "null") {
  return chunk(R"({"index":0,"delta":{)" + fields + R"(},"logprobs":null,"finish_reason":)" + finish + "}");
}

} // namespace

TEST_CASE("a whole answer has OpenAI's shape") {
  completion answer(settings());
  CHECK(answer.take(0, batch({.tokens = {{hel}, {lo}}, .prompt = 12, .cached = 5}).read()).bytes.empty());
  CHECK_FALSE(answer.done());
  answer.take(
    0, batch({.tokens = {{end_token}}, .finish = FinishReason::STOP, .prompt = 12, .cached = 5}).read());
  REQUIRE(answer.done());
  CHECK(
    answer.body()
    == R"({"id":"chatcmpl-1","object":"chat.completion","created":1700000000,"model":"m",)"
       R"("system_fingerprint":"fp_1","choices":[{"index":0,"message":{"role":"assistant",)"
       R"("content":"Hello","refusal":null},"logprobs":null,"finish_reason":"stop"}],)"
       R"("usage":{"prompt_tokens":12,"completion_tokens":3,"total_tokens":15,)"
       R"("prompt_tokens_details":{"cached_tokens":5,"cached_tokens_by_tier":{"device":5,"host":0,"disk":0}}}})");
}

TEST_CASE("a stream begins with the role, ends with the reason and [DONE]") {
  completion answer(streaming());
  const auto first = answer.take(0, batch({.tokens = {{hel}}, .prompt = 12}).read());
  CHECK(first.bytes == delta(R"("role":"assistant","content":"")") + delta(R"("content":"Hel")"));
  CHECK(first.tokens == 1);
  CHECK(answer.take(0, batch({.tokens = {{lo}, {world}}}).read()).bytes == delta(R"("content":"lo world")"));
  CHECK(answer.take(0, batch({.finish = FinishReason::LENGTH}).read()).bytes == delta("", R"("length")"));
  CHECK(answer.done());
  CHECK(answer.closing() == "data: [DONE]\n\n");
}

TEST_CASE("usage comes in a chunk of its own when it was asked for, and is null before") {
  auto how = streaming();
  how.include_usage = true;
  completion answer(how);
  const auto first = answer.take(
    0, batch({.tokens = {{hel}}, .finish = FinishReason::LENGTH, .prompt = 9, .cached = 8}).read());
  CHECK(
    first.bytes
    == chunk(R"({"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null})",
         R"(,"usage":null)")
         + chunk(R"({"index":0,"delta":{"content":"Hel"},"logprobs":null,"finish_reason":null})",
           R"(,"usage":null)")
         + chunk(R"({"index":0,"delta":{},"logprobs":null,"finish_reason":"length"})", R"(,"usage":null)"));
  CHECK(
    answer.closing()
    == chunk("",
         R"(,"usage":{"prompt_tokens":9,"completion_tokens":1,"total_tokens":10,)"
         R"("prompt_tokens_details":{"cached_tokens":8,"cached_tokens_by_tier":{"device":8,"host":0,"disk":0}}})")
         + "data: [DONE]\n\n");
}

TEST_CASE("a stop string ends the answer before it and is never shown in part") {
  auto how = streaming();
  how.stop = {"END"};
  completion answer(how);
  answer.take(0, batch({.tokens = {{hel}}, .prompt = 1}).read());
  CHECK(answer.take(0, batch({.tokens = {{stop_a}}}).read()).bytes.empty());
  const auto last = answer.take(0, batch({.tokens = {{stop_b}, {world}}}).read());
  CHECK(last.bytes == delta("", R"("stop")"));
  CHECK(last.stop_string);
  CHECK(last.tokens == 2);
  CHECK(answer.done());
  // The engine's last batch comes late and changes nothing.
  const auto late = answer.take(0, batch({.finish = FinishReason::CANCELLED}).read());
  CHECK(late.bytes.empty());
  CHECK_FALSE(late.failure);
}

TEST_CASE("text that looked like a stop string is shown once it is none") {
  auto how = settings();
  how.stop = {"END"};
  completion answer(how);
  answer.take(0, batch({.tokens = {{hel}, {stop_a}, {lo}, {stop_a}}, .finish = FinishReason::LENGTH}).read());
  CHECK(json::parse(answer.body())["choices"][0]["message"]["content"] == "HelENloEN");
}

TEST_CASE("log-probabilities have OpenAI's shape, with bytes") {
  auto how = streaming();
  how.logprobs = true;
  completion answer(how);
  const auto first =
    answer.take(0, batch({.tokens = {{lo, -0.7F, {{lo, -0.7F}, {world, -1.5F}}}}, .prompt = 1}).read());
  CHECK(first.bytes
        == delta(R"("role":"assistant","content":"")")
             + chunk(R"({"index":0,"delta":{"content":"lo"},"logprobs":{"content":[{"token":"lo",)"
                     R"("logprob":-0.7,"bytes":[108,111],"top_logprobs":[{"token":"lo","logprob":-0.7,)"
                     R"("bytes":[108,111]},{"token":" world","logprob":-1.5,)"
                     R"("bytes":[32,119,111,114,108,100]}]}],"refusal":null},"finish_reason":null})"));
  const auto last =
    answer.take(0, batch({.tokens = {{end_token, -0.1F}}, .finish = FinishReason::STOP}).read());
  CHECK(last.bytes == delta("", R"("stop")"));
}

TEST_CASE("half characters have their bytes in the log-probabilities, and what is out of reach a number") {
  auto how = settings();
  how.logprobs = true;
  completion answer(how);
  const auto never = -std::numeric_limits<float>::infinity();
  answer.take(0,
    batch({.tokens = {{e_acute_1, -0.5F, {{hel, never}}}, {e_acute_2, 0.0F}}, .finish = FinishReason::LENGTH})
      .read());
  const auto choice = json::parse(answer.body())["choices"][0];
  CHECK(choice["message"]["content"] == "\xc3\xa9");
  CHECK(choice["logprobs"]["content"][0]["token"] == "\xef\xbf\xbd");
  CHECK(choice["logprobs"]["content"][0]["bytes"] == json::parse("[195]"));
  CHECK(choice["logprobs"]["content"][0]["top_logprobs"][0]["logprob"] == -9999.0);
  CHECK(choice["logprobs"]["content"][1]["bytes"] == json::parse("[169]"));
}

TEST_CASE("log-probabilities end with the text: the stop string has none") {
  auto how = settings();
  how.logprobs = true;
  how.stop = {"END"};
  completion answer(how);
  answer.take(0, batch({.tokens = {{hel}, {stop_a}, {stop_b}, {lo}}}).read());
  const auto choice = json::parse(answer.body())["choices"][0];
  CHECK(choice["logprobs"]["content"].size() == 1);
  CHECK(choice["message"]["content"] == "Hel");
}

TEST_CASE("choices are counted together and the prompt once, cached by what none had to compute") {
  auto how = settings();
  how.choices = 2;
  completion answer(how);
  answer.take(
    1, batch({.tokens = {{hel}, {lo}}, .finish = FinishReason::LENGTH, .prompt = 20, .cached = 16}).read());
  CHECK(answer.ended(1));
  CHECK_FALSE(answer.done());
  answer.take(
    0, batch({.tokens = {{world}}, .finish = FinishReason::LENGTH, .prompt = 20, .cached = 0}).read());
  REQUIRE(answer.done());
  const auto body = json::parse(answer.body());
  CHECK(body["choices"][0]["message"]["content"] == " world");
  CHECK(body["choices"][1]["message"]["content"] == "Hello");
  CHECK(body["choices"][1]["index"] == 1);
  CHECK(body["usage"]["prompt_tokens"] == 20);
  CHECK(body["usage"]["completion_tokens"] == 3);
  CHECK(body["usage"]["prompt_tokens_details"]["cached_tokens"] == 0);
}

TEST_CASE("a failed generation tells why, and another one goes on behind what came before it") {
  completion answer(streaming());
  answer.take(0, batch({.tokens = {{hel}}, .prompt = 20, .cached = 16}).read());
  // Whatever else the last batch has, it does not count.
  const auto last = answer.take(0, batch({.tokens = {{world}},
                                           .finish = FinishReason::FAILED,
                                           .code = errc::resource_exhausted,
                                           .message = "no pages"})
                                     .read());
  CHECK(last.bytes.empty());
  REQUIRE(last.failure);
  CHECK(last.failure->code == errc::resource_exhausted);
  CHECK(last.failure->message == "no pages");
  CHECK_FALSE(answer.done());
  const auto next = answer.take(0, batch({.tokens = {{lo}}, .finish = FinishReason::LENGTH}).read());
  CHECK(next.bytes == delta(R"("content":"lo")") + delta("", R"("length")"));
}

TEST_CASE("a stop string is found across two generations of one choice") {
  auto how = streaming();
  how.stop = {"END"};
  completion answer(how);
  answer.take(0, batch({.tokens = {{hel}, {stop_a}}, .prompt = 1}).read());
  answer.take(0, batch({.finish = FinishReason::FAILED, .code = errc::peer_lost}).read());
  const auto last = answer.take(0, batch({.tokens = {{stop_b}, {world}}}).read());
  CHECK(last.bytes == delta("", R"("stop")"));
  CHECK(last.stop_string);
}

TEST_CASE("of what several generations found in their caches the least counts, since the rest was computed") {
  const auto first = GENERATE(0U, 16U);
  completion answer(settings());
  answer.take(0, batch({.tokens = {{hel}}, .prompt = 20, .cached = first}).read());
  answer.take(0, batch({.finish = FinishReason::FAILED, .prompt = 20, .code = errc::peer_lost}).read());
  answer.take(
    0, batch({.tokens = {{lo}}, .finish = FinishReason::LENGTH, .prompt = 20, .cached = 16 - first}).read());
  const auto usage = json::parse(answer.body())["usage"];
  CHECK(usage["prompt_tokens_details"]["cached_tokens"] == 0);
  CHECK(usage["completion_tokens"] == 2);
}

TEST_CASE("a choice that its worker gave up is no client's cancel") {
  completion answer(settings());
  const auto taken = answer.take(0, batch({.finish = FinishReason::CANCELLED}).read());
  REQUIRE(taken.failure);
  CHECK(taken.failure->code == errc::peer_lost);
}
