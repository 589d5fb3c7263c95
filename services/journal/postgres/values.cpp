#include "services/journal/postgres/values.hpp"

#include <bit>
#include <cstring>

namespace godwit::postgres {

namespace {

static_assert(std::endian::native == std::endian::little, "numbers are swapped without asking");

void put(std::string& target, std::uint32_t number) {
  const auto swapped = __builtin_bswap32(number);
  target.append(reinterpret_cast<const char*>(&swapped), sizeof swapped);
}

void put(std::string& target, std::int64_t number) {
  const auto swapped = __builtin_bswap64(static_cast<std::uint64_t>(number));
  target.append(reinterpret_cast<const char*>(&swapped), sizeof swapped);
}

constexpr std::uint32_t null_length = 0xFFFFFFFF;

/// Head of an array with one dimension that counts from 1, or of one without elements.
std::string array_head(type element, std::size_t count, bool nulls) {
  std::string out;
  put(out, std::uint32_t{count == 0 ? 0U : 1U});
  put(out, std::uint32_t{nulls ? 1U : 0U});
  put(out, static_cast<std::uint32_t>(element));
  if (count > 0) {
    put(out, static_cast<std::uint32_t>(count));
    put(out, std::uint32_t{1});
  }
  return out;
}

void put_element(std::string& target, std::string_view bytes) {
  put(target, static_cast<std::uint32_t>(bytes.size()));
  target += bytes;
}

} // namespace

parameter value(std::int64_t number) {
  parameter out{type::int8, {}};
  put(out.bytes, number);
  return out;
}

parameter value(std::string_view bytes) {
  return {type::bytea, std::string(bytes)};
}

parameter text(std::string_view words) {
  return {type::text, std::string(words)};
}

parameter array(std::span<const std::int64_t> numbers) {
  parameter out{type::int8s, array_head(type::int8, numbers.size(), false)};
  for (const auto number : numbers) {
    put(out.bytes, std::uint32_t{sizeof number});
    put(out.bytes, number);
  }
  return out;
}

parameter array(std::span<const std::string_view> strings) {
  parameter out{type::byteas, array_head(type::bytea, strings.size(), false)};
  for (const auto one : strings)
    put_element(out.bytes, one);
  return out;
}

parameter array(std::span<const std::optional<std::string_view>> strings) {
  parameter out{type::byteas, array_head(type::bytea, strings.size(), true)};
  for (const auto& one : strings)
    if (one)
      put_element(out.bytes, *one);
    else
      put(out.bytes, null_length);
  return out;
}

parameter array(std::span<const std::optional<bool>> truths) {
  parameter out{type::booleans, array_head(type::boolean, truths.size(), true)};
  for (const auto one : truths)
    if (one)
      put_element(out.bytes, std::string_view(*one ? "\1" : "\0", 1));
    else
      put(out.bytes, null_length);
  return out;
}

std::optional<std::int64_t> number_of(field from) {
  std::uint64_t number = 0;
  if (!from || from->size() != sizeof number)
    return std::nullopt;
  std::memcpy(&number, from->data(), sizeof number);
  return static_cast<std::int64_t>(__builtin_bswap64(number));
}

std::optional<bool> truth_of(field from) {
  if (!from || from->size() != 1 || static_cast<unsigned char>(from->front()) > 1)
    return std::nullopt;
  return from->front() == 1;
}

} // namespace godwit::postgres
