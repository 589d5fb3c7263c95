#include "services/api/outbox.hpp"

#include "messages/check.hpp"

#include <utility>

namespace godwit {

void outbox::add(std::string_view bytes, std::size_t producer, std::uint32_t units) {
  bytes_ += bytes;
  // What made no bytes does not have to wait for the socket.
  (idle() ? earned_ : waiting_).at(producer) += units;
}

std::optional<std::string> outbox::next() {
  if (under_way_ || bytes_.empty())
    return std::nullopt;
  under_way_ = true;
  std::swap(waiting_, writing_);
  return std::exchange(bytes_, {});
}

void outbox::written() {
  GODWIT_CHECK(under_way_);
  under_way_ = false;
  for (std::size_t i = 0; i < writing_.size(); ++i) {
    earned_[i] += std::exchange(writing_[i], 0);
    // Without bytes there will be no next write that could earn it.
    if (bytes_.empty())
      earned_[i] += std::exchange(waiting_[i], 0);
  }
}

std::uint32_t outbox::earned(std::size_t producer) {
  return std::exchange(earned_.at(producer), 0);
}

} // namespace godwit
