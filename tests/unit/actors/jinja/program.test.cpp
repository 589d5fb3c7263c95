#include "actors/jinja/program.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

using namespace godwit;
using json = nlohmann::ordered_json;

namespace {

std::string render(std::string_view source, const json& context = json::object()) {
  const auto parsed = jinja::program::parse(source);
  if (!parsed)
    return "parse: " + parsed.error().message;
  const auto out = (*parsed)->render(context, {});
  return out ? *out : "render: " + out.error().message;
}

} // namespace

TEST_CASE("a chat template renders its messages") {
  const auto out =
    render("{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ 'SYS\n' "
           "}}{% endif %}{{'<|' + message['role'] + '|>' + message['content'] + '\n'}}{% endfor %}"
           "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}",
      {{"messages", {{{"role", "user"}, {"content", "Hi"}}}}, {"add_generation_prompt", true}});
  CHECK(out == "SYS\n<|user|>Hi\n<|assistant|>");
}

TEST_CASE("an error names the line and no text of the context") {
  const json context{{"secret", "the prompt"}};
  CHECK(render("a\n{{ 1 +\n 'x' }}")
        == "render: line 2 of the template: '+' is not possible between 'int' and 'str'");
  CHECK(render("\n{{ missing.x }}") == "render: line 2 of the template: 'missing' is undefined");
  CHECK(render("{{ raise_exception('roles must alternate') }}")
        == "render: line 1 of the template: roles must alternate");
  CHECK(render("{{ raise_exception('bad ' + secret) }}", context)
        == "render: line 1 of the template: the template refuses these messages");
}

TEST_CASE("what Jinja2 has and this interpreter has not is refused by name") {
  CHECK(
    render("x\n{% include 'a' %}") == "parse: line 2 of the template: the tag 'include' is not supported");
  CHECK(render("{{ x|urlize }}") == "parse: line 1 of the template: the filter 'urlize' is not known");
  CHECK(render("{{ x is fancy }}") == "parse: line 1 of the template: the test 'fancy' is not known");
  CHECK(render("{% for x in y recursive %}{% endfor %}")
        == "parse: line 1 of the template: a recursive loop is not supported");
  CHECK(jinja::program::parse("{% do x %}").error().code == errc::unsupported);
  CHECK(jinja::program::parse("{% nonsense %}").error().code == errc::invalid_argument);
}

TEST_CASE("the time is the caller's, in UTC") {
  const auto parsed = jinja::program::parse("{{ strftime_now('%Y-%m-%d %H:%M:%S %j %a') }}");
  REQUIRE(parsed);
  const auto now =
    std::chrono::system_clock::time_point(std::chrono::seconds(951'782'400)); // 29 February 2000
  CHECK((*parsed)->render(json::object(), now) == "2000-02-29 00:00:00 060 Tue");
}

TEST_CASE("mappings keep the order of an ordered JSON object") {
  CHECK(render("{{ x|tojson }} {{ x }}", {{"x", {{"b", 1}, {"a", {1.5, nullptr, "é\n"}}}}})
        == R"({"b": 1, "a": [1.5, null, "é\n"]} {'b': 1, 'a': [1.5, None, 'é\n']})");
}
