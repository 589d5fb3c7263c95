#include "actors/cache/prefix_cache.hpp"

#include "messages/check.hpp"

namespace godwit {

prefix_cache::prefix_cache(std::shared_ptr<page_pool> pool, block_hasher hasher, std::uint32_t budget)
  : pool_(std::move(pool)), hasher_(std::move(hasher)), budget_(budget) {}

prefix_cache::~prefix_cache() {
  for (const auto& [identity, which] : index_)
    pool_->release_block(entries_[which].block);
}

std::vector<block_id> prefix_cache::find(std::string_view tenant, std::span<const token_id> tokens) {
  std::vector<block_id> found;
  auto identity = hasher_.root(tenant);
  slot last = none;
  for (; tokens.size() >= page_tokens; tokens = tokens.subspan(page_tokens)) {
    identity = hasher_.next(identity, tokens.first(page_tokens));
    const auto hit = index_.find(identity);
    if (hit == index_.end())
      break;
    last = hit->second;
    found.push_back(entries_[last].block);
    pool_->retain_block(found.back());
  }
  touch(last);
  return found;
}

void prefix_cache::insert(
  std::string_view tenant, std::span<const token_id> tokens, std::span<const block_id> blocks) {
  GODWIT_CHECK(tokens.size() >= blocks.size() * page_tokens);
  auto identity = hasher_.root(tenant);
  slot last = none;
  std::size_t done = 0;
  for (; done < blocks.size(); ++done) {
    identity = hasher_.next(identity, tokens.subspan(done * page_tokens, page_tokens));
    if (const auto known = index_.find(identity); known != index_.end()) {
      pool_->release_block(blocks[done]);
      last = known->second;
      continue;
    }
    if (index_.size() >= budget_ && !evict_beside(last))
      break;
    last = add(identity, blocks[done], last);
  }
  for (; done < blocks.size(); ++done)
    pool_->release_block(blocks[done]);
  touch(last);
}

std::uint32_t prefix_cache::evict(std::uint32_t blocks) {
  std::uint32_t given_up = 0;
  // Each entry is looked at once; those in use get a second life at the new end, so that the next call does
  // not look at them again first.
  for (auto left = index_.size(); left > 0 && given_up < blocks; --left) {
    const auto which = oldest_;
    if (entries_[which].children > 0 || !pool_->exclusive(entries_[which].block)) {
      unlink(which);
      link(which);
      continue;
    }
    drop(which);
    ++given_up;
  }
  evictions_ += given_up;
  return given_up;
}

/// Gives up one block that is not part of the chain that ends with `last`.
bool prefix_cache::evict_beside(slot last) {
  // As if a block followed it: only the ends of chains are given up.
  if (last != none)
    ++entries_[last].children;
  const bool done = evict(1) == 1;
  if (last != none)
    --entries_[last].children;
  return done;
}

void prefix_cache::touch(slot last) {
  for (; last != none; last = entries_[last].parent) {
    unlink(last);
    link(last);
  }
}

void prefix_cache::link(slot which) {
  auto& item = entries_[which];
  item.older = newest_;
  item.newer = none;
  (newest_ == none ? oldest_ : entries_[newest_].newer) = which;
  newest_ = which;
}

void prefix_cache::unlink(slot which) {
  const auto& item = entries_[which];
  (item.older == none ? oldest_ : entries_[item.older].newer) = item.newer;
  (item.newer == none ? newest_ : entries_[item.newer].older) = item.older;
}

prefix_cache::slot prefix_cache::add(const block_identity& identity, block_id block, slot parent) {
  slot which = none;
  if (unused_.empty()) {
    which = static_cast<slot>(entries_.size());
    entries_.emplace_back();
  } else {
    which = unused_.back();
    unused_.pop_back();
  }
  entries_[which] = {identity, block, parent, 0, none, none};
  if (parent != none)
    ++entries_[parent].children;
  index_.emplace(identity, which);
  link(which);
  return which;
}

void prefix_cache::drop(slot which) {
  const auto& item = entries_[which];
  pool_->release_block(item.block);
  if (item.parent != none)
    --entries_[item.parent].children;
  unlink(which);
  index_.erase(item.identity);
  unused_.push_back(which);
}

} // namespace godwit
