#include "actors/jinja/format_number.hpp"

#include "actors/jinja/printing.hpp"
#include "actors/text/utf8.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace godwit::jinja {

namespace {

std::string repeated(std::string_view one, std::int64_t count) {
  std::string out;
  for (; count > 0; --count)
    out += one;
  return out;
}

/// Puts a sign (and prefix) and a body into the width.
std::string fill(std::string_view head, std::string_view body, const number_format& how, char natural) {
  const auto size = static_cast<std::int64_t>(utf8::length(head) + utf8::length(body));
  const auto missing = std::max<std::int64_t>(how.width - size, 0);
  const char align = how.align ? how.align : natural;
  std::string out;
  switch (align) {
  case '<':
    return out.append(head).append(body).append(repeated(how.fill, missing));
  case '^':
    return out.append(repeated(how.fill, missing / 2))
      .append(head)
      .append(body)
      .append(repeated(how.fill, missing - missing / 2));
  case '=':
    return out.append(head).append(repeated(how.fill, missing)).append(body);
  default:
    return out.append(repeated(how.fill, missing)).append(head).append(body);
  }
}

std::string digits_of(std::uint64_t magnitude, unsigned base, bool capital) {
  const std::string_view digits = capital ? "0123456789ABCDEF" : "0123456789abcdef";
  std::string out;
  do {
    out.push_back(digits[magnitude % base]);
    magnitude /= base;
  } while (magnitude > 0);
  std::ranges::reverse(out);
  return out;
}

/// Separators between groups of digits; zeros that fill the width are grouped too.
std::string grouped(std::string digits, char separator, std::size_t every, std::int64_t width, bool zeros) {
  if (separator == 0)
    return digits;
  const auto size_with = [&](std::size_t n) { return static_cast<std::int64_t>(n + (n - 1) / every); };
  while (zeros && size_with(digits.size()) < width)
    digits.insert(digits.begin(), '0');
  std::string out;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % every == 0)
      out.push_back(separator);
    out.push_back(digits[i]);
  }
  return out;
}

std::string head_of(bool negative, const number_format& how) {
  return negative ? "-" : how.sign == '-' ? "" : std::string(1, how.sign);
}

std::string printed_float(char type, int precision, bool alternate, double number) {
  const std::string form = std::string("%") + (alternate ? "#" : "") + ".*" + type;
  const auto size = std::snprintf(nullptr, 0, form.c_str(), precision, number);
  std::string out(static_cast<std::size_t>(size) + 1, 0);
  std::snprintf(out.data(), out.size(), form.c_str(), precision, number);
  out.pop_back();
  return out;
}

} // namespace

std::string format_integer(std::int64_t number, const number_format& how) {
  const bool negative = number < 0;
  const auto magnitude =
    negative ? ~static_cast<std::uint64_t>(number) + 1 : static_cast<std::uint64_t>(number);
  auto head = head_of(negative, how);
  unsigned base = 10;
  if (how.type == 'x' || how.type == 'X')
    base = 16;
  else if (how.type == 'o')
    base = 8;
  else if (how.type == 'b')
    base = 2;
  if (how.alternate && base != 10)
    head += std::string("0") + how.type;
  auto digits = digits_of(magnitude, base, how.type == 'X');
  if (how.precision >= 0) // of `%`: at least so many digits
    digits.insert(0, repeated("0", how.precision - static_cast<std::int64_t>(digits.size())));
  const bool zeros = how.align == '=' && how.fill == "0";
  digits = grouped(std::move(digits), how.group, base == 10 ? 3 : 4,
    how.width - static_cast<std::int64_t>(head.size()), zeros);
  return fill(head, digits, how, '>');
}

std::string format_float(double number, const number_format& how) {
  const bool negative = std::signbit(number) && !std::isnan(number);
  const auto head = head_of(negative, how);
  const double magnitude = std::fabs(number);
  std::string body;
  if (!std::isfinite(number)) {
    body = std::isnan(number) ? "nan" : "inf";
    if (how.type == 'E' || how.type == 'F' || how.type == 'G')
      body = std::isnan(number) ? "NAN" : "INF";
    if (how.type == '%')
      body += '%';
    return fill(head, body, how, '>');
  }
  const int precision = how.precision < 0 ? 6 : how.precision;
  switch (how.type) {
  case 0:
    // The shortest form, or %g that keeps one digit behind the point.
    if (how.precision < 0) {
      body = float_repr(magnitude);
    } else {
      body = printed_float('g', std::max(how.precision, 1), how.alternate, magnitude);
      if (body.find_first_of(".e") == std::string::npos) {
        if (static_cast<int>(body.size()) < how.precision)
          body += ".0";
        else
          body = printed_float('e', std::max(how.precision, 1) - 1, how.alternate, magnitude);
      }
    }
    break;
  case '%':
    body = printed_float('f', precision, how.alternate, magnitude * 100) + "%";
    break;
  case 'g':
  case 'G':
    body = printed_float(how.type, std::max(precision, 1), how.alternate, magnitude);
    break;
  default:
    body = printed_float(how.type, precision, how.alternate, magnitude);
  }
  if (how.group != 0) {
    const auto end = std::min(body.find_first_not_of("0123456789"), body.size());
    const auto rest = body.substr(end);
    const bool zeros = how.align == '=' && how.fill == "0";
    body = grouped(body.substr(0, end), how.group, 3,
             how.width - static_cast<std::int64_t>(head.size() + rest.size()), zeros)
           + rest;
  }
  return fill(head, body, how, '>');
}

std::string format_text(std::string_view bytes, const number_format& how) {
  if (how.precision >= 0) {
    std::size_t end = 0;
    for (int i = 0; i < how.precision && end < bytes.size(); ++i)
      end += utf8::first(bytes.substr(end)).size;
    bytes = bytes.substr(0, end);
  }
  return fill("", bytes, how, '<');
}

} // namespace godwit::jinja
