#include "actors/jinja/filters.hpp"

#include "actors/jinja/access.hpp"
#include "actors/jinja/operators.hpp"
#include "actors/jinja/printing.hpp"
#include "actors/text/letters.hpp"
#include "actors/text/utf8.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace godwit::jinja {

namespace {

/// Python's rule for underscores in numbers: between two digits only. @returns the digits, or nothing
std::optional<std::string> without_underscores(std::string_view bytes) {
  std::string out;
  const auto digit = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] != '_') {
      out.push_back(bytes[i]);
    } else if (i == 0 || i + 1 == bytes.size() || !digit(bytes[i - 1]) || !digit(bytes[i + 1])) {
      return std::nullopt;
    }
  }
  return out;
}

enum class parse_fault { malformed, overflow };

/// int(text, base).
tl::expected<std::int64_t, parse_fault> parse_integer(budget& costs, std::string_view bytes, int base) {
  bytes = strip(costs, bytes, std::nullopt, true, true);
  const bool negative = bytes.starts_with('-');
  if (negative || bytes.starts_with('+'))
    bytes.remove_prefix(1);
  const auto prefixed = [&](char letter) {
    return bytes.size() > 2 && bytes[0] == '0'
           && std::tolower(static_cast<unsigned char>(bytes[1])) == letter;
  };
  if ((base == 16 && prefixed('x')) || (base == 8 && prefixed('o')) || (base == 2 && prefixed('b'))) {
    bytes.remove_prefix(2);
    if (bytes.starts_with('_'))
      bytes.remove_prefix(1);
  }
  const auto digits = without_underscores(bytes);
  if (!digits || digits->empty())
    return tl::unexpected(parse_fault::malformed);
  std::uint64_t magnitude = 0;
  const auto end = std::from_chars(digits->data(), digits->data() + digits->size(), magnitude, base);
  if (end.ptr != digits->data() + digits->size() || end.ec == std::errc::invalid_argument)
    return tl::unexpected(parse_fault::malformed);
  const auto most = static_cast<std::uint64_t>(INT64_MAX) + (negative ? 1 : 0);
  if (end.ec != std::errc{} || magnitude > most)
    return tl::unexpected(parse_fault::overflow);
  return static_cast<std::int64_t>(negative ? ~magnitude + 1 : magnitude);
}

/// float(text).
std::optional<double> parse_float(budget& costs, std::string_view bytes) {
  const auto plain = without_underscores(strip(costs, bytes, std::nullopt, true, true));
  if (!plain || plain->empty())
    return std::nullopt;
  std::string_view rest = *plain;
  const bool negative = rest.starts_with('-');
  if (negative || rest.starts_with('+'))
    rest.remove_prefix(1);
  const auto word = letters::lower(rest);
  if (word == "inf" || word == "infinity")
    return negative ? -INFINITY : INFINITY;
  if (word == "nan")
    return NAN;
  const bool starts = !rest.empty() && (rest[0] == '.' || (rest[0] >= '0' && rest[0] <= '9'));
  if (!starts || rest.find_first_not_of("0123456789.eE+-") != std::string_view::npos)
    return std::nullopt;
  double out = 0;
  const auto end = std::from_chars(rest.data(), rest.data() + rest.size(), out);
  if (end.ptr != rest.data() + rest.size() || end.ec == std::errc::invalid_argument)
    return std::nullopt;
  if (end.ec == std::errc::result_out_of_range)
    out = std::strtod(std::string(rest).c_str(), nullptr); // 0 or infinity, as Python has it
  return negative ? -out : out;
}

/// int(number); infinities and what is beyond 64 bits fault.
outcome<value> truncate(double d) {
  if (std::isnan(d) || std::isinf(d) || std::fabs(d) >= 9.2e18)
    return stop("a float does not fit into an integer of 64 bits");
  return static_cast<std::int64_t>(d);
}

outcome<value> to_integer(heap& memory, const value& input, arguments& given) {
  JINJA_TRY(const auto p, parameters::bind("int", given, {"default", "base"}));
  JINJA_TRY(const auto base, p.integer(1, 10));
  const auto otherwise = p[0] ? *p[0] : value(std::int64_t{0});
  if (is_undefined(input))
    return undefined_fault(input);
  if (const auto i = as_integer(input))
    return *i;
  if (const auto* d = std::get_if<double>(&input))
    return std::isnan(*d) ? otherwise : truncate(*d);
  const auto* t = as_text(input);
  if (!t || base < 2 || base > 36)
    return otherwise;
  memory.costs().spend_bytes(t->bytes().size());
  if (const auto parsed = parse_integer(memory.costs(), t->bytes(), static_cast<int>(base)))
    return *parsed;
  else if (parsed.error() == parse_fault::overflow)
    return stop("an integer does not fit into 64 bits");
  const auto real = parse_float(memory.costs(), t->bytes());
  return real && !std::isnan(*real) ? truncate(*real) : otherwise;
}

outcome<value> to_float(heap& memory, const value& input, arguments& given) {
  JINJA_TRY(const auto p, parameters::bind("float", given, {"default"}));
  const auto otherwise = p[0] ? *p[0] : value(0.0);
  if (is_undefined(input))
    return undefined_fault(input);
  if (const auto number = as_number(input))
    return *number;
  if (const auto* t = as_text(input)) {
    memory.costs().spend_bytes(t->bytes().size());
    if (const auto parsed = parse_float(memory.costs(), t->bytes()))
      return *parsed;
  }
  return otherwise;
}

outcome<value> absolute(heap&, const value& input, arguments& given) {
  JINJA_CHECK(parameters::bind("abs", given, {}));
  if (const auto* d = std::get_if<double>(&input))
    return std::fabs(*d);
  const auto i = as_integer(input);
  return i && *i < 0 ? negate(input) : plus(input);
}

/// round(number, digits): correctly rounded from the exact value, ties to even.
double round_to(double number, std::int64_t digits) {
  if (!std::isfinite(number) || digits > 308)
    return number;
  if (digits < 0) {
    if (digits < -308)
      return std::copysign(0.0, number);
    const double scale = std::pow(10.0, static_cast<double>(-digits));
    return std::nearbyint(number / scale) * scale;
  }
  std::array<char, 700> buffer{};
  std::snprintf(buffer.data(), buffer.size(), "%.*f", static_cast<int>(digits), number);
  return std::strtod(buffer.data(), nullptr);
}

outcome<value> round(heap&, const value& input, arguments& given) {
  JINJA_TRY(const auto p, parameters::bind("round", given, {"precision", "method"}));
  JINJA_TRY(const auto digits, p.integer(0, 0));
  JINJA_TRY(const auto method, p.string(1));
  const auto how = method.value_or("common");
  if (how != "common" && how != "ceil" && how != "floor")
    return stop("method must be common, ceil or floor");
  const auto number = as_number(input);
  if (!number)
    return is_undefined(input) ? outcome<value>(undefined_fault(input))
                               : stop("'" + std::string(type_name(input)) + "' cannot be rounded");
  if (how == "common") {
    const auto integer = as_integer(input);
    if (!integer)
      return round_to(*number, digits);
    if (digits >= 0)
      return *integer;
    return truncate(round_to(*number, digits));
  }
  const double scale = std::pow(10.0, static_cast<double>(digits));
  return (how == "ceil" ? std::ceil(*number * scale) : std::floor(*number * scale)) / scale;
}

outcome<value> sum(heap& memory, const value& input, arguments& given) {
  JINJA_TRY(const auto p, parameters::bind("sum", given, {"attribute", "start"}));
  JINJA_TRY(const auto path, attribute_path::parse(memory, p[0] ? *p[0] : value(none{})));
  JINJA_TRY(const auto items, items_of(memory, input));
  auto total = p[1] ? *p[1] : value(std::int64_t{0});
  if (as_text(total))
    return stop("sum() can't sum strings");
  for (const auto& item : items) {
    memory.costs().spend();
    JINJA_TRY(const auto part, path.follow(memory, item));
    JINJA_TRY(total, calculate(memory, operation::add, total, part));
    JINJA_CHECK(memory.costs().check());
  }
  return total;
}

} // namespace

std::span<const method> number_filters() {
  static constexpr auto table = std::to_array<method>({
    {"abs", absolute},
    {"float", to_float},
    {"int", to_integer},
    {"round", round},
    {"sum", sum},
  });
  return table;
}

} // namespace godwit::jinja
