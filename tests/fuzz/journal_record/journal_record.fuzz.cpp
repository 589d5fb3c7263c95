// Bytes of a disk as a record and as a head, at a fixed place. As they are they hardly ever check; so the
// same bytes are also taken as a body that gets a right checksum: whatever then reads must read back the
// same.
#include "messages/check.hpp"
#include "services/journal/codec.hpp"

#include <xxhash.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace {

using namespace godwit;
using namespace godwit::journal_codec;

const session_id session("ses_0123456789abcdef0123456789abcdef");
constexpr sequence_number sequence = 7;

std::string with_checksum(std::string body, std::string_view key) {
  const auto sum = XXH3_64bits_withSeed(body.data(), body.size(), XXH3_64bits(key.data(), key.size()));
  body.append(reinterpret_cast<const char*>(&sum), sizeof sum);
  return body;
}

void try_record(std::string_view stored) {
  const auto opened = open_record(session, sequence, stored);
  if (!opened) {
    GODWIT_CHECK(opened.error().code == errc::corrupt || opened.error().code == errc::unsupported);
    return;
  }
  const auto sealed = seal_record(session, sequence, opened->epoch, opened->record);
  const auto again = open_record(session, sequence, sealed);
  GODWIT_CHECK(again.has_value() && again->epoch == opened->epoch);
  GODWIT_CHECK(!open_record(session, sequence + 1, stored));
}

void try_head(std::string_view stored) {
  const auto opened = open_head(session, stored);
  if (!opened) {
    GODWIT_CHECK(opened.error().code == errc::corrupt);
    return;
  }
  GODWIT_CHECK(seal_head(*opened) == stored);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try_record(bytes);
  try_head(bytes);
  try_record(with_checksum(std::string(bytes), record_key(session, sequence)));
  try_head(with_checksum(std::string(bytes), session.value));
  GODWIT_CHECK(sequence_of(session, bytes).value_or(0) == 0 || bytes.size() == session.value.size() + 9);
  return 0;
}
