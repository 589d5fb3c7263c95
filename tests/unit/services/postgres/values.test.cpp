#include "services/postgres/values.hpp"

#include <catch2/catch.hpp>

using namespace godwit::postgres;

namespace {

std::string bytes(std::initializer_list<int> list) {
  std::string out;
  for (const int one : list)
    out += static_cast<char>(one);
  return out;
}

} // namespace

// The expected bytes are what `COPY (SELECT …) TO … (FORMAT binary)` of PostgreSQL 15 writes for the value.

TEST_CASE("numbers are eight bytes, the highest first") {
  CHECK(value(std::int64_t{1}).bytes == bytes({0, 0, 0, 0, 0, 0, 0, 1}));
  CHECK(value(std::int64_t{-2}).bytes == bytes({255, 255, 255, 255, 255, 255, 255, 254}));
  CHECK(number_of(field("\0\0\0\0\0\0\1\2"
                        "x"))
        == std::nullopt);
  CHECK(number_of(std::string_view("\0\0\0\0\0\0\1\2", 8)) == 258);
  CHECK_FALSE(number_of(std::nullopt));
}

TEST_CASE("an array has its dimension, its element's type, its length and then length and bytes of each") {
  const std::vector<std::int64_t> numbers{5, -1};
  CHECK(array(std::span<const std::int64_t>(numbers)).bytes
        == bytes({0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 20, 0, 0, 0, 2, 0, 0, 0, 1, //
          0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 8, 255, 255, 255, 255, 255, 255, 255, 255}));
  const std::vector<std::string_view> strings{"a", ""};
  CHECK(array(std::span<const std::string_view>(strings)).bytes
        == bytes({0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 17, 0, 0, 0, 2, 0, 0, 0, 1, //
          0, 0, 0, 1, 'a', 0, 0, 0, 0}));
}

TEST_CASE("an array without elements has no dimension") {
  CHECK(array(std::span<const std::int64_t>()).bytes == bytes({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 20}));
}

TEST_CASE("a missing element has the length -1") {
  const std::vector<std::optional<bool>> truths{true, std::nullopt, false};
  CHECK(array(std::span<const std::optional<bool>>(truths)).bytes
        == bytes({0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 16, 0, 0, 0, 3, 0, 0, 0, 1, //
          0, 0, 0, 1, 1, 255, 255, 255, 255, 0, 0, 0, 1, 0}));
  const std::vector<std::optional<std::string_view>> strings{std::nullopt};
  CHECK(array(std::span<const std::optional<std::string_view>>(strings)).bytes
        == bytes({0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 17, 0, 0, 0, 1, 0, 0, 0, 1, 255, 255, 255, 255}));
}

TEST_CASE("a truth is one byte, 0 or 1") {
  CHECK(truth_of(std::string_view("\1", 1)) == true);
  CHECK(truth_of(std::string_view("\0", 1)) == false);
  CHECK_FALSE(truth_of(std::string_view("\2", 1)));
  CHECK_FALSE(truth_of(std::string_view()));
  CHECK_FALSE(truth_of(std::nullopt));
}

TEST_CASE("an array of texts is read as it is written") {
  const std::vector<std::string> words{"a", "", "bc"};
  const auto written = text_array(words).bytes;
  CHECK(written
        == bytes({0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 25, 0, 0, 0, 3, 0, 0, 0, 1, //
          0, 0, 0, 1, 'a', 0, 0, 0, 0, 0, 0, 0, 2, 'b', 'c'}));
  CHECK(texts_of(written, 3) == words);
  CHECK(texts_of(text_array({}).bytes, 0) == std::vector<std::string>());
}

TEST_CASE("what is no array of texts, is cut, or has a null or too many elements, is not read") {
  const std::vector<std::string> words{"a", "bc"};
  const auto whole = text_array(words).bytes;
  CHECK_FALSE(texts_of(std::nullopt, 8));
  CHECK_FALSE(texts_of(whole, 1));
  for (std::size_t size = 0; size < whole.size(); ++size)
    CHECK_FALSE(texts_of(std::string_view(whole).substr(0, size), 8));
  CHECK_FALSE(texts_of(whole + "x", 8));
  const std::vector<std::int64_t> numbers{5};
  CHECK_FALSE(texts_of(array(std::span<const std::int64_t>(numbers)).bytes, 8));
  const std::vector<std::optional<std::string_view>> nothing{std::nullopt};
  CHECK_FALSE(texts_of(array(std::span<const std::optional<std::string_view>>(nothing)).bytes, 8));
  // Two dimensions.
  CHECK_FALSE(texts_of(bytes({0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 25, 0, 0, 0, 0, 0, 0, 0, 1}), 8));
}
