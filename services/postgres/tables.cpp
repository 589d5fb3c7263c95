#include "services/postgres/tables.hpp"

#include <algorithm>

namespace godwit::postgres {

std::string in_schema(std::string_view text, std::string_view schema) {
  std::string out;
  for (const char c : text)
    if (c == '@')
      out += schema;
    else
      out += c;
  return out;
}

bool good_schema_name(std::string_view name) {
  const auto good = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
  return !name.empty() && name.size() <= 40 && std::all_of(name.begin(), name.end(), good)
         && (name.front() < '0' || name.front() > '9') && !name.starts_with("pg_");
}

std::int64_t migration_lock(std::string_view schema) {
  // FNV-1a; any number does that all versions of this program agree upon.
  std::uint64_t hash = 14695981039346656037ULL;
  const auto text = "godwit journal " + std::string(schema);
  for (const char c : text)
    hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return static_cast<std::int64_t>(hash);
}

} // namespace godwit::postgres
