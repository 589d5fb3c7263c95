#include "services/gateway/traceparent.hpp"

#include "services/http/text.hpp"

#include <algorithm>
#include <charconv>
#include <optional>

namespace godwit {

namespace {

// version "-" trace id "-" span "-" flags
constexpr std::size_t id_at = 3;
constexpr std::size_t half = 16;
constexpr std::size_t span_at = 36;
constexpr std::size_t flags_at = 53;
constexpr std::size_t whole = 55;

/// Lower-case hexadecimal digits and nothing else.
std::optional<std::uint64_t> hex(std::string_view digits) {
  if (!std::ranges::all_of(digits, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }))
    return std::nullopt;
  std::uint64_t out = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), out, 16);
  return out;
}

} // namespace

trace_context parse_traceparent(std::string_view value) {
  if (value.size() < whole || value[2] != '-' || value[span_at - 1] != '-' || value[flags_at - 1] != '-')
    return {};
  const auto version = hex(value.substr(0, 2));
  const auto high = hex(value.substr(id_at, half));
  const auto low = hex(value.substr(id_at + half, half));
  const auto span = hex(value.substr(span_at, half));
  const auto flags = hex(value.substr(flags_at, 2));
  if (!version || !high || !low || !span || !flags || *version == 0xff || *span == 0)
    return {};
  // Later versions may append fields; of their flags only the first is known.
  if (*version == 0 ? value.size() != whole : value.size() > whole && value[whole] != '-')
    return {};
  const auto known = *version == 0 ? 0xffU : 1U;
  const trace_context out{*high, *low, *span, static_cast<std::uint16_t>(*flags & known)};
  return out.known() ? out : trace_context{};
}

trace_context trace_of(const http::request& request) {
  const auto same = [](const auto& field) { return http::same_token(field.first, "traceparent"); };
  if (std::ranges::count_if(request.fields, same) != 1)
    return {};
  return parse_traceparent(std::ranges::find_if(request.fields, same)->second);
}

} // namespace godwit
