#include "services/coldstore/cold_index.hpp"

#include "messages/check.hpp"

#include <algorithm>

namespace godwit {

namespace {

/// Blocks whose use is remembered until it is written.
constexpr std::size_t most_visited = std::size_t{1} << 16U;

} // namespace

bool cold_index::has(const block_identity& identity) const {
  return there(index_.find(identity));
}

std::size_t cold_index::known(std::span<const block_identity> chain) const {
  std::size_t count = 0;
  while (count < chain.size() && has(chain[count]))
    ++count;
  return count;
}

std::vector<std::uint32_t> cold_index::places(std::span<const block_identity> chain) const {
  std::vector<std::uint32_t> made;
  for (const auto& identity : chain) {
    const auto which = index_.find(identity);
    if (!there(which))
      break;
    made.push_back(stored_[which].place);
  }
  return made;
}

bool cold_index::is_planned(slot which) const {
  // A child stands right behind its parent, as a rule.
  return std::ranges::find(planned_.rbegin(), planned_.rend(), which, &addition::which) != planned_.rend();
}

void cold_index::set(slot which, stored at) {
  if (which >= stored_.size())
    stored_.resize(std::size_t{which} + 1);
  const auto before = stored_[which].bytes;
  bytes_ += at.bytes;
  bytes_ -= before;
  blocks_ += at.bytes != 0 ? 1U : 0U;
  blocks_ -= before != 0 ? 1U : 0U;
  stored_[which] = at;
}

void cold_index::give_up(slot which, std::vector<step>& steps) {
  const auto at = stored_[which];
  steps.push_back({step::kind::drop, index_[which].identity, 0, at.bytes, at.place, 0});
  set(which, {});
  ++given_up_;
  std::erase(aside_, which);
  index_.give_up(which);
}

void cold_index::set_aside(slot which) {
  if (which == none)
    return;
  if (index_[which].heap != none)
    index_.set_aside(which);
  aside_.push_back(which);
}

bool cold_index::make_room(std::uint64_t bytes, std::vector<step>& steps) {
  while (bytes_ + planned_bytes_ + bytes > limit_bytes_) {
    const auto victim = index_.worst();
    if (victim == none)
      return false;
    // What was set aside while it had children may have become an end since.
    if (std::ranges::find(aside_, victim) != aside_.end())
      index_.set_aside(victim);
    else
      give_up(victim, steps);
  }
  return true;
}

std::vector<cold_index::step> cold_index::plan(std::span<const cold_block> blocks) {
  GODWIT_CHECK(planned_.empty());
  std::vector<step> steps;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const auto& block = blocks[i];
    auto place = index_.find(block.identity);
    if (there(place)) {
      set_aside(place);
      index_.refresh(place);
      continue;
    }
    if (place != none && is_planned(place))
      continue;
    const auto size = cold_codec::header_bytes(block.tenant) + block.pages.size();
    const auto parent = block.depth == 0 ? none : index_.find(block.parent);
    if (block.tenant.size() > cold_codec::max_tenant_bytes || size > cold_codec::max_record_bytes
        || size > limit_bytes_)
      continue;
    if (block.depth != 0 && !there(parent) && (parent == none || !is_planned(parent)))
      continue;
    set_aside(parent);
    set_aside(place);
    if (!make_room(size, steps))
      continue;
    if (place == none) {
      place = index_.add(block.identity, 0, parent);
      set(place, {});
      set_aside(place);
    }
    for (unsigned hit = 0; hit < block.hits; ++hit)
      index_.visit(place);
    const auto bytes = static_cast<std::uint32_t>(size);
    const stored at{bytes, next_place_++};
    planned_.push_back({place, at});
    planned_bytes_ += bytes;
    steps.push_back({step::kind::put, block.identity, i, bytes, at.place, index_[place].worth});
  }
  index_.added(none);
  for (const auto which : aside_)
    index_.put_back(which);
  aside_.clear();
  return steps;
}

void cold_index::confirm() {
  for (const auto& [which, at] : planned_)
    set(which, at);
  planned_.clear();
  planned_bytes_ = 0;
}

void cold_index::visited(std::span<const block_identity> chain, std::size_t count) {
  for (const auto& identity : chain.first(count)) {
    const auto which = index_.find(identity);
    if (which == none)
      break;
    // An end has to move among the other ends.
    if (index_[which].heap != none)
      index_.set_aside(which);
    index_.visit(which);
    index_.put_back(which);
    if (visited_.size() < most_visited)
      visited_.insert(identity);
  }
  index_.visited(none);
}

std::vector<cold_index::use> cold_index::take_uses(std::size_t most) {
  std::vector<use> made;
  while (!visited_.empty() && made.size() < most) {
    const auto identity = *visited_.begin();
    visited_.erase(visited_.begin());
    if (const auto which = index_.find(identity); there(which))
      made.push_back({identity, index_[which].hits, index_[which].worth});
  }
  return made;
}

std::optional<std::uint32_t> cold_index::lost(const block_identity& identity) {
  const auto which = index_.find(identity);
  if (!there(which))
    return std::nullopt;
  const auto place = stored_[which].place;
  set(which, {0, place});
  return place;
}

std::vector<cold_index::step> cold_index::restore(std::vector<cold_codec::note> notes) {
  index_ = block_index();
  stored_.clear();
  planned_.clear();
  visited_.clear();
  planned_bytes_ = bytes_ = blocks_ = 0;
  std::vector<step> steps;
  const auto drop = [&](const cold_codec::note& one) {
    steps.push_back({step::kind::drop, one.identity, 0, one.bytes, one.place, 0});
  };
  std::ranges::stable_sort(notes, {}, &cold_codec::note::depth);
  for (const auto& one : notes) {
    next_place_ = std::max(next_place_, one.place + 1);
    const auto parent = one.depth == 0 ? none : index_.find(one.parent);
    if ((one.depth != 0 && parent == none) || index_.find(one.identity) != none) {
      drop(one);
      continue;
    }
    const auto place = index_.add(one.identity, 0, parent);
    index_.restore(place, one.hits, one.worth);
    set(place, {one.bytes, one.place});
  }
  for (slot which = 0; which < stored_.size(); ++which)
    index_.put_back(which);
  make_room(0, steps);
  return steps;
}

} // namespace godwit
