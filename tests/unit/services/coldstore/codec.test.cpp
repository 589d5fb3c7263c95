#include "services/coldstore/codec.hpp"

#include <catch2/catch.hpp>
#include <xxhash.h>

#include <cstring>

using namespace godwit;
using namespace godwit::cold_codec;

namespace {

constexpr block_identity identity{0x1111, 0x2222};

header some_header() {
  header made;
  made.identity = identity;
  made.parent = {0x3333, 0x4444};
  made.model = {0x5555, 0x6666};
  made.profile = {0x7777, 0x8888};
  made.shape = {30, 3, 64, kv_type::f32};
  made.depth = 77;
  made.tenant = "acme corp";
  return made;
}

std::string some_pages() {
  std::string made(1000, '\0');
  for (std::size_t i = 0; i < made.size(); ++i)
    made[i] = static_cast<char>(i * 7);
  return made;
}

std::string sealed(const header& of, const std::string& pages) {
  return seal_header(of, std::as_bytes(std::span(pages))) + pages;
}

note some_note() {
  note made;
  made.identity = identity;
  made.parent = {0x3333, 0x4444};
  made.model = {0x5555, 0x6666};
  made.depth = 77;
  made.bytes = 4096;
  made.place = 123456;
  made.hits = 9;
  made.worth = 12.25;
  made.tenant = "acme";
  return made;
}

template <class Number>
void add(std::string& to, Number number) {
  to.append(reinterpret_cast<const char*>(&number), sizeof number);
}

} // namespace

TEST_CASE("a record lies on disk as the header says") {
  std::string expected = "GWKV";
  add<std::uint16_t>(expected, 1);
  add<std::uint16_t>(expected, 128 + 16);
  for (std::uint64_t half : {0x1111U, 0x2222U, 0x3333U, 0x4444U, 0x5555U, 0x6666U, 0x7777U, 0x8888U})
    add(expected, half);
  for (std::uint32_t number : {30U, 3U, 64U, 1U, kv_layout_version, page_tokens, 77U, 1000U})
    add(expected, number);
  add<std::uint64_t>(expected, 9);
  expected.append(16, '\0');
  expected += "acme corp";
  expected.append(7, '\0');
  expected += some_pages();
  const auto sum = XXH3_128bits(expected.data(), expected.size());
  std::memcpy(expected.data() + 112, &sum.low64, 8);
  std::memcpy(expected.data() + 120, &sum.high64, 8);
  CHECK(sealed(some_header(), some_pages()) == expected);
  CHECK(header_bytes("acme corp") == 144);
  CHECK(header_bytes("") == 128);

  const auto read = open_record(identity, expected);
  REQUIRE(read);
  CHECK(read->header == some_header());
  CHECK(std::string(reinterpret_cast<const char*>(read->pages.data()), read->pages.size()) == some_pages());
}

TEST_CASE("a record with any bit changed, cut anywhere, or at another key does not check") {
  const auto stored = sealed(some_header(), some_pages());
  for (std::size_t bit = 0; bit < stored.size() * 8; ++bit) {
    auto changed = stored;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << bit % 8));
    REQUIRE(open_record(identity, changed).error().code == errc::corrupt);
  }
  for (std::size_t size = 0; size < stored.size(); ++size)
    REQUIRE(open_record(identity, stored.substr(0, size)).error().code == errc::corrupt);
  CHECK(open_record(identity, stored + '\0').error().code == errc::corrupt);
  CHECK(open_record({identity.high, identity.low}, stored).error().code == errc::corrupt);
}

TEST_CASE("a whole record of a later version is told from a damaged one") {
  auto later = sealed(some_header(), some_pages());
  later[4] = 2;
  std::memset(later.data() + 112, 0, 16);
  const auto sum = XXH3_128bits(later.data(), later.size());
  std::memcpy(later.data() + 112, &sum.low64, 8);
  std::memcpy(later.data() + 120, &sum.high64, 8);
  CHECK(open_record(identity, later).error().code == errc::unsupported);
}

TEST_CASE("a note reads back, and does not check with any bit changed or at another key") {
  const auto stored = seal_note(some_note());
  REQUIRE(open_note(identity, stored));
  CHECK(*open_note(identity, stored) == some_note());
  for (std::size_t bit = 0; bit < stored.size() * 8; ++bit) {
    auto changed = stored;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << bit % 8));
    REQUIRE_FALSE(open_note(identity, changed));
  }
  CHECK_FALSE(open_note({identity.high, identity.low}, stored));
  // No note may become a blob: opening would read it from another file.
  auto longest = some_note();
  longest.tenant = std::string(max_tenant_bytes, 'x');
  CHECK(seal_note(longest).size() < 512);
  CHECK(*open_note(identity, seal_note(longest)) == longest);
}

TEST_CASE("keys tell records from notes, and records sort by their places") {
  CHECK(identity_of(note_key(identity)) == identity);
  CHECK_FALSE(identity_of(record_key(7, identity)));
  CHECK_FALSE(identity_of(note_key(identity) + "x"));
  CHECK_FALSE(identity_of(""));
  CHECK(note_key(identity) != note_key({identity.high, identity.low}));
  CHECK(record_key(255, identity) < record_key(256, {0, 0}));
  CHECK(record_key(0x7fffffff, identity) < record_key(0x80000000, {0, 0}));
  CHECK(record_key(7, identity) != record_key(7, {identity.high, identity.low}));
}
