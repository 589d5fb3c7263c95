#include "services/mesh/block_yaml.hpp"

#include <catch2/catch.hpp>

using namespace godwit;

namespace {

/// A value on one line, so that it can be compared: maps as {k:v,}, lists as [v,], texts as they are.
std::string flat(const block_yaml& value) {
  std::string out;
  if (const auto* const text = value.text())
    return *text;
  if (const auto* const items = value.items()) {
    for (const auto& each : *items)
      out += flat(each) + ",";
    return "[" + out + "]";
  }
  for (const auto& [key, each] : *value.fields())
    out += key + ":" + flat(each) + ",";
  return "{" + out + "}";
}

std::string read(const std::string& text) {
  const auto value = block_yaml::parse(text);
  return value ? flat(*value) : value.error().message;
}

} // namespace

// What a value means is YAML 1.2's (yaml.org/spec/1.2.2).

TEST_CASE("maps and lists in blocks are read") {
  CHECK(read("a: 1\nb:\n  c: x y\n  d: z\n") == "{a:1,b:{c:x y,d:z,},}");
  CHECK(read("- a\n- b\n") == "[a,b,]");
  // A list may stand as far in as its key, or further.
  CHECK(read("a:\n- 1\n- 2\nb: 3\n") == "{a:[1,2,],b:3,}");
  CHECK(read("a:\n  - 1\n  - 2\nb: 3\n") == "{a:[1,2,],b:3,}");
  CHECK(read("- a: 1\n  b: 2\n- a: 3\n") == "[{a:1,b:2,},{a:3,},]");
  CHECK(read("- a:\n    b: 2\n  c: 3\n") == "[{a:{b:2,},c:3,},]");
  CHECK(read("-   a: 1\n    b: 2\n") == "[{a:1,b:2,},]");
  CHECK(read("a:\nb: 2\n") == "{a:,b:2,}");
  CHECK(read("a: []\nb: {}\n") == "{a:[],b:{},}");
}

TEST_CASE("texts are plain or in quotes") {
  CHECK(read("a: \"x: # y\"\n") == "{a:x: # y,}");
  CHECK(read("a: \"q\\\"\\\\\"\n") == "{a:q\"\\,}");
  CHECK(read("a: 'it''s'\n") == "{a:it's,}");
  CHECK(read("\"k: 1\": v\n") == "{k: 1:v,}");
  CHECK(read("- \"a: b\"\n") == "[a: b,]");
  CHECK(read("a: http://x:1/y#z\n") == "{a:http://x:1/y#z,}");
}

TEST_CASE("empty lines, comments and ends of lines do not count") {
  CHECK(read("") == "{}");
  CHECK(read("# all\n\n  # of this\n") == "{}");
  CHECK(read("a: 1\r\n\r\n# x\r\nb: 2") == "{a:1,b:2,}");
}

TEST_CASE("what has a meaning that is not taken is refused with its line") {
  for (const auto* each : {"a: &x 1", "a: *x", "a: !t 1", "a: |", "a: >-", "a: [1, 2]", "a: {b: 1}",
         "a: b: c", "a: b #c", "a: %x", "a: @x", "---", "? a", "a", "a:b", ": x", "a: 'x", "a: \"x",
         "a: \"\\n\"", "a: \"x\" y", "- - a", "-", "a: - b", "- a\nb: 1", "a: 1\n  b: 2",
         "a:\n    b: 1\n  c: 2", "a: 1\na: 2", "\ta: 1", "a: \x01", "a: x\ty"}) {
    INFO(each);
    // Behind another field, unless it is the whole text.
    const std::string text(each);
    const auto value = block_yaml::parse(text.front() == '-' ? text : "z: 0\n" + text + "\n");
    REQUIRE_FALSE(value);
    CHECK(value.error().code == errc::corrupt);
    CHECK(value.error().message.find("line ") == 0);
  }
  CHECK(read("a: 1\nb: [1]\n").find("line 2") == 0);
}

TEST_CASE("depth and length are bounded") {
  std::string deep;
  for (int i = 0; i < 100; ++i)
    deep += std::string(static_cast<std::size_t>(i), ' ') + "a:\n";
  CHECK(read(deep).find("too deep") != std::string::npos);
  CHECK(read(std::string((1 << 20) + 1, '\n')).find("1 MiB") != std::string::npos);
}
