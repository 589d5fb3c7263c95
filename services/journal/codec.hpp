#pragma once

#include "actors/session/journal.hpp"

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace godwit::journal_codec {

// How journals are stored in RocksDB. Every value carries its version, its length and an XXH3-64 checksum
// over all of it, seeded by a hash of its key, so that a value at the wrong place does not check either.
// Numbers are little-endian in values and big-endian in keys, so that keys sort by them.

/// Of keys and values together; stored once in the journal. A program refuses a higher one.
inline constexpr std::uint32_t format_version = 1;

/// Key of a record: the session's length in one byte, its bytes, then the sequence.
std::string record_key(const session_id& session, sequence_number sequence);

/// The sequence in a record's key. @returns nothing if the key is not one of this session's
std::optional<sequence_number> sequence_of(const session_id& session, std::string_view key);

/// A record as stored: 'R', version, two zero bytes, u32 length, u64 epoch, the letter's bytes, u64 checksum.
std::string seal_record(
  const session_id& session, sequence_number sequence, epoch_t epoch, const journal_record& record);

/// Checks and reads a stored record.
/// @returns `corrupt`, or `unsupported` for a whole record of a kind that this version does not know
result<placed_record> open_record(
  const session_id& session, sequence_number sequence, std::string_view stored);

/// A head as stored: 'H', version, running, lengths of tenant and owner in one byte each, three zero bytes,
/// u64 sequence, u64 epoch, tenant, owner, u64 checksum. Its key is the session's name.
std::string seal_head(const journal_head& head);

/// Checks and reads a stored head. @returns `corrupt`
result<journal_head> open_head(const session_id& session, std::string_view stored);

} // namespace godwit::journal_codec
