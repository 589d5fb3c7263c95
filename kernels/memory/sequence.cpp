#include "kernels/memory/sequence.hpp"

#include "messages/check.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace godwit {

sequence::sequence(page_pool& pool) : pool_(&pool), pages_(pool.shape().pages_per_block()) {}

sequence::~sequence() {
  release_all();
}

sequence::sequence(sequence&& other) noexcept
  : pool_(other.pool_), length_(std::exchange(other.length_, 0)), blocks_(std::exchange(other.blocks_, {})),
    pages_(std::exchange(other.pages_, {})), positions_(std::exchange(other.positions_, {})) {}

sequence& sequence::operator=(sequence&& other) noexcept {
  if (this != &other) {
    release_all();
    pool_ = other.pool_;
    length_ = std::exchange(other.length_, 0);
    blocks_ = std::exchange(other.blocks_, {});
    pages_ = std::exchange(other.pages_, {});
    positions_ = std::exchange(other.positions_, {});
  }
  return *this;
}

void sequence::adopt(std::span<const block_id> blocks) {
  GODWIT_CHECK(blocks_.size() * page_tokens == length_ && !ragged());
  GODWIT_CHECK(blocks.size() <= (std::numeric_limits<position_t>::max() - length_) / page_tokens);
  for (const auto block : blocks)
    append(block);
  length_ += static_cast<position_t>(blocks.size() * page_tokens);
}

bool sequence::shares_tail() const {
  return length_ % page_tokens != 0 && !pool_->exclusive(blocks_[length_ / page_tokens]);
}

std::uint32_t sequence::blocks_needed(std::uint32_t tokens) const {
  if (tokens == 0)
    return 0;
  if (ragged())
    return ragged_blocks_needed(tokens);
  return static_cast<std::uint32_t>(blocks_missing(tokens) + (shares_tail() ? 1 : 0));
}

std::size_t sequence::blocks_missing(std::uint32_t tokens) const {
  const auto wanted = blocks_for(std::uint64_t{length_} + tokens);
  return wanted > blocks_.size() ? wanted - blocks_.size() : 0;
}

result<void> sequence::reserve(std::uint32_t tokens) {
  GODWIT_CHECK(tokens <= std::numeric_limits<position_t>::max() - length_);
  if (tokens == 0)
    return {};
  if (ragged())
    return reserve_ragged(tokens);
  // Asked once: another owner may let go at any time.
  const bool copies = shares_tail();
  const auto needed = blocks_missing(tokens) + (copies ? 1 : 0);

  std::vector<block_id> fresh;
  fresh.reserve(needed);
  while (fresh.size() < needed) {
    const auto block = pool_->allocate_block();
    if (!block) {
      for (const auto taken : fresh)
        pool_->release_block(taken);
      return fail(block);
    }
    fresh.push_back(*block);
  }

  auto next = fresh.begin();
  if (copies)
    replace_tail(*next++);
  for (; next != fresh.end(); ++next)
    append(*next);
  return {};
}

void sequence::advance(std::uint32_t tokens) {
  if (ragged())
    return advance_ragged(tokens);
  GODWIT_CHECK(tokens <= blocks_.size() * page_tokens - length_);
  length_ += tokens;
}

void sequence::truncate(position_t length) {
  GODWIT_CHECK(length <= length_);
  if (ragged())
    return truncate_ragged(length);
  length_ = length;
  shrink(blocks_for(length));
}

sequence sequence::fork() const {
  sequence twin(*pool_);
  if (ragged()) {
    fork_ragged(twin);
    return twin;
  }
  const auto shared = blocks();
  pool_->retain_blocks(shared);
  twin.blocks_.assign(shared.begin(), shared.end());
  for (std::size_t list = 0; list < pages_.size(); ++list)
    twin.pages_[list].assign(
      pages_[list].begin(), pages_[list].begin() + static_cast<std::ptrdiff_t>(shared.size()));
  twin.length_ = length_;
  return twin;
}

std::span<const page_id> sequence::pages(std::uint32_t layer, std::uint32_t head) const {
  return pages_[list_of(layer, head)];
}

std::size_t sequence::list_of(std::uint32_t layer, std::uint32_t head) const {
  const auto& shape = pool_->shape();
  GODWIT_CHECK(layer < shape.layers && head < shape.kv_heads);
  return std::size_t{layer} * shape.kv_heads + head;
}

std::uint32_t sequence::kept(std::uint32_t layer, std::uint32_t head) const {
  if (ragged())
    return static_cast<std::uint32_t>(positions_[list_of(layer, head)].size());
  return std::min(length_, static_cast<std::uint32_t>(pages(layer, head).size() * page_tokens));
}

std::uint32_t sequence::slot_from(std::uint32_t layer, std::uint32_t head, position_t position) const {
  return ragged() ? ragged_slot_from(list_of(layer, head), position) : position;
}

bool sequence::holds_pages() const {
  return std::any_of(pages_.begin(), pages_.end(), [](const auto& list) { return !list.empty(); });
}

void sequence::release_all() {
  if (ragged())
    truncate_ragged(0);
  else
    shrink(0);
}

void sequence::append(block_id block) {
  const auto per_block = pool_->shape().pages_per_block();
  for (std::uint32_t list = 0; list < per_block; ++list)
    pages_[list].push_back(block * per_block + list);
  blocks_.push_back(block);
}

void sequence::replace_tail(block_id fresh) {
  const auto& shape = pool_->shape();
  const auto index = length_ / page_tokens;
  const auto old = blocks_[index];
  const auto elements = shape.page_bytes() / sizeof(kv_element);
  for (std::uint32_t list = 0; list < shape.pages_per_block(); ++list) {
    const page_id target = fresh * shape.pages_per_block() + list;
    const auto* from = std::as_const(*pool_).data(pages_[list][index]);
    auto* to = pool_->data(target);
    std::copy_n(from, elements, to);
    pages_[list][index] = target;
  }
  blocks_[index] = fresh;
  pool_->release_block(old);
}

void sequence::shrink(std::size_t count) {
  if (blocks_.size() > count) {
    // The last one first, so that the pool hands them out again in ascending order.
    const auto rest = blocks_.begin() + static_cast<std::ptrdiff_t>(count);
    std::reverse(rest, blocks_.end());
    pool_->release_blocks(std::span(blocks_).subspan(count));
    blocks_.resize(count);
  }
  for (auto& list : pages_)
    list.resize(std::min(list.size(), count));
}

} // namespace godwit
