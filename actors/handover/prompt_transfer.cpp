#include "actors/handover/prompt_transfer.hpp"

#include "messages/check.hpp"

#include <algorithm>

namespace godwit {

bool prompt_transfer::probed(std::uint32_t known_tokens, const transfer_limits& limits) {
  if (at_ != stage::probing)
    return false;
  const auto length = static_cast<std::uint32_t>(tokens_.size());
  const auto known = std::min(known_tokens, length);
  const bool worth = full_blocks() > 0 && length - known >= std::max(limits.min_tokens, 1U);
  at_ = worth ? stage::ordered : stage::over;
  return worth;
}

bool prompt_transfer::computed(std::uint32_t blocks, std::uint32_t cached) {
  if (at_ != stage::ordered)
    return false;
  const bool sound = blocks > 0 && blocks <= full_blocks() && cached <= full_blocks() * page_tokens;
  at_ = sound ? stage::ready : stage::over;
  if (!sound)
    return false;
  ready_ = blocks;
  cached_ = std::min(cached / page_tokens, blocks);
  return true;
}

bool prompt_transfer::look() {
  if (at_ != stage::ready)
    return false;
  at_ = stage::looking;
  return true;
}

std::uint32_t prompt_transfer::found(std::uint32_t local_blocks) {
  if (at_ != stage::looking)
    return 0;
  local_ = local_blocks;
  if (local_blocks >= ready_) {
    at_ = stage::over;
    return 0;
  }
  at_ = stage::room;
  return ready_ - local_blocks;
}

bool prompt_transfer::no_room() {
  if (at_ != stage::room)
    return false;
  at_ = stage::ready;
  return true;
}

bool prompt_transfer::begin(std::vector<block_id> blocks, std::uint32_t per_request, std::uint32_t requests) {
  if (at_ != stage::room)
    return false;
  GODWIT_CHECK(blocks.size() == ready_ - local_);
  blocks_ = std::move(blocks);
  window_.emplace(block_range{local_, ready_ - local_}, per_request, requests);
  at_ = stage::fetching;
  return true;
}

std::uint32_t prompt_transfer::fresh() const {
  const auto here = local_ + good();
  return here - std::min(here, std::max(local_, cached_));
}

} // namespace godwit
