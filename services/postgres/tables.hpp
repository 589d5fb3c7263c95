#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace godwit::postgres {

/// Tables of one part of the program, which change from version to version. They stand in a schema that parts
/// share, with a table of one row that says which version they have.
struct versioned_tables {
  std::string what{"the tables"}; ///< as messages name them
  std::string version_table;      ///< without the schema
  std::int64_t version = 1;       ///< that this program works with; it refuses a higher one
  /// What makes version `to` from the one before. Also writes `to` into the version table.
  std::function<std::vector<std::string>(std::int64_t to, std::string_view schema)> steps;
};

/// A text of SQL with the schema's name for each '@'.
std::string in_schema(std::string_view text, std::string_view schema);

/// Whether text can stand in SQL as the name of a schema without quotes: letters, digits, '_', at most 40.
bool good_schema_name(std::string_view name);

/// The key of the advisory lock under which migrations of a schema run.
std::int64_t migration_lock(std::string_view schema);

} // namespace godwit::postgres
