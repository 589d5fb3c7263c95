#include "actors/jinja/methods.hpp"

#include "actors/jinja/access.hpp"

#include <algorithm>
#include <array>

namespace godwit::jinja {

namespace {

// Methods that Python has and templates do not need; using one is refused by name instead of being undefined.
constexpr auto unsupported_text = std::to_array<std::string_view>({"casefold", "encode", "expandtabs",
  "format_map", "isascii", "isidentifier", "isprintable", "istitle", "maketrans", "translate"});
constexpr auto unsupported_dict = std::to_array<std::string_view>({"fromkeys"});
constexpr auto unsupported_number =
  std::to_array<std::string_view>({"as_integer_ratio", "bit_count", "bit_length", "conjugate", "denominator",
    "from_bytes", "fromhex", "hex", "imag", "is_integer", "numerator", "real", "to_bytes"});

template <std::size_t N>
bool is_any_of(std::string_view name, const std::array<std::string_view, N>& names) {
  return std::ranges::find(names, name) != names.end();
}

method_code look_up(std::span<const method> table, std::string_view name) {
  const auto found = std::ranges::find(table, name, &method::name);
  return found == table.end() ? nullptr : found->code;
}

} // namespace

outcome<method_code> find_method(const value& object, std::string_view name) {
  method_code found = nullptr;
  bool unsupported = false;
  if (as_text(object)) {
    found = look_up(text_methods(), name);
    unsupported = is_any_of(name, unsupported_text);
  } else if (const auto* l = as_list(object)) {
    if (l->kind == list::sort::list)
      found = look_up(list_methods(), name);
    if (l->kind == list::sort::tuple || l->kind == list::sort::range)
      found = look_up(tuple_methods(), name);
  } else if (as_mapping(object)) {
    found = look_up(dict_methods(), name);
    unsupported = is_any_of(name, unsupported_dict);
  } else if (as_loop(object)) {
    found = look_up(loop_methods(), name);
  } else if (as_number(object)) {
    unsupported = is_any_of(name, unsupported_number);
  }
  if (unsupported)
    return stop(errc::unsupported,
      "the method '" + std::string(name) + "' of '" + std::string(type_name(object)) + "' is not supported");
  return found;
}

} // namespace godwit::jinja
