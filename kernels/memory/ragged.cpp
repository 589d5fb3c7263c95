// Sequences that keep different positions in different heads.

#include "kernels/memory/sequence.hpp"

#include "messages/check.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <utility>

namespace godwit {
namespace {

/// Copies the key and the value of one position, as they are.
template <kv_type Type>
void copy_position(
  std::byte* to, std::size_t to_slot, const std::byte* from, std::size_t from_slot, std::size_t dim) {
  using places = kv_places<Type>;
  constexpr auto bytes = sizeof(typename kv_format<Type>::element);
  const auto copy = [&](std::size_t start, std::size_t size) {
    std::memcpy(to + start + to_slot * size, from + start + from_slot * size, size);
  };
  for (std::size_t d = 0; d < dim; ++d)
    copy(d * page_tokens * bytes, bytes);
  copy(places::values(dim), dim * bytes);
  if constexpr (kv_format<Type>::scaled) {
    copy(places::key_scales(dim), sizeof(kv_scale));
    copy(places::value_scales(dim), sizeof(kv_scale));
  }
}

std::size_t pages_for(std::size_t positions) {
  return (positions + page_tokens - 1) / page_tokens;
}

} // namespace

std::span<const position_t> sequence::positions(std::uint32_t layer, std::uint32_t head) const {
  GODWIT_CHECK(ragged());
  return positions_[list_of(layer, head)];
}

std::uint32_t sequence::most_kept() const {
  if (!ragged())
    return length_;
  std::size_t most = 0;
  for (const auto& list : positions_)
    most = std::max(most, list.size());
  return static_cast<std::uint32_t>(most);
}

std::uint32_t sequence::ragged_slot_from(std::size_t list, position_t position) const {
  const auto& kept = positions_[list];
  if (position >= length_)
    return static_cast<std::uint32_t>(kept.size()) + (position - length_);
  return static_cast<std::uint32_t>(std::lower_bound(kept.begin(), kept.end(), position) - kept.begin());
}

result<std::uint32_t> sequence::keep(
  std::uint32_t layer, std::uint32_t head, std::span<const position_t> wanted) {
  const auto list = list_of(layer, head);
  const auto slots = slots_of(list, wanted);
  if (!slots)
    return fail(slots);
  if (slots->size() == (ragged() ? positions_[list].size() : length_))
    return 0U; // all of them
  const auto fresh = replacements(list, *slots);
  if (!fresh)
    return fail(fresh);
  make_ragged();

  const auto& shape = pool_->shape();
  auto& pages = pages_[list];
  const auto old = pages;
  pages.resize(fresh->size());
  std::vector<page_id> given_up(old.begin() + static_cast<std::ptrdiff_t>(pages.size()), old.end());
  for (std::size_t page = 0; page < pages.size(); ++page)
    if ((*fresh)[page] != no_page) {
      given_up.push_back(pages[page]);
      pages[page] = (*fresh)[page];
    }
  const auto bytes_of = [&](page_id page) { return reinterpret_cast<std::byte*>(pool_->data(page)); };
  // Ascending: what is read stands at the place that is written, or behind it.
  with_kv_type(shape.type, [&]<kv_type Type>() {
    for (std::size_t to = 0; to < slots->size(); ++to) {
      const std::size_t from = (*slots)[to];
      const auto target = pages[to / page_tokens];
      const auto source = old[from / page_tokens];
      if (target != source || to != from)
        copy_position<Type>(
          bytes_of(target), to % page_tokens, bytes_of(source), from % page_tokens, shape.head_dim);
    }
  });
  positions_[list].assign(wanted.begin(), wanted.end());
  return pool_->release_pages(given_up);
}

/// Where each of these positions stands now.
result<std::vector<std::uint32_t>> sequence::slots_of(
  std::size_t list, std::span<const position_t> wanted) const {
  const auto held = ragged() ? static_cast<std::uint32_t>(positions_[list].size()) : length_;
  const auto at = [&](std::uint32_t slot) { return ragged() ? positions_[list][slot] : slot; };
  std::vector<std::uint32_t> slots(wanted.size());
  std::uint32_t next = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    while (next < held && at(next) < wanted[i])
      ++next;
    if (next == held || at(next) != wanted[i])
      return fail(errc::invalid_argument,
        "position " + std::to_string(wanted[i]) + " is not kept, or the positions do not ascend");
    slots[i] = next++;
  }
  return slots;
}

/// For each page that will be kept: a new one if it changes and somebody else holds it, else no_page.
result<std::vector<page_id>> sequence::replacements(
  std::size_t list, std::span<const std::uint32_t> slots) const {
  std::vector<page_id> fresh(pages_for(slots.size()), no_page);
  std::vector<page_id> taken;
  for (std::size_t page = 0; page < fresh.size(); ++page) {
    const auto last = std::min(slots.size(), (page + 1) * page_tokens) - 1;
    // Nothing before the last one moves if that does not.
    if (slots[last] == last || pool_->references(pages_[list][page]) == 1)
      continue;
    const auto made = pool_->allocate_page();
    if (!made) {
      pool_->release_pages(taken);
      return fail(made);
    }
    taken.push_back(*made);
    fresh[page] = *made;
  }
  return fresh;
}

/// From blocks to single pages. What was only reserved is given back.
void sequence::make_ragged() {
  if (ragged())
    return;
  truncate(length_);
  for (const auto& list : pages_)
    pool_->retain_pages(list);
  pool_->release_blocks(blocks_);
  blocks_.clear();
  positions_.resize(pages_.size());
  for (auto& list : positions_) {
    list.resize(length_);
    for (position_t p = 0; p < length_; ++p)
      list[p] = p;
  }
}

bool sequence::tail_is_shared(std::size_t list) const {
  const auto kept = positions_[list].size();
  return kept % page_tokens != 0 && pool_->references(pages_[list][kept / page_tokens]) > 1;
}

std::uint32_t sequence::ragged_blocks_needed(std::uint32_t tokens) const {
  std::uint64_t needed = 0;
  for (std::size_t list = 0; list < pages_.size(); ++list) {
    const auto wanted = pages_for(positions_[list].size() + tokens);
    needed += wanted > pages_[list].size() ? wanted - pages_[list].size() : 0;
    needed += tail_is_shared(list) ? 1 : 0;
  }
  const auto loose = pool_->loose_pages();
  const auto per_block = pool_->shape().pages_per_block();
  return needed <= loose ? 0 : static_cast<std::uint32_t>((needed - loose + per_block - 1) / per_block);
}

result<void> sequence::reserve_ragged(std::uint32_t tokens) {
  std::vector<page_id> fresh;
  std::vector<bool> copies(pages_.size());
  for (std::size_t list = 0; list < pages_.size(); ++list) {
    // Asked once: another owner may let go at any time.
    copies[list] = tail_is_shared(list);
    const auto wanted = pages_for(positions_[list].size() + tokens) + (copies[list] ? 1 : 0);
    for (auto has = pages_[list].size(); has < wanted; ++has) {
      const auto made = pool_->allocate_page();
      if (!made) {
        pool_->release_pages(fresh);
        return fail(made);
      }
      fresh.push_back(*made);
    }
  }
  auto next = fresh.begin();
  const auto elements = pool_->shape().page_bytes() / sizeof(kv_element);
  for (std::size_t list = 0; list < pages_.size(); ++list) {
    auto& pages = pages_[list];
    if (copies[list]) {
      auto& tail = pages[positions_[list].size() / page_tokens];
      std::copy_n(std::as_const(*pool_).data(tail), elements, pool_->data(*next));
      pool_->release_page(std::exchange(tail, *next++));
    }
    while (pages.size() < pages_for(positions_[list].size() + tokens))
      pages.push_back(*next++);
  }
  return {};
}

void sequence::advance_ragged(std::uint32_t tokens) {
  for (std::size_t list = 0; list < pages_.size(); ++list) {
    GODWIT_CHECK(positions_[list].size() + tokens <= pages_[list].size() * page_tokens);
    for (std::uint32_t i = 0; i < tokens; ++i)
      positions_[list].push_back(length_ + i);
  }
  length_ += tokens;
}

void sequence::truncate_ragged(position_t length) {
  length_ = length;
  for (std::size_t list = 0; list < pages_.size(); ++list) {
    auto& positions = positions_[list];
    positions.erase(std::lower_bound(positions.begin(), positions.end(), length), positions.end());
    auto& pages = pages_[list];
    const auto written = pages_for(positions.size());
    pool_->release_pages(std::span(pages).subspan(written));
    pages.resize(written);
  }
}

void sequence::fork_ragged(sequence& twin) const {
  twin.length_ = length_;
  twin.positions_ = positions_;
  for (std::size_t list = 0; list < pages_.size(); ++list) {
    const auto written = std::span(pages_[list]).first(pages_for(positions_[list].size()));
    pool_->retain_pages(written);
    twin.pages_[list].assign(written.begin(), written.end());
  }
}

} // namespace godwit
