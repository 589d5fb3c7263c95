#include "actors/cache/prefix_cache.hpp"

#include "messages/check.hpp"

#include <algorithm>
#include <array>

namespace godwit {

prefix_cache::prefix_cache(std::shared_ptr<page_pool> pool, block_hasher hasher, prefix_cache_options options)
  : pool_(std::move(pool)), hasher_(std::move(hasher)), options_(options), index_(options.doubles_at) {
  GODWIT_CHECK(hasher_.exact());
}

prefix_cache::~prefix_cache() {
  while (!pins_.empty())
    end(pins_.begin());
  for (auto which = index_.worst(); which != none; which = index_.worst()) {
    pool_->release_block(index_[which].where);
    index_.erase(which);
  }
}

std::vector<block_id> prefix_cache::find(std::string_view tenant, std::span<const token_id> tokens) {
  walk at;
  at.found.reserve(tokens.size() / page_tokens);
  auto identity = hasher_.root(tenant);
  std::array<block_identity, stride> ahead;
  for (bool known = true; known && tokens.size() >= page_tokens;) {
    const auto names = std::span(ahead).first(std::min(tokens.size() / page_tokens, ahead.size()));
    hasher_.chain(identity, tokens.first(names.size() * page_tokens), names);
    identity = names.back();
    known = follow(at, names);
    tokens = tokens.subspan(names.size() * page_tokens);
  }
  return arrive(at);
}

std::vector<block_id> prefix_cache::find(std::span<const block_identity> names) {
  walk at;
  at.found.reserve(names.size());
  for (bool known = true; known && !names.empty();) {
    const auto next = names.first(std::min(names.size(), stride));
    known = follow(at, next);
    names = names.subspan(next.size());
  }
  return arrive(at);
}

/// Blocks of a text that was learned at once stand side by side in the index, those of streams that ran side
/// by side as far apart as there were streams. Where neither holds, the places of some are asked for before
/// the first one is looked at: places do not depend on each other, as names do.
/// @returns false if one is not known
bool prefix_cache::follow(walk& at, std::span<const block_identity> names) {
  if (at.scattered) {
    for (const auto& name : names)
      index_.prefetch(name);
    for (const auto& name : names)
      index_.prefetch_entry(name);
  }
  std::size_t misses = 0;
  for (const auto& name : names) {
    const auto guess = at.last + at.step;
    const auto hit = index_.find_near(guess, name);
    if (hit == none)
      return false;
    if (hit != guess) {
      ++misses;
      at.step = at.last == none ? 1 : hit - at.last;
    }
    at.last = hit;
    at.found.push_back(index_.visit(hit).where);
  }
  at.scattered = misses > names.size() / 4;
  return true;
}

std::vector<block_id> prefix_cache::arrive(walk& at) {
  index_.visited(at.last);
  pool_->retain_blocks(at.found);
  return std::move(at.found);
}

void prefix_cache::insert(std::span<const block_identity> names, std::span<const block_id> blocks) {
  learn(none, names, blocks);
}

void prefix_cache::insert(
  std::string_view tenant, std::span<const token_id> tokens, std::span<const block_id> blocks) {
  GODWIT_CHECK(tokens.size() >= blocks.size() * page_tokens);
  std::vector<block_identity> names(blocks.size());
  hasher_.chain(hasher_.root(tenant), tokens.first(blocks.size() * page_tokens), names);
  learn(none, names, blocks);
}

void prefix_cache::extend(
  const block_identity& parent, std::span<const block_identity> names, std::span<const block_id> blocks) {
  const auto last = index_.find(parent);
  if (last == none)
    pool_->release_blocks(blocks);
  else
    learn(last, names, blocks);
}

void prefix_cache::learn(slot last, std::span<const block_identity> names, std::span<const block_id> blocks) {
  GODWIT_CHECK(names.size() == blocks.size());
  std::size_t done = 0;
  for (; done < blocks.size(); ++done) {
    if (const auto known = index_.find(names[done]); known != none) {
      pool_->release_block(blocks[done]);
      index_.refresh(known);
      last = known;
      continue;
    }
    if (index_.size() >= options_.budget && !evict_beside(last))
      break;
    last = index_.add(names[done], blocks[done], last);
  }
  pool_->release_blocks(blocks.subspan(done));
  index_.added(last);
}

std::uint32_t prefix_cache::evict(std::uint32_t blocks) {
  auto given_up = evict_unpinned(blocks);
  while (given_up < blocks && !pins_.empty()) {
    // The pin that would end first anyway.
    const auto first = std::min_element(pins_.begin(), pins_.end(),
      [](const auto& a, const auto& b) { return a.second.until < b.second.until; });
    end(first);
    given_up += evict_unpinned(blocks - given_up);
  }
  return given_up;
}

std::uint32_t prefix_cache::evict_unpinned(std::uint32_t blocks) {
  std::uint32_t given_up = 0;
  std::vector<slot> in_use;
  while (given_up < blocks) {
    const auto which = index_.worst();
    if (which == none)
      break;
    const auto block = index_[which].where;
    if (!pool_->exclusive(block)) {
      index_.set_aside(which);
      in_use.push_back(which);
      continue;
    }
    index_.give_up(which);
    pool_->release_block(block);
    ++given_up;
  }
  for (const auto which : in_use)
    index_.put_back(which);
  evictions_ += given_up;
  return given_up;
}

const block_index::entry* prefix_cache::look(const block_identity& identity) const {
  const auto which = index_.find(identity);
  return which == none ? nullptr : &index_[which];
}

bool prefix_cache::leave(const block_identity& identity) {
  const auto which = index_.find(identity);
  if (which == none || index_[which].children > 0 || index_[which].pins > 0)
    return false;
  const auto block = index_[which].where;
  if (!pool_->exclusive(block))
    return false;
  index_.erase(which);
  pool_->release_block(block);
  return true;
}

void prefix_cache::leave_behind(const block_identity& identity, std::size_t most) {
  std::vector<block_identity> tail;
  auto last = index_.find(identity);
  while (last != none && index_[last].children > 0) {
    last = index_.only_child(last);
    if (last == none || index_[last].hits > 0 || tail.size() == most)
      return;
    tail.push_back(index_[last].identity);
  }
  while (!tail.empty() && leave(tail.back()))
    tail.pop_back();
}

bool prefix_cache::evict_beside(slot last) {
  // It is among the ends if it was known before.
  const bool is_end = last != none && index_[last].heap != none;
  if (is_end)
    index_.set_aside(last);
  const bool done = evict_unpinned(1) == 1;
  if (is_end)
    index_.put_back(last);
  return done;
}

result<prefix_pin> prefix_cache::pin(
  std::string_view tenant, std::span<const token_id> tokens, clock::time_point until) {
  prefix_pin out;
  auto identity = hasher_.root(tenant);
  slot last = none;
  for (; tokens.size() >= page_tokens; tokens = tokens.subspan(page_tokens)) {
    identity = hasher_.next(identity, tokens.first(page_tokens));
    const auto hit = index_.find(identity);
    if (hit == none)
      break;
    last = hit;
    ++out.blocks;
  }
  if (last == none)
    return fail(errc::not_found, "no block of these tokens is in the cache");
  const auto owner = by_tenant_.find(tenant);
  const auto has = owner == by_tenant_.end() ? holdings{} : owner->second;
  const auto more = index_.unpinned_before(last);
  if (has.pins >= options_.most_pins)
    return fail(errc::resource_exhausted,
      "this tenant has " + std::to_string(has.pins) + " pins, the most that are allowed");
  if (has.blocks + more > options_.pin_quota)
    return fail(errc::resource_exhausted, "the tenant would pin " + std::to_string(has.blocks + more)
                                            + " blocks, and may pin " + std::to_string(options_.pin_quota));
  if (index_.pin(last) == none)
    return fail(errc::resource_exhausted, "a block of this prefix has too many pins");
  auto& account = by_tenant_[std::string(tenant)];
  account.blocks += more;
  ++account.pins;
  pinned_blocks_ += more;
  out.id = ++last_pin_;
  pins_.emplace(out.id, pinned{std::string(tenant), last, until});
  return out;
}

bool prefix_cache::unpin(std::string_view tenant, pin_id pin) {
  const auto which = pins_.find(pin);
  if (which == pins_.end() || which->second.tenant != tenant)
    return false;
  end(which);
  return true;
}

void prefix_cache::expire(clock::time_point now) {
  for (auto which = pins_.begin(); which != pins_.end();)
    which = which->second.until <= now ? end(which) : std::next(which);
}

prefix_cache::pins_by_id::iterator prefix_cache::end(pins_by_id::iterator which) {
  const auto freed = index_.unpin(which->second.last);
  pinned_blocks_ -= freed;
  const auto account = by_tenant_.find(which->second.tenant);
  account->second.blocks -= freed;
  if (--account->second.pins == 0)
    by_tenant_.erase(account);
  return pins_.erase(which);
}

} // namespace godwit
