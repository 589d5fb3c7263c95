#include "actors/jinja/filters.hpp"

#include "actors/jinja/operators.hpp"
#include "actors/jinja/printing.hpp"

#include <algorithm>
#include <array>

namespace godwit::jinja {

namespace {

/// A test of the value alone.
template <bool (*Test)(const value&)>
outcome<bool> simple(heap&, const value& input, arguments& given) {
  JINJA_CHECK(parameters::bind("test", given, {}));
  return Test(input);
}

bool is_defined(const value& v) {
  return !is_undefined(v);
}
bool is_none_value(const value& v) {
  return is_none(v);
}
bool is_boolean(const value& v) {
  return std::holds_alternative<bool>(v);
}
bool is_true(const value& v) {
  return is_boolean(v) && std::get<bool>(v);
}
bool is_false(const value& v) {
  return is_boolean(v) && !std::get<bool>(v);
}
bool is_integer(const value& v) {
  return std::holds_alternative<std::int64_t>(v);
}
bool is_float(const value& v) {
  return std::holds_alternative<double>(v);
}
bool is_number(const value& v) {
  return is_boolean(v) || is_integer(v) || is_float(v);
}
bool is_string(const value& v) {
  return as_text(v) != nullptr;
}
bool is_mapping(const value& v) {
  return as_mapping(v) != nullptr;
}
bool is_callable(const value& v) {
  return as_function(v) || as_loop(v) || is_undefined(v);
}
bool is_escaped(const value& v) {
  return as_text(v) && as_text(v)->is_safe();
}
/// Has a length and can be indexed.
bool is_sequence(const value& v) {
  const auto* l = as_list(v);
  return is_string(v) || is_mapping(v) || is_undefined(v)
         || (l
             && (l->kind == list::sort::list || l->kind == list::sort::tuple
                 || l->kind == list::sort::range));
}

/// A comparison with one argument.
template <comparison How>
outcome<bool> compared(heap& memory, const value& input, arguments& given) {
  JINJA_TRY(const auto p, parameters::bind("test", given, {"/other"}, 1));
  return compare(memory, How, input, *p[0]);
}

outcome<bool> divisible(heap& memory, const value& input, const value& by, std::int64_t remainder) {
  JINJA_TRY(const auto rest, calculate(memory, operation::modulo, input, by));
  return equal(memory.costs(), rest, remainder);
}

outcome<bool> odd(heap& memory, const value& input, arguments& given) {
  JINJA_CHECK(parameters::bind("odd", given, {}));
  return divisible(memory, input, std::int64_t{2}, 1);
}

outcome<bool> even(heap& memory, const value& input, arguments& given) {
  JINJA_CHECK(parameters::bind("even", given, {}));
  return divisible(memory, input, std::int64_t{2}, 0);
}

outcome<bool> divisible_by(heap& memory, const value& input, arguments& given) {
  JINJA_TRY(const auto p, parameters::bind("divisibleby", given, {"num"}, 1));
  return divisible(memory, input, *p[0], 0);
}

/// Identity. Small integers and strings are shared in Python; here equal ones count as the same.
outcome<bool> same_as(heap& memory, const value& input, arguments& given) {
  JINJA_TRY(const auto p, parameters::bind("sameas", given, {"other"}, 1));
  const auto& other = *p[0];
  if (input.index() != other.index())
    return false;
  if (as_list(input) || as_dict(input))
    return as_list(input) == as_list(other) && as_dict(input) == as_dict(other);
  return equal(memory.costs(), input, other);
}

/// islower() or isupper() of what the value prints as.
template <std::size_t Which>
outcome<bool> cased(heap& memory, const value& input, arguments& given) {
  constexpr std::array<std::string_view, 2> names{"islower", "isupper"};
  text_builder out(memory.costs());
  print(out, input);
  const auto methods = text_methods();
  const auto found = std::ranges::find(methods, names[Which], &method::name);
  JINJA_TRY(const auto holds, found->code(memory, memory.make_text(out.finish()), given));
  return truth(holds);
}

outcome<bool> is_filter(heap&, const value& input, arguments& given) {
  JINJA_CHECK(parameters::bind("filter", given, {}));
  return as_text(input) && find_filter(as_text(input)->bytes()) != nullptr;
}

outcome<bool> is_test(heap&, const value& input, arguments& given) {
  JINJA_CHECK(parameters::bind("test", given, {}));
  return as_text(input) && find_test(as_text(input)->bytes()) != nullptr;
}

} // namespace

test_code find_test(std::string_view name) {
  static constexpr auto table = std::to_array<test_entry>({
    {"!=", compared<comparison::not_equal>},
    {"<", compared<comparison::less>},
    {"<=", compared<comparison::less_equal>},
    {"==", compared<comparison::equal>},
    {">", compared<comparison::greater>},
    {">=", compared<comparison::greater_equal>},
    {"boolean", simple<is_boolean>},
    {"callable", simple<is_callable>},
    {"defined", simple<is_defined>},
    {"divisibleby", divisible_by},
    {"eq", compared<comparison::equal>},
    {"equalto", compared<comparison::equal>},
    {"escaped", simple<is_escaped>},
    {"even", even},
    {"false", simple<is_false>},
    {"filter", is_filter},
    {"float", simple<is_float>},
    {"ge", compared<comparison::greater_equal>},
    {"greaterthan", compared<comparison::greater>},
    {"gt", compared<comparison::greater>},
    {"in", compared<comparison::in>},
    {"integer", simple<is_integer>},
    {"iterable", simple<is_iterable>},
    {"le", compared<comparison::less_equal>},
    {"lessthan", compared<comparison::less>},
    {"lower", cased<0>},
    {"lt", compared<comparison::less>},
    {"mapping", simple<is_mapping>},
    {"ne", compared<comparison::not_equal>},
    {"none", simple<is_none_value>},
    {"number", simple<is_number>},
    {"odd", odd},
    {"sameas", same_as},
    {"sequence", simple<is_sequence>},
    {"string", simple<is_string>},
    {"test", is_test},
    {"true", simple<is_true>},
    {"undefined", simple<is_undefined>},
    {"upper", cased<1>},
  });
  const auto found = std::ranges::find(table, name, &test_entry::name);
  return found == table.end() ? nullptr : found->code;
}

} // namespace godwit::jinja
