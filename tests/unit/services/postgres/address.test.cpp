#include "services/postgres/address.hpp"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace godwit;
using namespace godwit::postgres;

namespace {

std::string word(const server_address& of, const std::string& key) {
  for (const auto& [name, value] : of.words)
    if (name == key)
      return value;
  return "(none)";
}

} // namespace

TEST_CASE("a URL with several hosts is several servers in their order") {
  const auto two = parse_address("host=one,two port=1,2 user=me dbname=store");
  REQUIRE(two);
  REQUIRE(two->servers.size() == 2);
  CHECK(word(two->servers[0], "host") == "one");
  CHECK(word(two->servers[0], "port") == "1");
  CHECK(word(two->servers[1], "host") == "two");
  CHECK(word(two->servers[1], "port") == "2");
  CHECK(two->servers[1].name == "two:2");
  const auto url = parse_address("postgresql://me@one:1,two:2,three:3/store");
  REQUIRE(url);
  REQUIRE(url->servers.size() == 3);
  CHECK(word(url->servers[2], "host") == "three");
  CHECK(word(url->servers[2], "port") == "3");
  CHECK(word(url->servers[2], "dbname") == "store");
  const auto same = parse_address("host=one,two port=7");
  REQUIRE(same);
  CHECK(word(same->servers[0], "port") == "7");
  CHECK(word(same->servers[1], "port") == "7");
  CHECK_FALSE(parse_address("host=one,two,three port=1,2"));
}

TEST_CASE("only servers that take writes are wanted, and dead ones are noticed soon") {
  const auto made = parse_address("postgresql://one/store?target_session_attrs=any");
  REQUIRE(made);
  CHECK(word(made->servers[0], "target_session_attrs") == "read-write");
  CHECK(word(made->servers[0], "tcp_user_timeout") == "2000");
  CHECK(word(made->servers[0], "keepalives_idle") == "2");
  CHECK(made->connect_time == std::chrono::seconds(2));
  const auto own =
    parse_address("postgresql://one/store?tcp_user_timeout=9000&connect_timeout=7&sslmode=require");
  REQUIRE(own);
  CHECK(word(own->servers[0], "tcp_user_timeout") == "9000");
  CHECK(word(own->servers[0], "sslmode") == "require");
  CHECK(own->connect_time == std::chrono::seconds(7));
}

TEST_CASE("what cannot be read is refused without repeating it") {
  const auto long_one = "host=" + std::string(20'000, 'x');
  for (const auto* bad : {"", "postgresql://me:secret@one/x?nonsense=secret", "secret", "host='secret",
         "postgresql://[secret/x", "host=a connect_timeout=secret", long_one.c_str()}) {
    const auto made = parse_address(bad);
    REQUIRE_FALSE(made);
    CHECK(made.error().code == errc::invalid_argument);
    CHECK(made.error().message.find("secret") == std::string::npos);
  }
  CHECK_FALSE(parse_address(std::string("host=a\0b", 8)));
}

TEST_CASE("a password is taken out of messages") {
  const auto made = parse_address("postgresql://me:se%20cret@one/store");
  REQUIRE(made);
  CHECK(made->password == "se cret");
  CHECK(without_password("x se cret y se cret", *made) == "x *** y ***");
  const auto stars = parse_address("postgresql://me:*@one/store");
  REQUIRE(stars);
  CHECK(without_password("a*b", *stars) == "a***b");
  CHECK(without_password("nothing", *parse_address("host=one")) == "nothing");
}
