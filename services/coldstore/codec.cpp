#include "services/coldstore/codec.hpp"

#include "actors/cache/page_hashing.hpp"
#include "messages/check.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>

namespace godwit::cold_codec {

namespace {

static_assert(std::endian::native == std::endian::little, "values are written as they lie in memory");

constexpr std::string_view magic = "GWKV";
constexpr std::uint16_t record_version = 1;
constexpr std::uint8_t note_version = 1;

// Places in a record's header.
constexpr std::size_t identity_at = 8;
constexpr std::size_t parent_at = 24;
constexpr std::size_t model_at = 40;
constexpr std::size_t profile_at = 56;
constexpr std::size_t numbers_at = 72;
constexpr std::size_t tenant_length_at = 104;
constexpr std::size_t checksum_at = 112;
constexpr std::size_t checksum_bytes = 16;
constexpr std::size_t fixed_bytes = checksum_at + checksum_bytes;

constexpr std::size_t note_fixed_bytes = 56;
constexpr std::size_t note_checksum_bytes = 8;

template <class T>
void put(std::string& target, T value) {
  target.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void put(std::string& target, std::uint64_t low, std::uint64_t high) {
  put(target, low);
  put(target, high);
}

template <class T>
T at(std::string_view bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

template <class Pair>
Pair pair_at(std::string_view bytes, std::size_t offset) {
  return {at<std::uint64_t>(bytes, offset), at<std::uint64_t>(bytes, offset + 8)};
}

/// Of a record in two parts; the checksum's own place counts as zeros.
XXH128_hash_t record_checksum(std::string_view head, std::string_view pages) {
  constexpr std::array<char, checksum_bytes> zeros{};
  XXH3_state_t state;
  XXH3_128bits_reset(&state);
  XXH3_128bits_update(&state, head.data(), checksum_at);
  XXH3_128bits_update(&state, zeros.data(), zeros.size());
  XXH3_128bits_update(&state, head.data() + fixed_bytes, head.size() - fixed_bytes);
  XXH3_128bits_update(&state, pages.data(), pages.size());
  return XXH3_128bits_digest(&state);
}

std::uint64_t note_checksum(const block_identity& identity, std::string_view body) {
  const auto key = note_key(identity);
  return XXH3_64bits_withSeed(body.data(), body.size(), XXH3_64bits(key.data(), key.size()));
}

} // namespace

digest digest_of(std::string_view text) {
  if (text.empty())
    return {};
  const auto value = XXH3_128bits(text.data(), text.size());
  return {value.low64, value.high64};
}

std::string note_key(const block_identity& identity) {
  std::string key;
  key.reserve(1 + sizeof identity);
  key.push_back(note_kind);
  put(key, identity.low, identity.high);
  return key;
}

std::optional<block_identity> identity_of(std::string_view note_key) {
  if (note_key.size() != 1 + sizeof(block_identity) || note_key[0] != note_kind)
    return std::nullopt;
  return pair_at<block_identity>(note_key, 1);
}

std::string record_key(std::uint32_t place, const block_identity& identity) {
  std::string key;
  key.reserve(5 + sizeof identity);
  key.push_back(record_kind);
  put(key, __builtin_bswap32(place));
  put(key, identity.low, identity.high);
  return key;
}

std::size_t header_bytes(std::string_view tenant) {
  return fixed_bytes + (tenant.size() + 7) / 8 * 8;
}

std::string seal_header(const header& of, std::span<const std::byte> pages) {
  const auto bytes = header_bytes(of.tenant);
  GODWIT_CHECK(of.tenant.size() <= max_tenant_bytes && bytes + pages.size() <= max_record_bytes);
  std::string head;
  head.reserve(bytes);
  head += magic;
  put(head, record_version);
  put(head, static_cast<std::uint16_t>(bytes));
  put(head, of.identity.low, of.identity.high);
  put(head, of.parent.low, of.parent.high);
  put(head, of.model.low, of.model.high);
  put(head, of.profile.low, of.profile.high);
  put(head, of.shape.layers);
  put(head, of.shape.kv_heads);
  put(head, of.shape.head_dim);
  put(head, static_cast<std::uint32_t>(of.shape.type));
  put(head, of.layout_version);
  put(head, of.block_tokens);
  put(head, of.depth);
  put(head, static_cast<std::uint32_t>(pages.size()));
  put(head, std::uint64_t{of.tenant.size()});
  head.append(checksum_bytes, '\0');
  head += of.tenant;
  head.resize(bytes, '\0');
  const auto sum = record_checksum(head, {reinterpret_cast<const char*>(pages.data()), pages.size()});
  std::memcpy(head.data() + checksum_at, &sum.low64, 8);
  std::memcpy(head.data() + checksum_at + 8, &sum.high64, 8);
  return head;
}

result<record> open_record(const block_identity& identity, std::string_view stored) {
  const auto damaged = [] { return fail(errc::corrupt, "a block's record does not check"); };
  if (stored.size() < fixed_bytes || stored.size() > max_record_bytes || stored.substr(0, 4) != magic)
    return damaged();
  const std::size_t bytes = at<std::uint16_t>(stored, 6);
  if (bytes < fixed_bytes || bytes > stored.size())
    return damaged();
  const auto head = stored.substr(0, bytes);
  const auto pages = stored.substr(bytes);
  const auto sum = record_checksum(head, pages);
  if (sum.low64 != at<std::uint64_t>(head, checksum_at)
      || sum.high64 != at<std::uint64_t>(head, checksum_at + 8))
    return damaged();
  if (at<std::uint16_t>(head, 4) > record_version)
    return fail(errc::unsupported, "a block was written by a newer version of godwit");
  // What follows can only fail for a value that seal_header() never made, or that stands at a wrong key.
  const auto tenant = at<std::uint64_t>(head, tenant_length_at);
  if (at<std::uint16_t>(head, 4) != record_version || tenant > max_tenant_bytes
      || bytes != fixed_bytes + (tenant + 7) / 8 * 8
      || head.find_first_not_of('\0', fixed_bytes + tenant) != std::string_view::npos
      || pair_at<block_identity>(head, identity_at) != identity
      || at<std::uint32_t>(head, numbers_at + 28) != pages.size()
      || at<std::uint32_t>(head, numbers_at + 12) > 255)
    return damaged();
  record read;
  read.header.identity = identity;
  read.header.parent = pair_at<block_identity>(head, parent_at);
  read.header.model = pair_at<digest>(head, model_at);
  read.header.profile = pair_at<digest>(head, profile_at);
  read.header.shape.layers = at<std::uint32_t>(head, numbers_at);
  read.header.shape.kv_heads = at<std::uint32_t>(head, numbers_at + 4);
  read.header.shape.head_dim = at<std::uint32_t>(head, numbers_at + 8);
  read.header.shape.type = static_cast<kv_type>(at<std::uint32_t>(head, numbers_at + 12));
  read.header.layout_version = at<std::uint32_t>(head, numbers_at + 16);
  read.header.block_tokens = at<std::uint32_t>(head, numbers_at + 20);
  read.header.depth = at<std::uint32_t>(head, numbers_at + 24);
  read.header.tenant = head.substr(fixed_bytes, tenant);
  read.pages = std::as_bytes(std::span(pages));
  return read;
}

std::string seal_note(const note& of) {
  GODWIT_CHECK(of.tenant.size() <= max_tenant_bytes);
  std::string value;
  value.reserve(note_fixed_bytes + of.tenant.size() + note_checksum_bytes);
  value.push_back('N');
  put(value, note_version);
  put(value, of.hits);
  put(value, static_cast<std::uint8_t>(of.tenant.size()));
  put(value, of.depth);
  put(value, of.bytes);
  put(value, of.place);
  put(value, of.worth);
  put(value, of.parent.low, of.parent.high);
  put(value, of.model.low, of.model.high);
  value += of.tenant;
  put(value, note_checksum(of.identity, value));
  return value;
}

result<note> open_note(const block_identity& identity, std::string_view stored) {
  const auto damaged = [] { return fail(errc::corrupt, "a block's note does not check"); };
  if (stored.size() < note_fixed_bytes + note_checksum_bytes
      || stored.size() > note_fixed_bytes + max_tenant_bytes + note_checksum_bytes)
    return damaged();
  const auto body = stored.substr(0, stored.size() - note_checksum_bytes);
  if (note_checksum(identity, body) != at<std::uint64_t>(stored, body.size()))
    return damaged();
  const std::size_t tenant = at<std::uint8_t>(body, 3);
  note read;
  read.worth = at<double>(body, 16);
  read.bytes = at<std::uint32_t>(body, 8);
  if (body[0] != 'N' || at<std::uint8_t>(body, 1) != note_version || body.size() != note_fixed_bytes + tenant
      || !std::isfinite(read.worth) || read.worth < 0 || std::signbit(read.worth) || read.bytes < fixed_bytes
      || read.bytes > max_record_bytes)
    return damaged();
  read.identity = identity;
  read.hits = at<std::uint8_t>(body, 2);
  read.depth = at<std::uint32_t>(body, 4);
  read.place = at<std::uint32_t>(body, 12);
  read.parent = pair_at<block_identity>(body, 24);
  read.model = pair_at<digest>(body, 40);
  read.tenant = body.substr(note_fixed_bytes);
  return read;
}

} // namespace godwit::cold_codec
