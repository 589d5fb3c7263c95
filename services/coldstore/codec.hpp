#pragma once

#include "actors/cache/block_identity.hpp"
#include "messages/result.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace godwit::cold_codec {

// How blocks lie in RocksDB. A block has two values: its record, which is its pages behind a header, and a
// short note of it, so that opening a store reads no pages. Both carry their version and a checksum over all
// of them that a value at the wrong key does not pass. Numbers are little-endian.

/// Of keys and values together; stored once. A program refuses a higher one.
inline constexpr std::uint32_t format_version = 1;
inline constexpr std::size_t max_tenant_bytes = 255;
/// Greatest size of a record: a page larger than any model's, for all heads of all layers.
inline constexpr std::size_t max_record_bytes = std::size_t{1} << 30;

/// 128 bits that stand for a text of any length: a model's fingerprint, a profile.
struct digest {
  std::uint64_t low = 0;
  std::uint64_t high = 0;

  bool operator==(const digest&) const = default;
};

/// XXH3-128 without a secret; all zeros for the empty text.
digest digest_of(std::string_view text);

/// What a record says of its pages.
struct header {
  block_identity identity;
  block_identity parent;
  digest model;   ///< of the fingerprint
  digest profile; ///< of the lossy compression; zeros: exact
  kv_shape shape;
  std::uint32_t layout_version = kv_layout_version;
  std::uint32_t block_tokens = page_tokens;
  /// Blocks before it: its positions start at `depth * block_tokens`.
  std::uint32_t depth = 0;
  std::string tenant;

  bool operator==(const header&) const = default;
};

struct record {
  cold_codec::header header;
  std::span<const std::byte> pages; ///< inside the stored bytes
};

/// What is known of a block without reading it.
struct note {
  block_identity identity;
  block_identity parent;
  digest model;
  std::uint32_t depth = 0;
  std::uint32_t bytes = 0; ///< of the record
  std::uint32_t place = 0; ///< of the record, see record_key()
  std::uint8_t hits = 0;   ///< when it was written
  double worth = 0;        ///< see block_index; when it was written
  std::string tenant;

  bool operator==(const note&) const = default;
};

inline constexpr char record_kind = 'b';
inline constexpr char note_kind = 'n';
/// Key of a block's note: the kind and the identity's bytes.
std::string note_key(const block_identity& identity);
/// @returns nothing if it is not a note's key
std::optional<block_identity> identity_of(std::string_view note_key);
/// Key of its record: the kind, the place big-endian, the identity's bytes. Places count up, so that records
/// lie in the order in which they were written, which is that of texts: a text is read from beginning to end.
std::string record_key(std::uint32_t place, const block_identity& identity);

/// Bytes of a record's header, the tenant's name included.
std::size_t header_bytes(std::string_view tenant);

/// What stands before the pages: 'GWKV', u16 version, u16 bytes of this header, identity, parent, model,
/// profile, u32 layers, KV heads, head size, KV type, layout version, tokens of a block, depth, bytes of
/// pages, u64 length of the tenant's name, u128 checksum (XXH3-128 of header and pages, itself as zeros), the
/// tenant's name, zeros up to a multiple of eight.
std::string seal_header(const header& of, std::span<const std::byte> pages);

/// Checks and reads a stored record. @param identity the one in its key
/// @returns `corrupt`, or `unsupported` for a whole record of a later version
result<record> open_record(const block_identity& identity, std::string_view stored);

/// 'N', u8 version, u8 hits, u8 length of the tenant's name, u32 depth, u32 bytes, u32 place, f64 worth,
/// parent, model, the tenant's name, u64 checksum (XXH3-64 seeded by a hash of the key).
std::string seal_note(const note& of);

/// Checks and reads a stored note. @returns `corrupt`
result<note> open_note(const block_identity& identity, std::string_view stored);

} // namespace godwit::cold_codec
