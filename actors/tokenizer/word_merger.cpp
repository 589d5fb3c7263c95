#include "actors/tokenizer/word_merger.hpp"

#include "messages/check.hpp"

#include <algorithm>

namespace godwit {

void word_merger::append(std::string_view word, std::vector<token_id>& out) {
  GODWIT_CHECK(word.size() < none);
  symbols_.clear();
  for (const char byte : word)
    if (const auto id = tokens_.of_byte(static_cast<std::uint8_t>(byte))) {
      const auto at = static_cast<std::uint32_t>(symbols_.size());
      symbols_.push_back({*id, at == 0 ? none : at - 1, at + 1});
    }
  if (symbols_.empty())
    return;
  symbols_.back().next = none;
  heap_.clear();
  for (std::uint32_t at = 0; at < symbols_.size(); ++at)
    consider(at);
  std::ranges::make_heap(heap_, later);
  merge_all();
  // The first symbol is never merged into another.
  for (std::uint32_t at = 0; at != none; at = symbols_[at].next)
    out.push_back(symbols_[at].id);
}

bool word_merger::consider(std::uint32_t at) {
  if (at == none || symbols_[at].next == none)
    return false;
  const auto left = symbols_[at].id;
  const auto right = symbols_[symbols_[at].next].id;
  const auto* found = merges_.find(left, right);
  if (found != nullptr)
    heap_.push_back({found->rank, at, left, right, found->made});
  return found != nullptr;
}

void word_merger::merge_all() {
  while (!heap_.empty()) {
    std::ranges::pop_heap(heap_, later);
    const auto best = heap_.back();
    heap_.pop_back();
    auto& left = symbols_[best.at];
    if (left.id != best.left || left.next == none || symbols_[left.next].id != best.right)
      continue;
    auto& right = symbols_[left.next];
    left.id = best.made;
    right.id = none;
    left.next = right.next;
    if (left.next != none)
      symbols_[left.next].previous = best.at;
    for (const auto at : {left.previous, best.at})
      if (consider(at))
        std::ranges::push_heap(heap_, later);
  }
}

} // namespace godwit
