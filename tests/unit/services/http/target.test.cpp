#include "services/http/target.hpp"

#include <catch2/catch.hpp>

using namespace godwit;
using namespace godwit::http;

using pairs = std::vector<std::pair<std::string, std::string>>;

TEST_CASE("a target is split before it is decoded") {
  const auto target = parse_target("/v1/a%2Fb?x=1%262&y=%3D&%7a=");
  REQUIRE(target);
  CHECK(target->path == "/v1/a/b");
  CHECK(target->query == pairs{{"x", "1&2"}, {"y", "="}, {"z", ""}});
}

TEST_CASE("plus is a space in the query and itself in the path") {
  const auto target = parse_target("/a+b?q=c+d%2Be");
  REQUIRE(target);
  CHECK(target->path == "/a+b");
  CHECK(target->query == pairs{{"q", "c d+e"}});
}

TEST_CASE("empty parameters and missing values are taken as they are") {
  CHECK(parse_target("/?")->query.empty());
  CHECK(parse_target("/?&&a&&b=")->query == pairs{{"a", ""}, {"b", ""}});
  CHECK(parse_target("/?=v")->query == pairs{{"", "v"}});
}

TEST_CASE("an absolute form is taken by its path") {
  CHECK(parse_target("http://host:1/a?b=c")->path == "/a");
  CHECK(parse_target("HTTPS://host")->path == "/");
  CHECK_FALSE(parse_target("ftp://host/a"));
}

TEST_CASE("a fragment is not read") {
  const auto target = parse_target("/a#b?c=d");
  REQUIRE(target);
  CHECK(target->path == "/a");
  CHECK(target->query.empty());
}

TEST_CASE("what is no target is refused") {
  for (const auto* bad :
    {"", "*", "a", "host:443", "?a", "/%", "/%4", "/%zz", "/a?b=%", "/a?%f", "/%00", "/a?b=%00"}) {
    INFO(bad);
    CHECK_FALSE(parse_target(bad));
  }
}

TEST_CASE("more than 64 parameters are refused") {
  std::string target = "/?a=0";
  for (int i = 1; i < 64; ++i)
    target += "&a=" + std::to_string(i);
  CHECK(parse_target(target)->query.size() == 64);
  CHECK_FALSE(parse_target(target + "&b"));
}

TEST_CASE("every byte but NUL survives its escape") {
  for (int byte = 1; byte < 256; ++byte) {
    char text[8];
    std::snprintf(text, sizeof text, "%%%02x", static_cast<unsigned>(byte));
    const auto decoded = percent_decode(text);
    REQUIRE(decoded);
    CHECK(*decoded == std::string(1, static_cast<char>(byte)));
  }
}
