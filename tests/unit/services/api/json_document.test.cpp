#include "services/api/json_document.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

using namespace godwit;

namespace {

std::string nested(std::size_t levels) {
  return std::string(levels, '[') + std::string(levels, ']');
}

error refusal(std::string_view body, json_limits limits = {}) {
  const auto parsed = parse_json_document(body, limits);
  REQUIRE_FALSE(parsed);
  return parsed.error();
}

} // namespace

TEST_CASE("a JSON body is read as another parser reads it") {
  const std::string body =
    R"( {"a":[1,-2,3.5e1,"x\u00e9\ud83d\ude00",true,false,null,{}],"b":{"c":[]},"":18446744073709551615} )";
  const auto parsed = parse_json_document(body);
  REQUIRE(parsed);
  CHECK(*parsed == nlohmann::json::parse(body));
}

TEST_CASE("a body that is not an object is still a document") {
  CHECK(parse_json_document("[]").value() == nlohmann::json::array());
  CHECK(parse_json_document("7").value() == 7);
}

TEST_CASE("what is not JSON is refused as such") {
  const auto body = GENERATE(as<std::string>{}, "", " ", "{", "}", "{\"a\":1,}", "[1,]", "{'a':1}",
    "{\"a\" 1}", "{\"a\":NaN}", "{\"a\":Infinity}", "{\"a\":-Infinity}", "{\"a\":01}", "{\"a\":+1}",
    "{\"a\":.5}", "{\"a\":1}x", "{\"a\":1}{}", "tru", "\"unended", "\"\\x\"", "\"\\u12\"", "\"line\nbreak\"",
    "{\"a\":1e999}", "// comment\n{}", "{\"a\":undefined}");
  const auto failure = refusal(body);
  CHECK(failure.code == errc::invalid_argument);
  CHECK(failure.reason == "invalid_json");
}

TEST_CASE("text that is not UTF-8 is refused") {
  const auto bytes = GENERATE(
    as<std::string>{}, "\xff", "\xc3", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82", "\x80");
  CHECK(refusal("{\"a\":\"" + bytes + "\"}").code == errc::invalid_argument);
  CHECK(refusal(bytes + "{}").code == errc::invalid_argument);
  CHECK(refusal("{\"" + bytes + "\":1}").code == errc::invalid_argument);
}

TEST_CASE("half a surrogate pair and U+0000 are refused") {
  CHECK(refusal(R"(["\ud800"])").code == errc::invalid_argument);
  CHECK(refusal(R"(["\udc00"])").code == errc::invalid_argument);
  CHECK(refusal(R"(["a\u0000b"])").message.find("U+0000") != std::string::npos);
  CHECK(refusal(R"({"\u0000":1})").code == errc::invalid_argument);
}

TEST_CASE("the refusal of a body does not quote it") {
  CHECK(refusal("{\"content\": \"my secret\" oops}").message.find("secret") == std::string::npos);
}

TEST_CASE("nesting is allowed up to its limit and refused beyond it, however deep") {
  CHECK(parse_json_document(nested(128)));
  const auto levels = GENERATE(std::size_t{129}, std::size_t{1000}, std::size_t{1'000'000});
  const auto failure = refusal(nested(levels));
  CHECK(failure.code == errc::invalid_argument);
  CHECK(failure.message == "the body is nested deeper than 128 levels");
  CHECK(refusal(std::string(levels, '[')).code == errc::invalid_argument);
}

TEST_CASE("a key that stands twice in an object is refused by name") {
  const auto failure = refusal(R"({"a":{"n":1,"m":2,"n":1}})");
  CHECK(failure.code == errc::invalid_argument);
  CHECK(failure.param == "n");
  CHECK(parse_json_document(R"([{"n":1},{"n":1}])"));
}

TEST_CASE("a body over the size limit is too large") {
  CHECK(parse_json_document("[1,2]", {.bytes = 5}));
  const auto failure = refusal("[1,23]", {.bytes = 5});
  CHECK(failure.code == errc::too_large);
  CHECK(refusal(std::string(33'000'000, ' ')).code == errc::too_large);
}

TEST_CASE("the number of values is limited, so that small texts do not become large documents") {
  CHECK(parse_json_document("[1,[],2]", {.values = 4}));
  CHECK(refusal("[1,[],2,3]", {.values = 4}).code == errc::invalid_argument);
}
