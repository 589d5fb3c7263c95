#include "actors/jinja/filters.hpp"

#include <algorithm>

namespace godwit::jinja {

filter_code find_filter(std::string_view name) {
  for (const auto table : {text_filters(), sequence_filters(), order_filters(), number_filters()}) {
    const auto found = std::ranges::find(table, name, &method::name);
    if (found != table.end())
      return found->code;
  }
  return nullptr;
}

} // namespace godwit::jinja
