#include "actors/cache/tiered_cache.hpp"

#include "actors/cache/tiers_up.hpp"

#include "messages/check.hpp"

#include <algorithm>
#include <utility>

namespace godwit {
namespace {

/// Jobs that may wait in a lane. Their blocks are bounded more tightly: those on their way down are blocks of
/// the pool, those on their way up too.
constexpr std::size_t most_jobs = 65'536;

std::uint32_t known_on(const prefix_cache& device, std::span<const block_identity> names) {
  const auto end =
    std::find_if(names.begin(), names.end(), [&](const auto& name) { return device.look(name) == nullptr; });
  return static_cast<std::uint32_t>(end - names.begin());
}

} // namespace

tier_lanes threaded_lanes() {
  return {threaded_lane(most_jobs), threaded_lane(most_jobs), threaded_lane(most_jobs)};
}

tier_lanes immediate_lanes() {
  return {immediate_lane(), immediate_lane(), immediate_lane()};
}

result<std::unique_ptr<tiered_cache>> tiered_cache::create(std::shared_ptr<page_pool> pool,
  const block_hasher& hasher, const prefix_cache_options& device, const tier_options& options,
  std::shared_ptr<engine_counters> counters, poster post) {
  std::unique_ptr<host_tier> host;
  if (options.host_bytes > 0) {
    auto made = host_tier::create(pool->shape().block_bytes(), options.host_bytes, device.doubles_at);
    if (!made)
      return fail(made);
    host = std::move(*made);
  }
  return std::unique_ptr<tiered_cache>(new tiered_cache(
    std::move(pool), hasher, device, options, std::move(host), std::move(counters), std::move(post)));
}

tiered_cache::tiered_cache(std::shared_ptr<page_pool> pool, const block_hasher& hasher,
  const prefix_cache_options& device, const tier_options& options, std::unique_ptr<host_tier> host,
  std::shared_ptr<engine_counters> counters, poster post)
  : pool_(std::move(pool)), hasher_(hasher), options_(options),
    in_flight_limit_(options.in_flight > 0 ? options.in_flight : std::max(pool_->capacity_blocks() / 4, 16U)),
    counters_(std::move(counters)), post_(std::move(post)), device_(pool_, hasher, device),
    host_(std::move(host)), policy_(options.mode, device.doubles_at, pool_->shape().block_bytes()) {
  if (tiers())
    lanes_ = options_.lanes ? options_.lanes() : threaded_lanes();
}

tiered_cache::~tiered_cache() {
  // What waits is dropped together with its references: the pool ends with its cache.
  for (const auto& item : loads_)
    item.second->forgone = true;
  lanes_ = {};
}

tiered_cache::block_names tiered_cache::chain_of(
  std::string_view tenant, std::span<const token_id> tokens) const {
  return name(tenant, {}, tokens);
}

std::vector<block_identity> tiered_cache::name(
  std::string_view tenant, const block_identity& parent, std::span<const token_id> tokens) const {
  block_names names(tokens.size() / page_tokens);
  hasher_.chain(parent == block_identity{} ? hasher_.root(tenant) : parent,
    tokens.first(names.size() * page_tokens), names);
  return names;
}

void tiered_cache::behind(work_lane& lane, task then) const {
  const auto shared = std::make_shared<task>(std::move(then));
  if (!lane.submit([this, shared] { post(*shared); }, false))
    post(*shared);
}

std::vector<block_id> tiered_cache::hold(std::string_view tenant, std::span<const token_id> tokens) const {
  std::vector<block_id> out;
  for (const auto& name : chain_of(tenant, tokens)) {
    const auto* entry = device_.look(name);
    if (entry == nullptr)
      break;
    out.push_back(entry->where);
  }
  pool_->retain_blocks(out);
  return out;
}

tier_holdings tiered_cache::probe(std::string_view tenant, std::span<const token_id> tokens) const {
  const auto names = chain_of(tenant, tokens);
  tier_holdings out;
  out.device = known_on(device_, names) * page_tokens;
  if (host_)
    out.host = static_cast<std::uint32_t>(host_->known(names)) * page_tokens;
  if (options_.cold)
    out.disk = static_cast<std::uint32_t>(options_.cold->known(names)) * page_tokens;
  return out;
}

void tiered_cache::evict(std::uint32_t blocks, std::function<void(std::uint32_t)> done) {
  evictions_.push_back({blocks, 0, std::move(done)});
  serve_evictions();
}

/// Those that wait, in their order; the last resort, ending pins, only when no copy will free any more.
void tiered_cache::serve_evictions() {
  while (!evictions_.empty()) {
    auto& next = evictions_.front();
    next.freed += device_.evict_unpinned(next.wanted - next.freed);
    if (next.freed < next.wanted) {
      if (copying_ > 0)
        return;
      next.freed += device_.evict(next.wanted - next.freed);
    }
    const auto freed = next.freed;
    const auto done = std::move(next.done);
    evictions_.pop_front();
    done(freed);
  }
}

void tiered_cache::count() const {
  auto& to = *counters_;
  to.pinned_blocks = device_.pinned_blocks();
  to.index_bytes = device_.index_bytes();
  to.cached_blocks = device_.size();
  to.evicted_blocks = device_.evictions();
  to.free_blocks = pool_->free_blocks();
  to.offload_waiting = copying_ + writing_.size();
  if (host_) {
    to.host_blocks = host_->size();
    to.host_bytes = host_->bytes();
    to.host_evicted = host_->evictions();
  }
  if (options_.cold) {
    const auto stats = options_.cold->stats();
    to.disk_blocks = stats.blocks;
    to.disk_bytes = stats.bytes;
    to.disk_evicted = stats.evicted;
    to.disk_damaged = stats.damaged;
    to.disk_failures = stats.failures;
    to.disk_degraded = stats.degraded || refused_ ? 1 : 0;
  }
}

} // namespace godwit
