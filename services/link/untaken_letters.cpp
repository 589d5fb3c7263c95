#include "services/link/untaken_letters.hpp"

#include "messages/held_message.hpp"

#include <caf/message_id.hpp>

#include <algorithm>
#include <utility>

namespace godwit::link {

class untaken_letters::letter final : public held_message {
 public:
  letter(caf::message content, balance& freed, std::int64_t places)
    : held_message(nullptr, caf::make_message_id(), {}, std::move(content)), freed_(freed), places_(places) {}
  ~letter() override {
    // Before the end of whoever handed it out this is never above 0.
    if (freed_.fetch_sub(places_, std::memory_order_acq_rel) == places_)
      delete &freed_;
  }
  letter(const letter&) = delete;
  letter& operator=(const letter&) = delete;

 private:
  balance& freed_;
  const std::int64_t places_;
};

untaken_letters::untaken_letters(std::int64_t most) : most_(most), freed_(new balance(0)) {}

untaken_letters::~untaken_letters() {
  const auto handed = handed_.load(std::memory_order_relaxed);
  if (freed_->fetch_add(handed, std::memory_order_acq_rel) + handed == 0)
    delete freed_;
}

bool untaken_letters::full() {
  const auto handed = handed_.load(std::memory_order_relaxed);
  if (handed + seen_ < most_)
    return false;
  seen_ = freed_->load(std::memory_order_relaxed);
  return handed + seen_ >= most_;
}

std::int64_t untaken_letters::places() const {
  const auto handed = handed_.load(std::memory_order_relaxed);
  return std::max<std::int64_t>(handed + freed_->load(std::memory_order_relaxed), 0);
}

caf::mailbox_element_ptr untaken_letters::hand_out(caf::message content, std::size_t bytes) {
  const auto places = static_cast<std::int64_t>(1 + bytes / bytes_a_place);
  handed_.store(handed_.load(std::memory_order_relaxed) + places, std::memory_order_relaxed);
  return caf::mailbox_element_ptr{new letter(std::move(content), *freed_, places)};
}

} // namespace godwit::link
