#pragma once

#include "actors/jinja/value.hpp"

#include <functional>

namespace godwit::jinja {

/// Whether one key goes before another.
using key_order = std::function<outcome<bool>(const value&, const value&)>;

/// sorted(items, key): stable, also if `reverse`. `keys[i]` belongs to `items[i]`.
/// @param before the order of two keys; `<` by default
outcome<std::vector<value>> sorted(budget& costs, std::vector<value> items, const std::vector<value>& keys,
  bool reverse, const key_order& before = {});

} // namespace godwit::jinja
