#include "tools/godwit/token_list.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <vector>

using namespace godwit;
using namespace godwit::cli;

TEST_CASE("token ids are read from a JSON array or from words") {
  using ids = std::vector<token_id>;
  CHECK(read_token_list("[1, 0,99]\n", 100) == ids{1, 0, 99});
  CHECK(read_token_list(" \n[]", 100) == ids{});
  CHECK(read_token_list("1 0\n\t99\n", 100) == ids{1, 0, 99});
  CHECK(read_token_list("", 100) == ids{});
  CHECK(read_token_list(" \n ", 100) == ids{});
}

TEST_CASE("what is no token id is refused with its place") {
  for (const std::string bad : {"1 100", "[1, 100]", "1 -1", "[1, -1]", "1 x", "[1, \"x\"]", "[1, 1.5]",
         "1 2,3", "[1, 99999999999999999999]", "1 99999999999", "1 0x1", "[0, [1]]"}) {
    const auto read = read_token_list(bad, 100);
    INFO(bad);
    REQUIRE_FALSE(read.has_value());
    CHECK(read.error().code == errc::invalid_argument);
    CHECK_THAT(read.error().message, Catch::StartsWith("number 1 of the list"));
  }
  for (const std::string bad : {"[1, 2", "[1] 2", "[,]"})
    CHECK_FALSE(read_token_list(bad, 100).has_value());
}
