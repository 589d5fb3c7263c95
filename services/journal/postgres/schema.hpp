#pragma once

#include "services/postgres/tables.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace godwit::postgres {

/// Of the tables in the database. A program refuses a higher one.
inline constexpr std::int64_t schema_version = 1;

/// What is prepared on every connection, in the order of statement_texts().
enum class query : std::uint8_t {
  look,          ///< heads of sessions, and whose the record at a place is
  change,        ///< moves heads whose sequence and epoch are the expected ones, and adds records
  open,          ///< adds heads that were not there, and their records
  erase_heads,   ///< waits for writers of the sessions, so it comes before
  erase_records, ///< which as a statement of its own sees what they wrote
  touch,         ///< waits for writers of the sessions
  barrier,       ///< makes the commit wait for all that was written before, on the standbys too
  head,
  read,
  list,
};
inline constexpr std::size_t query_count = 10;

/// The name of a prepared statement.
const char* name_of(query which);

/// Their texts for tables in `schema`, which must be a good name.
std::array<std::string, query_count> statement_texts(std::string_view schema);

/// What makes version `to` of the tables from the one before.
std::vector<std::string> migration(std::int64_t to, std::string_view schema);

/// The journal's tables, and what is prepared on its connections: names and texts.
versioned_tables journal_tables();
std::vector<std::pair<std::string, std::string>> journal_statements(std::string_view schema);

} // namespace godwit::postgres
