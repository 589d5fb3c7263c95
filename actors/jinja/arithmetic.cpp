#include "actors/jinja/operators.hpp"

#include "actors/jinja/printing.hpp"

#include <cmath>
#include <limits>

namespace godwit::jinja {

namespace {

tl::unexpected<fault> overflow() {
  return stop("an integer does not fit into 64 bits");
}

/// Whether a double holds the integer.
bool exact(std::int64_t i) {
  return i >= -(std::int64_t{1} << 53) && i <= (std::int64_t{1} << 53);
}

outcome<value> integer_power(std::int64_t base, std::int64_t exponent) {
  std::int64_t out = 1;
  // Squaring ends within 63 rounds for every base but -1, 0 and 1, which never overflow.
  while (exponent > 0) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(out, base, &out))
      return overflow();
    exponent >>= 1;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base))
      return overflow();
  }
  return out;
}

outcome<value> calculate_integers(operation what, std::int64_t a, std::int64_t b) {
  std::int64_t out = 0;
  switch (what) {
  case operation::add:
    return __builtin_add_overflow(a, b, &out) ? outcome<value>(overflow()) : value(out);
  case operation::subtract:
    return __builtin_sub_overflow(a, b, &out) ? outcome<value>(overflow()) : value(out);
  case operation::multiply:
    return __builtin_mul_overflow(a, b, &out) ? outcome<value>(overflow()) : value(out);
  case operation::divide:
    if (b == 0)
      return stop("division by zero");
    return exact(a) && exact(b)
             ? static_cast<double>(a) / static_cast<double>(b)
             : static_cast<double>(static_cast<long double>(a) / static_cast<long double>(b));
  case operation::floor_divide:
  case operation::modulo: {
    if (b == 0)
      return stop("division by zero");
    if (b == -1) // INT64_MIN has no negative
      return what == operation::modulo                          ? outcome<value>(std::int64_t{0})
             : __builtin_sub_overflow(std::int64_t{0}, a, &out) ? outcome<value>(overflow())
                                                                : value(out);
    // Python rounds towards minus infinity, C++ towards zero.
    const bool adjust = a % b != 0 && (a % b < 0) != (b < 0);
    return what == operation::modulo ? a % b + (adjust ? b : 0) : a / b - (adjust ? 1 : 0);
  }
  case operation::power:
    if (b < 0) {
      if (a == 0)
        return stop("zero cannot be raised to a negative power");
      return std::pow(static_cast<double>(a), static_cast<double>(b));
    }
    return integer_power(a, b);
  }
  return overflow();
}

outcome<value> calculate_floats(operation what, double a, double b) {
  switch (what) {
  case operation::add:
    return a + b;
  case operation::subtract:
    return a - b;
  case operation::multiply:
    return a * b;
  case operation::divide:
    if (b == 0)
      return stop("division by zero");
    return a / b;
  case operation::floor_divide:
  case operation::modulo: {
    if (b == 0)
      return stop("division by zero");
    // CPython's float_divmod: the remainder takes the sign of the divisor.
    double remainder = std::fmod(a, b);
    double quotient = (a - remainder) / b;
    if (remainder != 0) {
      if ((b < 0) != (remainder < 0)) {
        remainder += b;
        quotient -= 1;
      }
    } else {
      remainder = std::copysign(0.0, b);
    }
    if (what == operation::modulo)
      return remainder;
    if (quotient == 0)
      return std::copysign(0.0, a / b);
    const double floored = std::floor(quotient);
    return quotient - floored > 0.5 ? floored + 1 : floored;
  }
  case operation::power:
    if (a == 0 && b < 0)
      return stop("zero cannot be raised to a negative power");
    if (a < 0 && std::isfinite(b) && std::floor(b) != b)
      return stop("a negative number has no real power of a fraction");
    return std::pow(a, b);
  }
  return overflow();
}

/// What `text + other` escapes if one of the two is safe.
std::string part_of_sum(const text& t, bool escaped) {
  return escaped && !t.is_safe() ? escape_html(t.bytes()) : std::string(t.bytes());
}

outcome<value> repeat(heap& memory, const value& what, std::int64_t times) {
  auto& costs = memory.costs();
  const auto count = times < 0 ? std::size_t{0} : static_cast<std::size_t>(times);
  if (const auto* t = as_text(what)) {
    text_builder out(costs);
    out.append(count, t->bytes());
    return memory.make_text(out.finish(), t->is_safe());
  }
  const auto& items = as_list(what)->items;
  std::vector<value> out;
  for (std::size_t i = 0; i < count && !items.empty(); ++i) {
    if (!costs.spend(items.size()) || !costs.has_room((out.size() + items.size()) * heap::element_bytes))
      break;
    out.insert(out.end(), items.begin(), items.end());
  }
  return memory.make_list(std::move(out), as_list(what)->kind);
}

bool is_repeatable(const value& v) {
  const auto* l = as_list(v);
  return as_text(v) || (l && (l->kind == list::sort::list || l->kind == list::sort::tuple));
}

std::string_view symbol_of(operation what) {
  switch (what) {
  case operation::add:
    return "+";
  case operation::subtract:
    return "-";
  case operation::multiply:
    return "*";
  case operation::divide:
    return "/";
  case operation::floor_divide:
    return "//";
  case operation::modulo:
    return "%";
  case operation::power:
    return "**";
  }
  return "?";
}

} // namespace

outcome<value> calculate(heap& memory, operation what, const value& left, const value& right) {
  if (const auto *a = as_text(left), *b = as_text(right); a && b && what == operation::add) {
    const bool safe = a->is_safe() || b->is_safe();
    if (!memory.costs().has_room(a->bytes().size() + b->bytes().size()))
      return value(none{});
    auto sum = part_of_sum(*a, safe);
    return memory.make_text(std::move(sum += part_of_sum(*b, safe)), safe);
  }
  if (const auto* form = as_text(left); form && what == operation::modulo)
    return format_percent(memory, *form, right);

  if (const auto a = as_integer(left), b = as_integer(right); a && b)
    return calculate_integers(what, *a, *b);
  if (const auto a = as_number(left), b = as_number(right); a && b)
    return calculate_floats(what, *a, *b);

  if (what == operation::add && is_repeatable(left) && is_repeatable(right)) {
    const auto *a = as_list(left), *b = as_list(right);
    if (a && b && a->kind == b->kind) {
      auto items = a->items;
      items.insert(items.end(), b->items.begin(), b->items.end());
      return memory.make_list(std::move(items), a->kind);
    }
  }
  if (what == operation::multiply) {
    if (const auto times = as_integer(right); times && is_repeatable(left))
      return repeat(memory, left, *times);
    if (const auto times = as_integer(left); times && is_repeatable(right))
      return repeat(memory, right, *times);
  }

  if (is_undefined(left))
    return undefined_fault(left);
  if (is_undefined(right))
    return undefined_fault(right);
  return stop("'" + std::string(symbol_of(what)) + "' is not possible between '"
              + std::string(type_name(left)) + "' and '" + std::string(type_name(right)) + "'");
}

outcome<value> negate(const value& v) {
  if (const auto i = as_integer(v)) {
    if (*i == std::numeric_limits<std::int64_t>::min())
      return overflow();
    return -*i;
  }
  if (const auto* d = std::get_if<double>(&v))
    return -*d;
  if (is_undefined(v))
    return undefined_fault(v);
  return stop("'-' is not possible for '" + std::string(type_name(v)) + "'");
}

outcome<value> plus(const value& v) {
  if (const auto i = as_integer(v))
    return *i;
  if (std::holds_alternative<double>(v))
    return v;
  if (is_undefined(v))
    return undefined_fault(v);
  return stop("'+' is not possible for '" + std::string(type_name(v)) + "'");
}

} // namespace godwit::jinja
