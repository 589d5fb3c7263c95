#pragma once

#include "actors/jinja/arguments.hpp"
#include "actors/jinja/methods.hpp"

#include <span>

namespace godwit::jinja {

/// `input | name(arguments)`; documented as in Jinja2's list of built-in filters.
using filter_code = method_code;
/// `input is name(arguments)`.
using test_code = outcome<bool> (*)(heap&, const value& input, arguments&);

struct test_entry {
  std::string_view name;
  test_code code;
};

/// The filter of a name, or nullptr.
filter_code find_filter(std::string_view name);
/// The test of a name, or nullptr.
test_code find_test(std::string_view name);

// The filters by what they work on; find_filter() looks through all.
std::span<const method> text_filters();
std::span<const method> sequence_filters();
std::span<const method> order_filters();
std::span<const method> number_filters();

} // namespace godwit::jinja
