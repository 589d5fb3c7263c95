// Letters from someone who means harm: each is refused, or is read like any other.

#include "messages/letter.hpp"

#include "messages/schemas/journal.capnp.h"
#include "messages/schemas/tokenizer.capnp.h"

#include <catch2/catch.hpp>

#include <capnp/dynamic.h>
#include <capnp/serialize.h>
#include <kj/string.h>

#include <cstring>
#include <random>

using namespace godwit;

namespace {

using words = std::vector<std::uint64_t>;

std::span<const std::byte> bytes(const words& message) {
  return std::as_bytes(std::span(message));
}

/// The table of a one-segment message, then its words.
words message(words content) {
  content.insert(content.begin(), static_cast<std::uint64_t>(content.size()) << 32);
  return content;
}

// Pointers as https://capnproto.org/encoding.html defines them; offsets count from the word behind the
// pointer.

constexpr std::uint64_t struct_pointer(std::int32_t offset, std::uint64_t data, std::uint64_t pointers) {
  return static_cast<std::uint32_t>(offset * 4) | data << 32 | pointers << 48;
}

constexpr std::uint64_t list_pointer(std::int32_t offset, std::uint64_t element, std::uint64_t count) {
  return static_cast<std::uint32_t>(offset * 4 + 1) | element << 32 | count << 35;
}

constexpr std::uint64_t far_pointer(std::uint64_t segment, std::uint64_t offset, bool two) {
  return 2 | (two ? 4U : 0U) | offset << 3 | segment << 32;
}

constexpr std::uint64_t byte_list = 2;
constexpr std::uint64_t composite_list = 7;

/// Parses; if that succeeds, reads every field and checks that the letter's own bytes make the same letter.
/// @returns whether it was accepted
template <class Schema>
bool survives(std::span<const std::byte> from_outside, letter_limits limits = {}) {
  const auto parsed = letter<Schema>::parse(from_outside, {}, limits);
  if (!parsed) {
    CHECK((parsed.error().code == errc::corrupt || parsed.error().code == errc::too_large));
    return false;
  }
  const auto content = kj::str(parsed->read());
  const auto again = letter<Schema>::parse(parsed->bytes());
  REQUIRE(again);
  CHECK(kj::str(again->read()) == content);
  // Nothing unfolds.
  CHECK(parsed->bytes().size() <= std::max<std::size_t>(from_outside.size(), 16));
  return true;
}

letter<schema::RenderRequest> chat() {
  return letter<schema::RenderRequest>::make([](schema::RenderRequest::Builder b) {
    auto list = b.initMessages(2);
    list[0].setRole("system");
    list[0].setContent("Be short.");
    list[1].setRole("user");
    list[1].setContent("Hi");
  });
}

letter<schema::Record> opened() {
  return letter<schema::Record>::make([](schema::Record::Builder b) {
    b.setAt(1);
    auto settings = b.initOpened().initSettings();
    settings.setModel("model");
    settings.initStop(2).set(0, "stop");
    auto bias = settings.initSampling().initBias(2);
    bias[1].setToken(5);
  });
}

template <class Schema>
void flip_every_bit(std::span<const std::byte> valid) {
  std::vector<std::byte> copy(valid.begin(), valid.end());
  for (std::size_t bit = 0; bit < copy.size() * 8; ++bit) {
    copy[bit / 8] ^= std::byte{1} << (bit % 8);
    survives<Schema>(copy);
    copy[bit / 8] ^= std::byte{1} << (bit % 8);
  }
  CHECK(survives<Schema>(copy));
}

} // namespace

TEST_CASE("any single changed bit makes a letter that is refused or read in peace") {
  flip_every_bit<schema::RenderRequest>(chat().bytes());
  flip_every_bit<schema::Record>(opened().bytes());
}

TEST_CASE("a letter of several segments is read, and each of its bits may change") {
  // Eight words a segment: texts and lists end up behind far pointers.
  capnp::MallocMessageBuilder builder(8, capnp::AllocationStrategy::FIXED_SIZE);
  auto list = builder.initRoot<schema::RenderRequest>().initMessages(3);
  for (auto each : list) {
    each.setRole("a role that is rather long");
    each.setContent("a text that does not fit into a segment with its role, nor into any but its own one");
  }
  const auto flat = capnp::messageToFlatArray(builder);
  const auto raw = flat.asBytes();
  const std::vector<std::byte> sent(
    reinterpret_cast<const std::byte*>(raw.begin()), reinterpret_cast<const std::byte*>(raw.end()));
  std::uint32_t segments = 0;
  std::memcpy(&segments, sent.data(), sizeof segments);
  REQUIRE(segments + 1 > 3);
  const auto parsed = letter<schema::RenderRequest>::parse(sent);
  REQUIRE(parsed);
  CHECK(parsed->read().getMessages()[2].getRole() == "a role that is rather long");
  flip_every_bit<schema::RenderRequest>(sent);
}

TEST_CASE("far pointers lead nowhere else") {
  for (const auto& root : {far_pointer(0, 0, false), far_pointer(1, 0, false), far_pointer(0, 99, false),
         far_pointer(0xffffffff, 0, true), far_pointer(0, (1U << 29) - 1, true)})
    CHECK_FALSE(survives<schema::RenderRequest>(bytes(message({root, 0, 0}))));
  // Its own landing pad, with a tag of an empty struct: odd, but there is nothing behind it.
  CHECK(survives<schema::RenderRequest>(bytes(message({far_pointer(0, 0, true), 0, 0}))));
  // A double far pointer whose landing pad is a double far pointer.
  CHECK_FALSE(survives<schema::RenderRequest>(
    bytes(message({far_pointer(0, 1, true), far_pointer(0, 1, true), struct_pointer(0, 1, 1)}))));
}

TEST_CASE("pointers out of the message are refused") {
  for (const std::int32_t offset : {1, 100, -3, -1000, (1 << 29) - 1, -(1 << 29)})
    CHECK_FALSE(survives<schema::RenderRequest>(bytes(message({struct_pointer(offset, 1, 1), 0, 0}))));
  CHECK_FALSE(survives<schema::RenderRequest>(bytes(message({struct_pointer(0, 0xffff, 0xffff), 0, 0}))));
  const auto with_list = [](std::uint64_t list) {
    return survives<schema::RenderRequest>(bytes(message({struct_pointer(0, 1, 1), 0, list})));
  };
  CHECK(with_list(0));
  CHECK_FALSE(with_list(list_pointer(0, composite_list, 1)));
  CHECK_FALSE(with_list(list_pointer(0, composite_list, (1U << 29) - 1)));
  CHECK_FALSE(with_list(list_pointer(0, byte_list, (1U << 29) - 1)));
  CHECK_FALSE(with_list(list_pointer(-100, byte_list, 1)));
}

TEST_CASE("a structure that contains itself is refused, in fields that nobody knows too") {
  // CreditGrant has no pointers: this one came with a later version, and points back at its own struct.
  CHECK_FALSE(
    survives<schema::CreditGrant>(bytes(message({struct_pointer(0, 1, 1), 0, struct_pointer(-2, 1, 1)}))));
  // A list of pointers whose elements are the list.
  CHECK_FALSE(survives<schema::CreditGrant>(bytes(message(
    {struct_pointer(0, 1, 1), 0, list_pointer(0, 6, 2), list_pointer(-1, 6, 2), list_pointer(-2, 6, 2)}))));
}

TEST_CASE("nesting deeper than allowed is refused") {
  const auto nested = [](std::size_t depth) {
    words content{struct_pointer(0, 1, 1), 0};
    for (std::size_t level = 0; level < depth; ++level)
      content.push_back(list_pointer(0, 6, 1));
    content.push_back(0);
    return message(content);
  };
  CHECK(survives<schema::CreditGrant>(bytes(nested(10))));
  CHECK_FALSE(survives<schema::CreditGrant>(bytes(nested(17))));
  CHECK_FALSE(survives<schema::CreditGrant>(bytes(nested(100'000))));
}

TEST_CASE("a small message cannot unfold into a large one") {
  // A thousand messages whose contents are one text of a thousand bytes.
  constexpr std::uint64_t count = 1000;
  constexpr std::uint64_t text_words = 125;
  words content{
    struct_pointer(0, 1, 1), 0, list_pointer(0, composite_list, count * 4), struct_pointer(count, 0, 4)};
  const auto first = content.size();
  content.resize(first + count * 4 + text_words, 0);
  for (std::size_t i = 0; i < count; ++i) {
    const auto place = i * 4 + 1; // the content's pointer
    content[first + place] =
      list_pointer(static_cast<std::int32_t>(count * 4 - place - 1), byte_list, text_words * 8);
  }
  const auto hostile = message(content);
  CHECK_FALSE(survives<schema::RenderRequest>(bytes(hostile)));

  // Elements without size: a list of any number of them takes one word.
  CHECK_FALSE(survives<schema::RenderRequest>(bytes(
    message({struct_pointer(0, 1, 1), 0, list_pointer(0, composite_list, 0), struct_pointer(3, 0, 0)}))));
  CHECK_FALSE(survives<schema::RenderRequest>(bytes(message(
    {struct_pointer(0, 1, 1), 0, list_pointer(0, composite_list, 0), struct_pointer((1 << 29) - 1, 0, 0)}))));
  CHECK_FALSE(survives<schema::CreditGrant>(
    bytes(message({struct_pointer(0, 1, 1), 0, list_pointer(0, 0, (1U << 29) - 1)}))));
}

TEST_CASE("a letter is not accepted for the sake of words that it does not use") {
  // A list of elements without size, in a field that nobody knows: it takes no space, but time. Where words
  // that nothing points at allow for it, its copy, which has none, would be refused by the next node.
  const auto padded = [](std::uint64_t elements, std::size_t unused) {
    words content{struct_pointer(0, 1, 1), 0, list_pointer(0, 0, elements)};
    content.resize(content.size() + unused, 0);
    return survives<schema::CreditGrant>(bytes(message(content)));
  };
  CHECK(padded(1000, 0));
  CHECK(padded(1000, 100'000));
  CHECK_FALSE(padded(100'000, 0));
  CHECK_FALSE(padded(100'000, 100'000));
}

TEST_CASE("a text without its end is refused") {
  const auto valid = chat();
  std::vector<std::byte> sent(valid.bytes().begin(), valid.bytes().end());
  const std::string_view content(reinterpret_cast<const char*>(sent.data()), sent.size());
  const auto place = content.find("Be short.");
  REQUIRE(place != std::string_view::npos);
  sent[place + 9] = std::byte{'x'};
  CHECK_FALSE(survives<schema::RenderRequest>(sent));
  // A text of no bytes at all lacks even the end.
  CHECK_FALSE(
    survives<schema::TokenIds>(bytes(message({struct_pointer(0, 0, 1), list_pointer(0, byte_list, 4)}))));
}

TEST_CASE("tables of segments that lie about their sizes are refused") {
  const auto valid = chat();
  std::vector<std::byte> sent(valid.bytes().begin(), valid.bytes().end());
  for (const std::uint32_t value : {0U, 1U, 0x7fffffffU, 0xfffffffeU, 0xffffffffU}) {
    std::memcpy(sent.data() + 4, &value, sizeof value);
    CHECK_FALSE(survives<schema::RenderRequest>(sent));
  }
  const std::uint32_t right = static_cast<std::uint32_t>(sent.size() / 8 - 1);
  std::memcpy(sent.data() + 4, &right, sizeof right);
  REQUIRE(survives<schema::RenderRequest>(sent));
  for (const std::uint32_t count : {1U, 2U, 511U, 0x7fffffffU, 0xfffffffeU, 0xffffffffU}) {
    std::memcpy(sent.data(), &count, sizeof count);
    CHECK_FALSE(survives<schema::RenderRequest>(sent));
  }
}

TEST_CASE("noise is refused or read in peace") {
  std::mt19937_64 random(11);
  for (int round = 0; round < 3000; ++round) {
    words noise(1 + random() % 40);
    for (auto& word : noise)
      word = random() & random() & random();
    survives<schema::Record>(bytes(message(noise)));
    survives<schema::RenderRequest>(bytes(noise));
  }
  // Valid letters with several words replaced.
  const auto valid = opened();
  for (int round = 0; round < 3000; ++round) {
    words changed(valid.bytes().size() / 8);
    std::memcpy(changed.data(), valid.bytes().data(), valid.bytes().size());
    for (int change = 0; change < 3; ++change)
      changed[random() % changed.size()] ^= std::uint64_t{1} << (random() % 64);
    survives<schema::Record>(bytes(changed));
  }
}

TEST_CASE("a letter of the largest size is read") {
  const std::string text((std::size_t{8} << 20) - 200, 'x');
  const auto large = letter<schema::RenderRequest>::make(
    [&](schema::RenderRequest::Builder b) { b.initMessages(1)[0].setContent(text); });
  CHECK(survives<schema::RenderRequest>(large.bytes(), {.bytes = std::size_t{8} << 20}));
  CHECK_FALSE(survives<schema::RenderRequest>(large.bytes(), {.bytes = large.bytes().size() - 1}));
}
