#include "services/link/frame.hpp"

#include "messages/letter.hpp"
#include "messages/schemas/tokenizer.capnp.h"

#include <catch2/catch.hpp>

#include <cstring>
#include <random>

using namespace godwit;
using namespace godwit::link;

namespace {

const std::byte some_extras[] = {std::byte{1}, std::byte{0}, std::byte{3}};

frame_header full() {
  frame_header header;
  header.kind = frame_kind::request;
  header.cause = end_cause::deadline;
  header.code = 7;
  header.correlation = 0x0102030405060708;
  header.session = 11;
  header.source = 12;
  header.target = 13;
  header.type = 0xb1c0a5f6d2e94701;
  header.deadline_us = 5'000'000;
  header.trace = {1, 2, 3, 4};
  header.attachments = 5;
  header.name = "tokenizer";
  header.extras = some_extras;
  return header;
}

std::vector<std::byte> words(std::size_t count) {
  return std::vector<std::byte>(count * 8, std::byte{0x5a});
}

/// The frame with other bytes at a place.
template <class Number>
std::vector<std::byte> with(std::vector<std::byte> frame, std::size_t offset, Number value) {
  std::memcpy(frame.data() + offset, &value, sizeof value);
  return frame;
}

errc refusal(std::span<const std::byte> frame, const frame_limits& limits = {}) {
  const auto out = decode(frame, limits);
  REQUIRE_FALSE(out);
  return out.error().code;
}

} // namespace

TEST_CASE("a frame reads back what was written into it") {
  const auto body = words(3);
  const auto frame = encode(full(), body);
  CHECK(frame.size() == encoded_size(full(), body.size()));
  const auto back = decode(frame);
  REQUIRE(back);
  CHECK(back->header == full());
  CHECK(std::ranges::equal(back->words, body));
}

TEST_CASE("the bytes of a frame are the documented ones") {
  // Written by hand from docs/link.md: other nodes and other versions read them.
  frame_header header;
  header.kind = frame_kind::cancel;
  header.cause = end_cause::cancelled;
  header.correlation = 0x1122;
  header.session = 0x33;
  header.name = "ab";
  const auto frame = encode(header, words(1));
  std::vector<unsigned char> expected{'G', 'd', 'w', 'L', 1, 0, 0, 0, 20, 1, 0, 0, 112, 0, 0, 0, 0x22, 0x11,
    0, 0, 0, 0, 0, 0, 0x33, 0, 0, 0, 0, 0, 0, 0};
  expected.resize(92, 0);
  for (const int c : {2, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0})
    expected.push_back(static_cast<unsigned char>(c));
  for (const char c : {'a', 'b', '\0', '\0', '\0', '\0', '\0', '\0'})
    expected.push_back(static_cast<unsigned char>(c));
  for (int i = 0; i < 8; ++i)
    expected.push_back(0x5a);
  REQUIRE(frame.size() == expected.size());
  CHECK(std::memcmp(frame.data(), expected.data(), expected.size()) == 0);
}

TEST_CASE("a frame that is cut or has more bytes is refused") {
  const auto frame = encode(full(), words(2));
  for (std::size_t length = 0; length < frame.size(); ++length)
    CHECK(refusal(std::span(frame).first(length)) == errc::corrupt);
  auto longer = frame;
  longer.resize(frame.size() + 8);
  CHECK(refusal(longer) == errc::corrupt);
}

TEST_CASE("a frame's words are read at every alignment") {
  const auto mail = letter<schema::EncodeRequest>::make([](auto b) { b.setSpecial(true); });
  const auto frame = encode(full(), mail.bytes());
  for (std::size_t shift = 0; shift < 8; ++shift) {
    std::vector<std::byte> moved(frame.size() + shift);
    std::ranges::copy(frame, moved.begin() + static_cast<std::ptrdiff_t>(shift));
    const auto back = decode(std::span(moved).subspan(shift));
    REQUIRE(back);
    const auto read = letter<schema::EncodeRequest>::parse(back->words);
    REQUIRE(read);
    CHECK(read->read().getSpecial());
  }
}

TEST_CASE("a frame of another major version says so") {
  CHECK(refusal(with(encode(full()), 4, std::uint16_t{2})) == errc::unsupported);
  // But for greetings, which every version reads: their answer says why it will not do.
  auto greeting = full();
  greeting.kind = frame_kind::hello;
  CHECK(decode(with(encode(greeting), 4, std::uint16_t{2})));
}

TEST_CASE("what a later minor version appends to the header is skipped") {
  auto frame = encode(full());
  const auto header = static_cast<std::uint32_t>(frame.size());
  frame.resize(frame.size() + 16, std::byte{0xff});
  frame = with(frame, 12, header + 16);
  CHECK(refusal(frame) == errc::corrupt); // of our own version it cannot be
  frame = with(frame, 6, std::uint16_t{protocol_minor + 1});
  const auto back = decode(frame);
  REQUIRE(back);
  CHECK(back->header.name == "tokenizer");
  CHECK(back->words.empty());
}

TEST_CASE("each field of a frame is checked") {
  const auto frame = encode(full(), words(2));
  CHECK(refusal(with(frame, 0, 'X')) == errc::corrupt);
  CHECK(refusal(with(frame, 8, std::uint8_t{0})) == errc::unsupported);
  CHECK(refusal(with(frame, 8, std::uint8_t{200})) == errc::unsupported);
  CHECK(refusal(with(frame, 9, end_causes)) == errc::unsupported);
  CHECK(refusal(with(frame, 12, std::uint32_t{0})) == errc::corrupt);
  CHECK(refusal(with(frame, 12, std::uint32_t{0xfffffff8})) == errc::corrupt);
  CHECK(refusal(with(frame, 92, std::uint16_t{0xffff})) == errc::corrupt);
  CHECK(refusal(with(frame, 94, std::uint16_t{0xffff})) == errc::corrupt);
  CHECK(refusal(with(frame, 96, std::uint32_t{8})) == errc::corrupt);
  CHECK(refusal(with(frame, 96, std::uint32_t{0xfffffff8})) == errc::too_large);
  CHECK(refusal(with(frame, 104, '\n')) == errc::corrupt);
}

TEST_CASE("parts of a frame over their limits are refused") {
  const auto frame = encode(full(), words(2));
  CHECK(refusal(frame, {.name = 8}) == errc::too_large);
  CHECK(refusal(frame, {.extras = 2}) == errc::too_large);
  CHECK(refusal(frame, {.words = 8}) == errc::too_large);
  CHECK(refusal(frame, {.attachments = 4}) == errc::too_large);
  CHECK(decode(frame, {.deadline_us = 10})->header.deadline_us == 10);
}

TEST_CASE("what is set when a frame leaves is read by the other side") {
  auto frame = encode(full());
  set_session(frame, 99);
  set_deadline(frame, 1234);
  const auto back = decode(frame);
  REQUIRE(back);
  CHECK(back->header.session == 99);
  CHECK(back->header.deadline_us == 1234);
}

TEST_CASE("no bytes make the decoder fail otherwise than by refusing") {
  std::mt19937 random(20);
  const auto good = encode(full(), words(4));
  for (int round = 0; round < 20'000; ++round) {
    auto bad = good;
    const auto changes = 1 + random() % 8;
    for (unsigned i = 0; i < changes; ++i)
      bad[random() % bad.size()] = static_cast<std::byte>(random());
    const auto out = decode(bad);
    if (out) {
      CHECK(out->words.size() <= bad.size());
      CHECK(out->header.name.size() <= 255);
    }
  }
}
