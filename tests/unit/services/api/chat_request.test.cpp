#include "services/api/chat_request.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <limits>

using namespace godwit;
using nlohmann::json;

namespace {

constexpr token_id vocabulary = 1000;

json minimal() {
  return json::parse(R"({"model":"m","messages":[{"role":"user","content":"Hi"}]})");
}

/// The minimal body with some fields added or replaced.
json with(const char* fields) {
  auto body = minimal();
  body.merge_patch(json::parse(fields));
  return body;
}

chat_request accepted(const json& body) {
  const auto parsed = parse_chat_request(body.dump(), vocabulary, {});
  if (!parsed)
    FAIL(parsed.error().message);
  return *parsed;
}

error refusal(const json& body) {
  const auto parsed = parse_chat_request(body.dump(), vocabulary, {});
  REQUIRE_FALSE(parsed);
  return parsed.error();
}

struct bad_body {
  const char* fields; ///< added to the minimal body
  const char* param;
  errc code = errc::invalid_argument;
};

} // namespace

TEST_CASE("a minimal completion has the defaults of OpenAI's API") {
  const auto request = accepted(minimal());
  CHECK(request.model == "m");
  CHECK(request.messages == std::vector<client_message>{{"user", "Hi", ""}});
  CHECK(request.choices == 1);
  CHECK_FALSE(request.stream);
  CHECK_FALSE(request.include_usage);
  CHECK(request.sampling.settings.temperature == 1.0F);
  CHECK(request.sampling.settings.top_p == 1.0F);
  CHECK(request.sampling.max_tokens == 0);
  CHECK_FALSE(request.sampling.seeded);
  CHECK_FALSE(request.sampling.settings.logprobs);
}

TEST_CASE("what a completion does not say of sampling is the node's choice") {
  const sampling_settings unnamed{
    .temperature = 0.5F, .top_k = 7, .top_p = 0.75F, .min_p = 0.25F, .bias = {}};
  const auto request = parse_chat_request(with(R"({"temperature":1})").dump(), vocabulary, unnamed);
  REQUIRE(request);
  CHECK(request->sampling.settings.temperature == 1.0F);
  CHECK(request->sampling.settings.top_k == 7);
  CHECK(request->sampling.settings.top_p == 0.75F);
  CHECK(request->sampling.settings.min_p == 0.25F);
}

TEST_CASE("every field of a completion reaches its place") {
  const auto request = accepted(with(R"({"temperature":0.5,"top_p":0.9,"min_p":0.05,"top_k":40,
    "frequency_penalty":-2,"presence_penalty":2,"repeat_penalty":1.1,"n":16,"stop":["a","b"],"max_tokens":7,
    "seed":-3,"logprobs":true,"top_logprobs":20,"logit_bias":{"0":-100,"999":1.5},"stream":true,
    "stream_options":{"include_usage":true}})"));
  const auto& settings = request.sampling.settings;
  CHECK(settings.temperature == 0.5F);
  CHECK(settings.top_p == 0.9F);
  CHECK(settings.min_p == 0.05F);
  CHECK(settings.top_k == 40);
  CHECK(settings.frequency_penalty == -2.0F);
  CHECK(settings.presence_penalty == 2.0F);
  CHECK(settings.repeat_penalty == 1.1F);
  CHECK(settings.seed == static_cast<std::uint64_t>(-3));
  CHECK(request.sampling.seeded);
  CHECK(settings.logprobs);
  CHECK(settings.top_logprobs == 20);
  CHECK(settings.bias == std::vector<std::pair<token_id, float>>{{0, -100.0F}, {999, 1.5F}});
  CHECK(request.sampling.stop == std::vector<std::string>{"a", "b"});
  CHECK(request.sampling.max_tokens == 7);
  CHECK(request.choices == 16);
  CHECK(request.stream);
  CHECK(request.include_usage);
}

TEST_CASE("a stop string may stand alone and max_completion_tokens is max_tokens") {
  CHECK(accepted(with(R"({"stop":"END"})")).sampling.stop == std::vector<std::string>{"END"});
  CHECK(accepted(with(R"({"max_completion_tokens":5})")).sampling.max_tokens == 5);
  CHECK(accepted(with(R"({"max_completion_tokens":5,"max_tokens":5})")).sampling.max_tokens == 5);
}

TEST_CASE("seeds are any whole number of 64 bits") {
  CHECK(accepted(with(R"({"seed":9223372036854775807})")).sampling.settings.seed
        == std::numeric_limits<std::int64_t>::max());
  CHECK(accepted(with(R"({"seed":-9223372036854775808})")).sampling.settings.seed == std::uint64_t{1} << 63);
  CHECK(accepted(with(R"({"seed":0})")).sampling.seeded);
}

TEST_CASE("content is a string or a list of text parts") {
  auto body = minimal();
  body["messages"] = json::parse(R"([{"role":"developer","content":[{"type":"text","text":"a"},
    {"type":"text","text":"b"}]},{"role":"assistant","content":"","tool_calls":[],"refusal":null,
    "annotations":[]},{"role":"user","content":"c","name":"Ann-1"}])");
  CHECK(accepted(body).messages
        == std::vector<client_message>{{"system", "ab", ""}, {"assistant", "", ""}, {"user", "c", "Ann-1"}});
}

TEST_CASE("null counts as absent") {
  const auto body = json::parse(R"({"model":"m","messages":[{"role":"user","content":"Hi","name":null}],
    "temperature":null,"stop":null,"tools":null,"stream":null,"seed":null,"response_format":null,"n":null})");
  CHECK_FALSE(accepted(body).sampling.seeded);
}

TEST_CASE("what clients send by habit and what changes nothing is accepted") {
  accepted(with(R"({"user":"u","safety_identifier":"s","prompt_cache_key":"k","metadata":{"a":"b"},
    "store":false,"service_tier":"auto","response_format":{"type":"text"},"modalities":["text"],
    "prompt_cache_retention":"24h"})"));
  accepted(with(R"({"stream":true,"stream_options":{"include_obfuscation":false}})"));
  accepted(with(R"({"logprobs":false,"top_logprobs":0})"));
}

TEST_CASE("a field that is out of range or of the wrong type is refused by its name") {
  const auto bad = GENERATE(values<bad_body>({
    {R"({"temperature":-1})", "temperature"},
    {R"({"temperature":2.1})", "temperature"},
    {R"({"temperature":"NaN"})", "temperature"},
    {R"({"temperature":true})", "temperature"},
    {R"({"top_p":0})", "top_p"},
    {R"({"top_p":1.5})", "top_p"},
    {R"({"min_p":-0.1})", "min_p"},
    {R"({"top_k":-1})", "top_k"},
    {R"({"top_k":1.5})", "top_k"},
    {R"({"frequency_penalty":2.5})", "frequency_penalty"},
    {R"({"presence_penalty":-2.5})", "presence_penalty"},
    {R"({"repeat_penalty":0})", "repeat_penalty"},
    {R"({"n":0})", "n"},
    {R"({"n":17})", "n"},
    {R"({"n":1000})", "n"},
    {R"({"n":"2"})", "n"},
    {R"({"max_tokens":0})", "max_tokens"},
    {R"({"max_tokens":-5})", "max_tokens"},
    {R"({"max_tokens":1.5})", "max_tokens"},
    {R"({"max_tokens":3000000000})", "max_tokens"},
    {R"({"max_completion_tokens":0})", "max_completion_tokens"},
    {R"({"max_completion_tokens":5,"max_tokens":6})", "max_completion_tokens"},
    {R"({"seed":1.5})", "seed"},
    {R"({"seed":9223372036854775808})", "seed"},
    {R"({"seed":"1"})", "seed"},
    {R"({"stop":""})", "stop"},
    {R"({"stop":7})", "stop"},
    {R"({"stop":["a",7]})", "stop[1]"},
    {R"({"stop":["a","b","c",""]})", "stop[3]"},
    {R"({"logprobs":1})", "logprobs"},
    {R"({"logprobs":true,"top_logprobs":21})", "top_logprobs"},
    {R"({"logprobs":true,"top_logprobs":-1})", "top_logprobs"},
    {R"({"top_logprobs":2})", "top_logprobs"},
    {R"({"logit_bias":[1]})", "logit_bias"},
    {R"({"logit_bias":{"x":1}})", "logit_bias.x"},
    {R"({"logit_bias":{"1000":1}})", "logit_bias.1000"},
    {R"({"logit_bias":{"01":1}})", "logit_bias.01"},
    {R"({"logit_bias":{"-1":1}})", "logit_bias.-1"},
    {R"({"logit_bias":{"5":101}})", "logit_bias.5"},
    {R"({"logit_bias":{"5":"1"}})", "logit_bias.5"},
    {R"({"stream":"yes"})", "stream"},
    {R"({"stream_options":{"include_usage":true}})", "stream_options"},
    {R"({"stream":true,"stream_options":{"include_usage":1}})", "stream_options.include_usage"},
    {R"({"stream":true,"stream_options":{"x":1}})", "stream_options.x"},
    {R"({"model":7})", "model"},
    {R"({"model":null})", "model"},
    {R"({"messages":null})", "messages"},
    {R"({"messages":"Hi"})", "messages"},
    {R"({"messages":[]})", "messages"},
    {R"({"messages":[7]})", "messages[0]"},
    {R"({"messages":[{"role":"user"}]})", "messages[0].content"},
    {R"({"messages":[{"content":"x"}]})", "messages[0].role"},
    {R"({"messages":[{"role":"user","content":7}]})", "messages[0].content"},
    {R"({"messages":[{"role":"user","content":[]}]})", "messages[0].content"},
    {R"({"messages":[{"role":"user","content":"a"},{"role":"user","content":"b"},{"role":"king","content":"c"}]})",
      "messages[2].role"},
    {R"({"messages":[{"role":"user","content":[{"type":"text"}]}]})", "messages[0].content[0].text"},
    {R"({"messages":[{"role":"user","content":[{"type":"smell","smell":1}]}]})",
      "messages[0].content[0].type"},
    {R"({"messages":[{"role":"user","content":"a","name":"two words"}]})", "messages[0].name"},
    {R"({"messages":[{"role":"user","content":"a","mood":"b"}]})", "messages[0].mood"},
    {R"({"best_of":2})", "best_of"},
    {R"({"service_tier":"gold"})", "service_tier"},
  }));
  INFO(bad.fields);
  const auto failure = refusal(with(bad.fields));
  CHECK(failure.param == bad.param);
  CHECK(failure.code == bad.code);
}

TEST_CASE("what is known but not built is refused by its name as unsupported") {
  const auto bad = GENERATE(values<bad_body>({
    {R"({"tools":[]})", "tools"},
    {R"({"tool_choice":"auto"})", "tool_choice"},
    {R"({"parallel_tool_calls":true})", "parallel_tool_calls"},
    {R"({"functions":[]})", "functions"},
    {R"({"function_call":"auto"})", "function_call"},
    {R"({"response_format":{"type":"json_object"}})", "response_format"},
    {R"({"response_format":{"type":"json_schema","json_schema":{}}})", "response_format"},
    {R"({"audio":{"voice":"x"}})", "audio"},
    {R"({"modalities":["text","audio"]})", "modalities"},
    {R"({"prediction":{"type":"content","content":"x"}})", "prediction"},
    {R"({"reasoning_effort":"low"})", "reasoning_effort"},
    {R"({"verbosity":"low"})", "verbosity"},
    {R"({"web_search_options":{}})", "web_search_options"},
    {R"({"store":true})", "store"},
    {R"({"service_tier":"flex"})", "service_tier"},
    {R"({"stream":true,"stream_options":{"include_obfuscation":true}})",
      "stream_options.include_obfuscation"},
    {R"({"messages":[{"role":"tool","content":"x","tool_call_id":"1"}]})", "messages[0].role"},
    {R"({"messages":[{"role":"user","content":[{"type":"image_url","image_url":{}}]}]})",
      "messages[0].content[0].type"},
    {R"({"messages":[{"role":"assistant","content":"x","tool_calls":[{}]}]})", "messages[0].tool_calls"},
  }));
  INFO(bad.fields);
  const auto failure = refusal(with(bad.fields));
  CHECK(failure.param == bad.param);
  CHECK(failure.code == errc::unsupported);
}

TEST_CASE("a stop that is neither a text nor a list is told of both, and an entry of a list of texts only") {
  CHECK(refusal(with(R"({"stop":5})")).message == "stop must be a string or a list of strings");
  CHECK(refusal(with(R"({"stop":{"a":"b"}})")).message == "stop must be a string or a list of strings");
  CHECK(refusal(with(R"({"stop":["a",7]})")).message == "stop[1] must be a string");
}

TEST_CASE("a stop list of 16 is taken and one of 100 is refused") {
  auto body = minimal();
  body["stop"] = json::array();
  for (int i = 0; i < 16; ++i)
    body["stop"].push_back("s" + std::to_string(i));
  CHECK(accepted(body).sampling.stop.size() == 16);
  while (body["stop"].size() < 100)
    body["stop"].push_back("s");
  CHECK(refusal(body).param == "stop");
}

TEST_CASE("a refusal quotes neither content nor odd keys") {
  auto body = minimal();
  body["my secret, with spaces"] = 1;
  const auto failure = refusal(body);
  CHECK(failure.message.find("secret") == std::string::npos);
  CHECK(failure.param.find("secret") == std::string::npos);
  CHECK(refusal(with(R"({"messages":[{"role":"my secret","content":"x"}]})")).message.find("secret")
        == std::string::npos);
}

TEST_CASE("a body that is not an object is refused") {
  CHECK(refusal(json::array()).code == errc::invalid_argument);
  CHECK(refusal(json("text")).message == "the body must be an object");
}
