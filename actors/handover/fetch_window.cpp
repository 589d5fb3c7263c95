#include "actors/handover/fetch_window.hpp"

#include <algorithm>

namespace godwit {

std::optional<block_range> fetch_window::next() {
  if (stopped_ || next_ == wanted_.end() || open_.size() >= most_open_)
    return std::nullopt;
  const block_range out{next_, std::min(per_request_, wanted_.end() - next_)};
  open_.emplace(out.first, out.count);
  next_ = out.end();
  return out;
}

bool fetch_window::came(block_range asked, std::uint32_t good) {
  const auto found = open_.find(asked.first);
  if (found == open_.end() || found->second != asked.count)
    return false;
  open_.erase(found);
  good = std::min(good, asked.count);
  good_.emplace(asked.first, good);
  // What lies behind a gap would be of no use.
  stopped_ = stopped_ || good < asked.count;
  return true;
}

std::uint32_t fetch_window::good() const {
  auto end = wanted_.first;
  for (const auto& [first, count] : good_) {
    if (first != end)
      break;
    end += count;
  }
  return end - wanted_.first;
}

} // namespace godwit
