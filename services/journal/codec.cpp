#include "services/journal/codec.hpp"

#include "actors/session/journal_rules.hpp"

// The hash is used in one translation unit, so its code may be inlined here.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <bit>
#include <cstring>

namespace godwit::journal_codec {

namespace {

static_assert(std::endian::native == std::endian::little, "values are written as they lie in memory");

constexpr std::uint8_t value_version = 1;
constexpr std::size_t record_header_bytes = 16;
constexpr std::size_t head_header_bytes = 24;
constexpr std::size_t checksum_bytes = 8;

template <class T>
void put(std::string& target, T value) {
  target.append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <class T>
T at(std::string_view bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

std::uint64_t checksum(std::string_view key, std::string_view value) {
  return XXH3_64bits_withSeed(value.data(), value.size(), XXH3_64bits(key.data(), key.size()));
}

/// Removes the checksum behind a value. @returns false if it does not fit
bool strip_checksum(std::string_view key, std::string_view& value) {
  const auto body = value.substr(0, value.size() - checksum_bytes);
  if (checksum(key, body) != at<std::uint64_t>(value, body.size()))
    return false;
  value = body;
  return true;
}

} // namespace

std::string record_key(const session_id& session, sequence_number sequence) {
  std::string key;
  key.reserve(1 + session.value.size() + sizeof sequence);
  put(key, static_cast<std::uint8_t>(session.value.size()));
  key += session.value;
  put(key, __builtin_bswap64(sequence));
  return key;
}

std::optional<sequence_number> sequence_of(const session_id& session, std::string_view key) {
  const auto name = session.value.size();
  if (key.size() != 1 + name + sizeof(sequence_number) || at<std::uint8_t>(key, 0) != name
      || key.substr(1, name) != session.value)
    return std::nullopt;
  return __builtin_bswap64(at<std::uint64_t>(key, 1 + name));
}

std::string seal_record(
  const session_id& session, sequence_number sequence, epoch_t epoch, const journal_record& record) {
  const auto bytes = record.bytes();
  std::string value;
  value.reserve(record_header_bytes + bytes.size() + checksum_bytes);
  put(value, 'R');
  put(value, value_version);
  put(value, std::uint16_t{0});
  put(value, static_cast<std::uint32_t>(bytes.size()));
  put(value, epoch);
  value.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  put(value, checksum(record_key(session, sequence), value));
  return value;
}

result<placed_record> open_record(
  const session_id& session, sequence_number sequence, std::string_view stored) {
  const auto damaged = [] { return fail(errc::corrupt, "a record does not check"); };
  if (stored.size() < record_header_bytes + checksum_bytes
      || stored.size() > record_header_bytes + journal::max_record_bytes + checksum_bytes)
    return damaged();
  if (!strip_checksum(record_key(session, sequence), stored))
    return damaged();
  // What follows can only fail for a value that was never sealed by seal_record().
  if (stored[0] != 'R' || at<std::uint8_t>(stored, 1) != value_version || at<std::uint16_t>(stored, 2) != 0
      || at<std::uint32_t>(stored, 4) != stored.size() - record_header_bytes)
    return damaged();
  const auto body = stored.substr(record_header_bytes);
  auto record =
    journal_record::parse(std::as_bytes(std::span(body)), {}, {.bytes = journal::max_record_bytes});
  if (!record)
    return fail(errc::corrupt, "a record is not a letter");
  static const auto kinds = capnp::Schema::from<schema::Record>().getUnionFields().size();
  if (static_cast<unsigned>(record->read().which()) >= kinds)
    return fail(errc::unsupported, "a record was written by a newer version of godwit");
  return placed_record{sequence, at<std::uint64_t>(stored, 8), std::move(*record)};
}

std::string seal_head(const journal_head& head) {
  std::string value;
  value.reserve(head_header_bytes + head.tenant.value.size() + head.owner.value.size() + checksum_bytes);
  put(value, 'H');
  put(value, value_version);
  put(value, static_cast<std::uint8_t>(head.running));
  put(value, static_cast<std::uint8_t>(head.tenant.value.size()));
  put(value, static_cast<std::uint8_t>(head.owner.value.size()));
  value.append(3, '\0');
  put(value, head.sequence);
  put(value, head.epoch);
  value += head.tenant.value;
  value += head.owner.value;
  put(value, checksum(head.session.value, value));
  return value;
}

result<journal_head> open_head(const session_id& session, std::string_view stored) {
  const auto damaged = [] { return fail(errc::corrupt, "a head does not check"); };
  if (stored.size() < head_header_bytes + checksum_bytes
      || stored.size() > head_header_bytes + 2 * max_journal_name_bytes + checksum_bytes)
    return damaged();
  if (!strip_checksum(session.value, stored))
    return damaged();
  const auto running = at<std::uint8_t>(stored, 2);
  const std::size_t tenant = at<std::uint8_t>(stored, 3);
  const std::size_t owner = at<std::uint8_t>(stored, 4);
  if (stored[0] != 'H' || at<std::uint8_t>(stored, 1) != value_version || running > 1
      || stored.substr(5, 3) != std::string_view("\0\0\0", 3)
      || stored.size() != head_header_bytes + tenant + owner)
    return damaged();
  journal_head head;
  head.session = session;
  head.tenant = tenant_id(std::string(stored.substr(head_header_bytes, tenant)));
  head.owner = node_name(std::string(stored.substr(head_header_bytes + tenant, owner)));
  head.sequence = at<std::uint64_t>(stored, 8);
  head.epoch = at<std::uint64_t>(stored, 16);
  head.running = running == 1;
  return head;
}

} // namespace godwit::journal_codec
