#pragma once

#include "actors/jinja/arguments.hpp"

#include <span>

namespace godwit::jinja {

/// A method of a built-in type.
struct method {
  std::string_view name;
  method_code code;
};

// The methods that templates may call, as Python documents them.
std::span<const method> text_methods();
std::span<const method> list_methods();
std::span<const method> tuple_methods();
std::span<const method> dict_methods();
/// `loop.cycle` and `loop.changed`.
std::span<const method> loop_methods();

/// dict.update() from a mapping or from pairs.
outcome<void> update_dict(heap& memory, dict& target, const value& other);

/// str.format(): `form` with its replacement fields filled.
outcome<value> format_braces(heap& memory, const text& form, const arguments& given);

/// str.splitlines() without line ends.
std::vector<std::string_view> split_lines(std::string_view bytes, bool keep_ends = false);

/// Where `part` first stands in `whole`, in linear time whatever the two are; npos if nowhere.
std::size_t find_bytes(std::string_view whole, std::string_view part);
/// Where it last stands. Pays for the product of the lengths, which is what the worst case takes.
std::size_t find_last_bytes(budget& costs, std::string_view whole, std::string_view part);

/// str.strip() and its halves: without white space, or without the characters of a set.
std::string_view strip(
  budget& costs, std::string_view bytes, std::optional<std::string_view> characters, bool left, bool right);

/// str.replace(); a negative count is all.
std::string replace_all(
  budget& costs, std::string_view bytes, std::string_view old, std::string_view with, std::int64_t count);

/// str.join() over printed values; what is not a string is refused if `strict`.
outcome<std::string> join(
  heap& memory, std::string_view separator, const std::vector<value>& items, bool strict);

/// str.center().
std::string center(budget& costs, const text& t, std::int64_t width, std::string_view fill);

} // namespace godwit::jinja
