#include "actors/tokenizer/piece_merger.hpp"

#include "actors/text/utf8.hpp"
#include "messages/check.hpp"

#include <algorithm>

namespace godwit {

void piece_merger::append(std::string_view text, std::vector<token_id>& out) {
  GODWIT_CHECK(text.size() < none);
  if (text.empty())
    return;
  cut(text);
  heap_.clear();
  for (std::uint32_t at = 0; at < symbols_.size(); ++at)
    consider(text, at);
  std::ranges::make_heap(heap_, later);
  merge_all(text);
  // The first symbol is never merged into another.
  for (std::uint32_t at = 0; at != none; at = symbols_[at].next) {
    const auto piece = text.substr(symbols_[at].from, symbols_[at].size);
    if (const auto id = tokens_.find(piece))
      out.push_back(*id);
    else
      for (const char byte : piece)
        out.push_back(tokens_.of_byte(static_cast<std::uint8_t>(byte)).value());
  }
}

void piece_merger::cut(std::string_view text) {
  symbols_.clear();
  for (std::uint32_t from = 0; from < text.size();) {
    const auto next = utf8::first(text.substr(from));
    const std::uint32_t size = next.valid ? next.size : 1U;
    const auto at = static_cast<std::uint32_t>(symbols_.size());
    symbols_.push_back({from, size, at == 0 ? none : at - 1, at + 1});
    from += size;
  }
  symbols_.back().next = none;
}

bool piece_merger::consider(std::string_view text, std::uint32_t at) {
  if (at == none || symbols_[at].next == none)
    return false;
  const auto size = symbols_[at].size + symbols_[symbols_[at].next].size;
  const auto id =
    size <= tokens_.longest_text() ? tokens_.find(text.substr(symbols_[at].from, size)) : std::nullopt;
  if (id)
    heap_.push_back({scores_[*id], at, size});
  return id.has_value();
}

void piece_merger::merge_all(std::string_view text) {
  while (!heap_.empty()) {
    std::ranges::pop_heap(heap_, later);
    const auto best = heap_.back();
    heap_.pop_back();
    auto& left = symbols_[best.at];
    if (left.size == 0 || left.next == none || left.size + symbols_[left.next].size != best.size)
      continue;
    auto& right = symbols_[left.next];
    left.size = best.size;
    right.size = 0;
    left.next = right.next;
    if (left.next != none)
      symbols_[left.next].previous = best.at;
    for (const auto at : {left.previous, best.at})
      if (consider(text, at))
        std::ranges::push_heap(heap_, later);
  }
}

} // namespace godwit
