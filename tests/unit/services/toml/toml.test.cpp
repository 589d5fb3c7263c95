#include "services/toml/toml.hpp"

#include <catch2/catch.hpp>

using namespace godwit;

TEST_CASE("values of each kind are read with the line on which they stand") {
  const auto read = parse_toml("text = \"a\\tb\"\nnumber = -0x1F # not so\n\nreal = 2.5\ntruth = true\n"
                               "day = 1979-05-27\nlist = [1, \"x\"]\n[below]\nkey = 'raw\\'\n");
  // TOML has no negative hexadecimal numbers.
  REQUIRE_FALSE(read);
  CHECK(read.error().line == 2);

  const auto value = parse_toml("text = \"a\\tb\"\nnumber = -31\n\nreal = 2.5\ntruth = true\n"
                                "day = 1979-05-27\nlist = [1, \"x\"]\n[below]\nkey = 'raw\\'\n");
  REQUIRE(value);
  CHECK(*value->find("text")->as<std::string>() == "a\tb");
  CHECK(*value->find("number")->as<std::int64_t>() == -31);
  CHECK(value->find("number")->line == 2);
  CHECK(*value->find("real")->as<double>() == 2.5);
  CHECK(value->find("real")->line == 4);
  CHECK(*value->find("truth")->as<bool>());
  CHECK(value->find("day")->as<toml_value::moment>() != nullptr);
  const auto* const list = value->find("list")->as<toml_value::list>();
  REQUIRE(list != nullptr);
  REQUIRE(list->size() == 2);
  CHECK(*(*list)[0].as<std::int64_t>() == 1);
  CHECK(*(*list)[1].as<std::string>() == "x");
  const auto* const below = value->find("below");
  REQUIRE(below != nullptr);
  CHECK(*below->find("key")->as<std::string>() == "raw\\");
  CHECK(below->find("key")->line == 9);
  CHECK(below->find("other") == nullptr);
  CHECK(value->find("text")->find("x") == nullptr);
  CHECK(value->find("text")->as<bool>() == nullptr);
}

TEST_CASE("tables of one name are a list, each with its line") {
  const auto value = parse_toml("[[node]]\nname = \"a\"\n\n[[node]]\nname = \"b\"\n");
  REQUIRE(value);
  const auto* const nodes = value->find("node")->as<toml_value::list>();
  REQUIRE(nodes != nullptr);
  REQUIRE(nodes->size() == 2);
  CHECK((*nodes)[0].line == 1);
  CHECK((*nodes)[1].line == 4);
  CHECK(*(*nodes)[1].find("name")->as<std::string>() == "b");
}

TEST_CASE("what is no TOML is said to be so, with the line") {
  for (const auto* each : {"a =", "a = 1\na = 2", "[a", "a = \"x", "a = \xff"}) {
    INFO(each);
    const auto value = parse_toml(each);
    REQUIRE_FALSE(value);
    CHECK(value.error().line >= 1);
    CHECK_FALSE(value.error().what.empty());
  }
  CHECK(parse_toml("")->as<toml_value::table>()->empty());
}
