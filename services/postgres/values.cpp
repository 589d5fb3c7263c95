#include "services/postgres/values.hpp"

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

parameter text_array(std::span<const std::string> words) {
  parameter out{type::texts, array_head(type::text, words.size(), false)};
  for (const auto& one : words)
    put_element(out.bytes, one);
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

std::optional<std::vector<std::string>> texts_of(field from, std::size_t most) {
  if (!from)
    return std::nullopt;
  auto rest = *from;
  const auto number = [&]() -> std::optional<std::uint32_t> {
    std::uint32_t out = 0;
    if (rest.size() < sizeof out)
      return std::nullopt;
    std::memcpy(&out, rest.data(), sizeof out);
    rest.remove_prefix(sizeof out);
    return __builtin_bswap32(out);
  };
  const auto dimensions = number();
  const auto nulls = number();
  const auto element = number();
  if (!dimensions || !nulls || !element || *dimensions > 1
      || *element != static_cast<std::uint32_t>(type::text))
    return std::nullopt;
  std::vector<std::string> out;
  if (*dimensions == 1) {
    const auto count = number();
    if (!count || !number() || *count > most)
      return std::nullopt;
    for (std::uint32_t i = 0; i < *count; ++i) {
      const auto size = number();
      // A null has the length -1.
      if (!size || *size > rest.size())
        return std::nullopt;
      out.emplace_back(rest.substr(0, *size));
      rest.remove_prefix(*size);
    }
  }
  return rest.empty() ? std::optional(std::move(out)) : std::nullopt;
}

} // namespace godwit::postgres
