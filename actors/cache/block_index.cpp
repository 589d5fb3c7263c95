#include "actors/cache/block_index.hpp"

#include "messages/check.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace godwit {
namespace {

void count_up(std::uint16_t& number) {
  if (number < std::numeric_limits<std::uint16_t>::max())
    ++number;
}

} // namespace

block_index::block_index(std::uint32_t doubles_at)
  : slope_(static_cast<double>(page_tokens) / std::max(doubles_at, 1U)), table_(64, empty) {}

std::size_t block_index::bytes() const {
  return chunks_.size() * sizeof(std::array<entry, chunk_entries>) + chunks_.capacity() * sizeof(chunks_[0])
         + table_.capacity() * sizeof(table_[0]) + heap_.capacity() * sizeof(heap_[0]);
}

block_index::slot block_index::only_child(slot which) const {
  if (at(which).children != 1)
    return none;
  for (slot other = 0; other < next_; ++other)
    // A slot that is not in use has the next such one for its parent, and nothing leads to it.
    if (at(other).parent == which && find(at(other).identity) == other)
      return other;
  return none;
}

void block_index::visited(slot last) {
  ++clock_;
  if (last == none || at(last).heap == none)
    return;
  pull(last);
  push(last);
}

void block_index::refresh(slot which) {
  touch(at(which));
}

block_index::slot block_index::add(const block_identity& identity, std::uint32_t where, slot parent) {
  slot which = free_;
  if (which != none) {
    free_ = at(which).parent;
  } else {
    which = next_++;
    GODWIT_CHECK(which != none);
    if (which / chunk_entries == chunks_.size())
      chunks_.push_back(std::make_unique<std::array<entry, chunk_entries>>());
  }
  auto& item = at(which);
  item = {};
  item.identity = identity;
  item.where = where;
  item.parent = parent;
  if (parent != none) {
    auto& before = at(parent);
    if (before.heap != none)
      pull(parent);
    ++before.children;
    item.depth = before.depth;
    count_up(item.depth);
  }
  touch(item);
  ++size_;
  // At most four fifths full.
  if (size_ * 5 > table_.size() * 4)
    grow();
  remember(which);
  return which;
}

void block_index::added(slot last) {
  ++clock_;
  if (last == none)
    return;
  if (at(last).heap != none)
    pull(last);
  if (may_go(at(last)))
    push(last);
}

void block_index::restore(slot which, std::uint8_t hits, double worth) {
  auto& item = at(which);
  GODWIT_CHECK(item.heap == none);
  item.hits = hits;
  item.worth = worth;
  age_ = std::max(age_, worth - gain(item));
}

void block_index::set_aside(slot end) {
  pull(end);
}

void block_index::put_back(slot end) {
  if (at(end).heap == none && may_go(at(end)))
    push(end);
}

void block_index::erase(slot end) {
  auto& item = at(end);
  GODWIT_CHECK(item.children == 0 && item.pins == 0);
  if (item.heap != none)
    pull(end);
  forget(end);
  item.identity = {};
  if (const auto parent = item.parent; parent != none) {
    auto& before = at(parent);
    --before.children;
    // Whoever used a block used those before it too, though they may not have been touched.
    if (const auto worth = item.worth - gain(item) + gain(before); worth > before.worth) {
      before.worth = worth;
      before.used = item.used;
    }
    if (may_go(before))
      push(parent);
  }
  item.parent = free_;
  free_ = end;
  --size_;
}

void block_index::give_up(slot end) {
  age_ = std::max(age_, at(end).worth);
  erase(end);
}

std::uint32_t block_index::unpinned_before(slot last) const {
  std::uint32_t count = 0;
  for (auto which = last; which != none && at(which).pins == 0; which = at(which).parent)
    ++count;
  return count;
}

std::uint32_t block_index::pin(slot last) {
  // Pins of a block are no fewer than those of a block behind it: the first of the chain has the most.
  for (auto which = last; which != none; which = at(which).parent)
    if (at(which).pins == std::numeric_limits<std::uint8_t>::max())
      return none;
  std::uint32_t fresh = 0;
  if (last != none && at(last).heap != none)
    pull(last);
  for (auto which = last; which != none; which = at(which).parent)
    fresh += at(which).pins++ == 0 ? 1U : 0U;
  return fresh;
}

std::uint32_t block_index::unpin(slot last) {
  std::uint32_t freed = 0;
  for (auto which = last; which != none; which = at(which).parent) {
    GODWIT_CHECK(at(which).pins > 0);
    freed += --at(which).pins == 0 ? 1U : 0U;
  }
  if (last != none && may_go(at(last)) && at(last).heap == none)
    push(last);
  return freed;
}

bool block_index::before(slot a, slot b) const {
  const auto& x = at(a);
  const auto& y = at(b);
  if (x.worth != y.worth)
    return x.worth < y.worth;
  // Counts of one generation lie close together, so that the sign survives the end of the range.
  return static_cast<std::int32_t>(x.used - y.used) < 0;
}

void block_index::push(slot which) {
  heap_.push_back(which);
  sift_up(which, heap_.size() - 1);
}

void block_index::pull(slot which) {
  const auto place = at(which).heap;
  GODWIT_CHECK(place < heap_.size() && heap_[place] == which);
  at(which).heap = none;
  const auto last = heap_.back();
  heap_.pop_back();
  if (last == which)
    return;
  sift_down(last, place);
  sift_up(last, at(last).heap);
}

void block_index::sift_up(slot which, std::size_t place) {
  for (; place > 0 && before(which, heap_[(place - 1) / 2]); place = (place - 1) / 2) {
    heap_[place] = heap_[(place - 1) / 2];
    at(heap_[place]).heap = static_cast<slot>(place);
  }
  heap_[place] = which;
  at(which).heap = static_cast<slot>(place);
}

void block_index::sift_down(slot which, std::size_t place) {
  while (2 * place + 1 < heap_.size()) {
    auto child = 2 * place + 1;
    if (child + 1 < heap_.size() && before(heap_[child + 1], heap_[child]))
      ++child;
    if (!before(heap_[child], which))
      break;
    heap_[place] = heap_[child];
    at(heap_[place]).heap = static_cast<slot>(place);
    place = child;
  }
  heap_[place] = which;
  at(which).heap = static_cast<slot>(place);
}

void block_index::grow() {
  const auto old = std::exchange(table_, std::vector<std::uint64_t>(table_.size() * 2, empty));
  const auto mask = table_.size() - 1;
  for (const auto word : old)
    if (word != empty) {
      auto place = (word >> 32) & mask;
      while (table_[place] != empty)
        place = (place + 1) & mask;
      table_[place] = word;
    }
}

void block_index::remember(slot which) {
  const auto mask = table_.size() - 1;
  const auto tag = tag_of(at(which).identity);
  auto place = tag & mask;
  while (table_[place] != empty)
    place = (place + 1) & mask;
  table_[place] = std::uint64_t{tag} << 32 | which;
}

/// Takes a block out of the table and moves those up that its place had pushed on.
void block_index::forget(slot which) {
  const auto mask = table_.size() - 1;
  const auto tag = tag_of(at(which).identity);
  const auto mine = std::uint64_t{tag} << 32 | which;
  auto hole = tag & mask;
  while (table_[hole] != mine)
    hole = (hole + 1) & mask;
  for (auto next = (hole + 1) & mask; table_[next] != empty; next = (next + 1) & mask) {
    const auto home = (table_[next] >> 32) & mask;
    // It may move to the hole unless its home lies behind it.
    if (((next - home) & mask) >= ((next - hole) & mask)) {
      table_[hole] = table_[next];
      hole = next;
    }
  }
  table_[hole] = empty;
}

} // namespace godwit
