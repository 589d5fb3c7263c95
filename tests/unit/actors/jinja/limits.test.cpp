#include "actors/jinja/program.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

using namespace godwit;

namespace {

/// The error of a template that must not render, whichever step finds it.
error refused(const std::string& source, const jinja::limits& most = {}) {
  const auto parsed = jinja::program::parse(source, most);
  if (!parsed)
    return parsed.error();
  const auto out = (*parsed)->render(nlohmann::json::object(), {});
  return out ? error{errc::internal, "it rendered", "", ""} : out.error();
}

std::string repeated(std::string_view what, std::size_t count) {
  std::string out;
  for (; count > 0; --count)
    out += what;
  return out;
}

const jinja::limits small{.source = 1 << 20,
  .output = 1 << 16,
  .memory = 1 << 20,
  .steps = 100'000,
  .nesting = 100,
  .recursion = 400};

} // namespace

TEST_CASE("deep nesting is refused while parsing") {
  for (const auto& [open, close] : std::vector<std::pair<std::string, std::string>>{
         {"{{ " + repeated("(", 20000), "x" + repeated(")", 20000) + " }}"},
         {"{{ " + repeated("[", 20000), repeated("]", 20000) + " }}"},
         {"{{ " + repeated("{1:", 20000), "1" + repeated("}", 20000) + " }}"},
         {"{{ " + repeated("not ", 20000), "x }}"}, {"{{ " + repeated("-", 20000), "x }}"},
         {"{{ x" + repeated(".a", 20000), " }}"}, {"{{ x" + repeated("|upper", 20000), " }}"},
         {"{{ x" + repeated("()", 20000), " }}"}, {"{{ " + repeated("a if b else ", 20000), "c }}"},
         {repeated("{% if x %}", 20000), ""}, {repeated("{% for x in y %}", 20000), ""},
         {"{% set " + repeated("(", 20000), "x" + repeated(")", 20000) + " = 1 %}"},
         {repeated("{% macro m() %}", 20000), ""}})
    CHECK(refused(open + close).code == errc::too_large);
}

TEST_CASE("long chains of one precedence are no nesting") {
  const auto parsed =
    jinja::program::parse("{{ 0" + repeated(" + 1", 10000) + " }}{{ ''" + repeated(" ~ 'a'", 1000) + " }}");
  REQUIRE(parsed);
  CHECK((*parsed)->render(nlohmann::json::object(), {}) == "10000" + repeated("a", 1000));
}

TEST_CASE("endless work is ended by the steps") {
  CHECK(refused("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}", small).code
        == errc::too_large);
  CHECK(refused("{{ range(100001) }}").code == errc::too_large);
}

TEST_CASE("work that hides in one function is counted too") {
  // Without a price for it, each of these takes minutes: a search, a walk or a copy of a long value in a
  // loop.
  const std::string many = "{% for i in range(99999) %}{% set y = ", end = " %}{% endfor %}";
  for (const std::string work :
    {"x.find(z)", "x.rfind(z)", "x.count(z)", "x.split(z)", "x.rsplit(z)", "x.replace(z, '')", "x|trim",
      "x.strip(z)", "x|upper", "x.isalpha()", "x|tojson", "[x]|string", "x|e", "x[1:]", "x[-1]",
      "x.endswith(x)", "{x: 1}[x]", "l|sort", "l|unique|list", "-1 in l", "l|join", "l == m"}) {
    const auto out =
      refused("{% set x = 'é' * 100000 %}{% set z = 'é' * 50000 ~ 'b' %}{% set l = range(999)|list %}"
              "{% set m = range(999)|list %}"
                + many + work + end,
        {.source = 1 << 20,
          .output = 1 << 20,
          .memory = 1 << 26,
          .steps = 100'000,
          .nesting = 100,
          .recursion = 400});
    INFO(work);
    CHECK(out.code == errc::too_large);
  }
  std::string variables;
  for (int i = 0; i < 20'000; ++i)
    variables += "{% set v" + std::to_string(i) + " = 1 %}";
  CHECK(refused(variables + many + "v19999" + end, small).code == errc::too_large);
  std::string parameters = "{% macro m(a0";
  for (int i = 1; i < 300; ++i)
    parameters += ", a" + std::to_string(i);
  CHECK(refused(parameters + ") %}{% endmacro %}").code == errc::too_large);
}

TEST_CASE("values that grow are ended by the memory") {
  for (const char* source :
    {"{{ 'a' * 1000000000000 }}", "{{ [0] * 1000000000000 }}", "{{ '%1000000000d' % 1 }}",
      "{{ 'a'|center(1000000000000) }}", "{{ '{:1000000000}'.format(1) }}", "{{ 'x'.ljust(100000000000) }}",
      "{% set ns = namespace(x='aaaaaaaa') %}{% for i in range(60) %}{% set ns.x = ns.x + ns.x %}{% endfor "
      "%}",
      "{% set ns = namespace(x='aaaaaaaa') %}{% for i in range(60) %}{% set ns.x = ns.x.replace('a', 'aa') "
      "%}{% endfor %}",
      "{% set ns = namespace(x=[1, 2]) %}{% for i in range(60) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
      "{% set ns = namespace(x=[1, 2]) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ "
      "ns.x }}",
      "{% set ns = namespace(x=[1, 2]) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ "
      "ns.x|tojson }}",
      "{% set ns = namespace(x=[1], y=[1]) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% set "
      "ns.y = [ns.y, "
      "ns.y] %}{% endfor %}{{ ns.x == ns.y }}",
      "{% set l = [] %}{% for i in range(90000) %}{% set x = l.append('aaaaaaaaaaaaaaaaaa' ~ i) %}{% endfor "
      "%}",
      "{{ 'a'|indent(1000000000000, true) }}",
      "{{ (('a' * 60000) ~ '\\n') * 10 }}{{ ('a\\n' * 9000)|indent(90000) }}"})
    CHECK(refused(source, small).code == errc::too_large);
}

TEST_CASE("recursion of macros ends") {
  CHECK(refused("{% macro f(x) %}{{ f(x + 1) }}{% endmacro %}{{ f(0) }}").code == errc::too_large);
  CHECK(refused("{% macro f(x) %}" + repeated("{% if x %}", 90) + "{{ " + repeated("(", 50) + "f(x)"
                + repeated(")", 50) + " }}" + repeated("{% endif %}", 90) + "{% endmacro %}{{ f(1) }}")
          .code
        == errc::too_large);
}

TEST_CASE("a value that holds itself ends printing, comparing and writing") {
  for (const char* use : {"{{ l }}", "{{ l|tojson }}", "{{ l == m }}", "{{ [l, m]|sort }}", "{{ l|string }}"})
    CHECK(refused("{% set l = [1] %}{% set m = [1] %}{% set x = l.append(l) %}{% set x = m.append(m) %}"
                  + std::string(use))
            .code
          == errc::too_large);
}

TEST_CASE("a long template, text that is not UTF-8 and deep contexts are refused") {
  CHECK(refused(std::string((1 << 20) + 1, 'a')).code == errc::too_large);
  CHECK(refused("\xFF").code == errc::invalid_argument);
  auto deep = nlohmann::json::array();
  for (int i = 0; i < 1000; ++i)
    deep = nlohmann::json::array({std::move(deep)});
  const auto parsed = jinja::program::parse("{{ x }}");
  REQUIRE(parsed);
  CHECK((*parsed)->render(nlohmann::json{{"x", deep}}, {}).error().code == errc::too_large);
  CHECK((*parsed)->render(nlohmann::json{{"x", "\xC3"}}, {}).error().code == errc::invalid_argument);
}
