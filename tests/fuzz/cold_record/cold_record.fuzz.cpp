// Bytes of a disk as a record and as a note of a block, at a fixed key. As they are they hardly ever check;
// so the same bytes are also taken with a right checksum: whatever then reads must read back the same.
#include "messages/check.hpp"
#include "services/coldstore/codec.hpp"

#include <xxhash.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

namespace {

using namespace godwit;
using namespace godwit::cold_codec;

constexpr block_identity identity{0x0123456789abcdef, 0xfedcba9876543210};
constexpr std::size_t checksum_at = 112;

void try_record(std::string_view stored) {
  const auto opened = open_record(identity, stored);
  if (!opened) {
    GODWIT_CHECK(opened.error().code == errc::corrupt || opened.error().code == errc::unsupported);
    return;
  }
  GODWIT_CHECK(opened->header.identity == identity);
  GODWIT_CHECK(opened->pages.size() <= stored.size());
  const auto head = seal_header(opened->header, opened->pages);
  GODWIT_CHECK(head == stored.substr(0, head.size()));
  GODWIT_CHECK(head.size() + opened->pages.size() == stored.size());
  GODWIT_CHECK(!open_record({identity.low + 1, identity.high}, stored));
}

void try_note(std::string_view stored) {
  const auto opened = open_note(identity, stored);
  if (!opened) {
    GODWIT_CHECK(opened.error().code == errc::corrupt);
    return;
  }
  GODWIT_CHECK(seal_note(*opened) == stored);
}

std::string record_with_checksum(std::string bytes) {
  if (bytes.size() < checksum_at + 16)
    return bytes;
  std::memcpy(bytes.data(), "GWKV", 4);
  // Half of the inputs stand at the right key.
  if (bytes.size() % 2 == 0)
    std::memcpy(bytes.data() + 8, &identity, sizeof identity);
  std::fill_n(bytes.begin() + checksum_at, 16, '\0');
  const auto sum = XXH3_128bits(bytes.data(), bytes.size());
  std::memcpy(bytes.data() + checksum_at, &sum.low64, 8);
  std::memcpy(bytes.data() + checksum_at + 8, &sum.high64, 8);
  return bytes;
}

std::string note_with_checksum(std::string bytes) {
  const auto key = note_key(identity);
  const auto sum = XXH3_64bits_withSeed(bytes.data(), bytes.size(), XXH3_64bits(key.data(), key.size()));
  bytes.append(reinterpret_cast<const char*>(&sum), sizeof sum);
  return bytes;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try_record(bytes);
  try_note(bytes);
  try_record(record_with_checksum(std::string(bytes)));
  try_note(note_with_checksum(std::string(bytes)));
  GODWIT_CHECK(!identity_of(bytes) || note_key(*identity_of(bytes)) == bytes);
  return 0;
}
