#include "actors/jinja/sorting.hpp"

#include "actors/jinja/operators.hpp"

#include <algorithm>
#include <numeric>

namespace godwit::jinja {

outcome<std::vector<value>> sorted(budget& costs, std::vector<value> items, const std::vector<value>& keys,
  bool reverse, const key_order& before) {
  const auto goes_first = [&](std::size_t a, std::size_t b) -> outcome<bool> {
    if (reverse)
      std::swap(a, b);
    return before ? before(keys[a], keys[b]) : less(costs, keys[a], keys[b]);
  };
  // A merge sort of our own: the order comes from a template, may fail, and need not be one.
  std::vector<std::size_t> order(items.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::vector<std::size_t> merged(order.size());
  for (std::size_t width = 1; width < order.size(); width *= 2) {
    for (std::size_t start = 0; start < order.size(); start += 2 * width) {
      const auto middle = std::min(start + width, order.size());
      const auto end = std::min(start + 2 * width, order.size());
      auto left = start;
      auto right = middle;
      for (auto at = start; at < end; ++at) {
        bool take_right = left == middle;
        if (!take_right && right < end) {
          JINJA_TRY(take_right, goes_first(order[right], order[left]));
        }
        merged[at] = order[take_right ? right++ : left++];
      }
      JINJA_CHECK(costs.check());
    }
    order.swap(merged);
  }
  std::vector<value> out;
  out.reserve(items.size());
  for (const auto place : order)
    out.push_back(std::move(items[place]));
  return out;
}

} // namespace godwit::jinja
