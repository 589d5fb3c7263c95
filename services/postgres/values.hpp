#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace godwit::postgres {

// Values in PostgreSQL's binary form: big-endian numbers, and one-dimensional arrays as array_send() of the
// server's src/backend/utils/adt/arrayfuncs.c writes them.

/// Object ids of the types that are used, from the server's pg_type.dat.
enum class type : std::uint32_t {
  boolean = 16,
  bytea = 17,
  int8 = 20,
  text = 25,
  booleans = 1000,
  byteas = 1001,
  texts = 1009,
  int8s = 1016,
};

/// A value for a statement.
struct parameter {
  type of = type::text;
  std::string bytes;
};

parameter value(std::int64_t number);
parameter value(std::string_view bytes); ///< a bytea
parameter text(std::string_view words);  ///< without zero bytes

parameter array(std::span<const std::int64_t> numbers);
parameter array(std::span<const std::string_view> strings);
/// Without a value an element is null.
parameter array(std::span<const std::optional<std::string_view>> strings);
parameter array(std::span<const std::optional<bool>> truths);

/// Texts without zero bytes.
parameter text_array(std::span<const std::string> words);

/// A field of a row; nothing is null.
using field = std::optional<std::string_view>;

/// @returns nothing if the field is null or has another size
std::optional<std::int64_t> number_of(field from);
std::optional<bool> truth_of(field from);
/// Of an array of texts with one dimension or no element. @returns nothing also if it has a null or more than
/// `most` elements
std::optional<std::vector<std::string>> texts_of(field from, std::size_t most);

} // namespace godwit::postgres
