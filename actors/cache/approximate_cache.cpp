#include "actors/cache/approximate_cache.hpp"

#include "messages/check.hpp"

#include <iterator>
#include <string>
#include <utility>

namespace godwit {
namespace {

std::uint64_t pages_of(const sequence& which) {
  const auto& shape = which.pool().shape();
  std::uint64_t pages = 0;
  for (std::uint32_t layer = 0; layer < shape.layers; ++layer)
    for (std::uint32_t head = 0; head < shape.kv_heads; ++head)
      pages += which.pages(layer, head).size();
  return pages;
}

} // namespace

approximate_cache::approximate_cache(
  std::shared_ptr<page_pool> pool, const block_hasher& hasher, approximate_cache_options options)
  : pool_(std::move(pool)), hasher_(hasher), options_(options) {
  GODWIT_CHECK(!hasher_.exact());
}

result<void> approximate_cache::insert(
  std::string_view tenant, std::span<const token_id> tokens, const sequence& of) {
  if (tokens.empty() || tokens.size() % page_tokens != 0 || tokens.size() != of.length())
    return fail(errc::invalid_argument, "a state is kept after whole blocks of its tokens, not after "
                                          + std::to_string(tokens.size()) + " for a sequence of "
                                          + std::to_string(of.length()));
  // A fork has no pages that are only reserved.
  auto kept = of.fork();
  const auto pages = pages_of(kept);
  if (pages > options_.pages || options_.entries == 0)
    return fail(errc::resource_exhausted, "the state has " + std::to_string(pages)
                                            + " pages, all of them may have "
                                            + std::to_string(options_.pages));
  auto name = hasher_.root(tenant);
  for (auto rest = tokens; !rest.empty(); rest = rest.subspan(page_tokens))
    name = hasher_.next(name, rest.first(page_tokens));
  if (const auto known = by_name_.find(name); known != by_name_.end())
    forget(known->second);
  while (pages_ + pages > options_.pages || states_.size() >= options_.entries)
    forget(std::prev(states_.end()));
  states_.push_front({name, std::move(kept), pages});
  by_name_.emplace(name, states_.begin());
  pages_ += pages;
  return {};
}

std::optional<sequence> approximate_cache::find(std::string_view tenant, std::span<const token_id> tokens) {
  auto best = by_name_.end();
  auto name = hasher_.root(tenant);
  for (; tokens.size() >= page_tokens; tokens = tokens.subspan(page_tokens)) {
    name = hasher_.next(name, tokens.first(page_tokens));
    if (const auto known = by_name_.find(name); known != by_name_.end())
      best = known;
  }
  if (best == by_name_.end())
    return std::nullopt;
  states_.splice(states_.begin(), states_, best->second);
  return best->second->kept.fork();
}

std::uint64_t approximate_cache::evict(std::uint64_t pages) {
  const auto before = pool_->used_pages();
  std::uint64_t freed = 0;
  while (freed < pages && !states_.empty()) {
    forget(std::prev(states_.end()));
    const auto now = pool_->used_pages();
    freed = before > now ? before - now : 0;
  }
  return freed;
}

void approximate_cache::forget(states::iterator which) {
  pages_ -= which->pages;
  by_name_.erase(which->name);
  states_.erase(which);
}

} // namespace godwit
