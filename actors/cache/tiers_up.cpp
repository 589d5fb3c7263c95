// How a tiered_cache brings blocks to the device.

#include "actors/cache/tiers_up.hpp"

#include "kernels/memory/block_copy.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace godwit {
namespace {

using clock = std::chrono::steady_clock;

/// Blocks that are read from the cold store in one call: whoever leaves waits for so many at most.
constexpr std::size_t read_batch = 8;
/// A read that takes longer is a disk that hangs: nobody waits behind it.
constexpr auto stuck = std::chrono::seconds(1);
/// How long loads may take of which nobody knows what computing would cost.
constexpr auto blind_patience = std::chrono::milliseconds(5000);
constexpr auto least_patience = std::chrono::milliseconds(100);
constexpr auto most_patience = std::chrono::milliseconds(60'000);
/// Units of prompt work that say something about the machine.
constexpr std::uint64_t telling_work = 64;

double seconds_since(clock::time_point start) {
  return std::chrono::duration<double>(clock::now() - start).count();
}

std::chrono::milliseconds patience_for(onboarding mode, double compute) {
  if (mode != onboarding::measured)
    return most_patience;
  if (compute <= 0)
    return blind_patience;
  const auto whole = std::chrono::milliseconds(static_cast<std::int64_t>(std::min(compute, 60.0) * 1000));
  return std::clamp(whole, least_patience, most_patience);
}

} // namespace

tier_answer tiered_cache::find(request_id request, std::string_view tenant, std::span<const token_id> tokens,
  std::function<void(tier_load)> then) {
  tier_answer out;
  if (!tiers()) {
    out.blocks = device_.find(tenant, tokens);
    return out;
  }
  forgo(request);
  const auto names = chain_of(tenant, tokens);
  out.blocks = device_.find(names);
  const auto depth = out.blocks.size();
  keep_reused(tenant, std::span(names).first(depth));
  const auto rest = std::span(names).subspan(depth);
  const auto host = host_ ? static_cast<std::uint32_t>(host_->known(rest)) : 0;
  auto disk = options_.cold ? static_cast<std::uint32_t>(options_.cold->known(rest.subspan(host))) : 0;
  counters_->host_misses += rest.size() - host;
  counters_->disk_misses += rest.size() - host - disk;
  if (lanes_.read->busy() > stuck)
    disk = 0;
  if (host + disk == 0)
    return out;

  learn_rates();
  const auto chosen = policy_.choose(static_cast<std::uint32_t>(depth), host, disk, expected_wait());
  counters_->onboard_declined += host + disk - chosen.host - chosen.disk;
  const auto wanted = chosen.host + chosen.disk;
  if (wanted == 0)
    return out;
  const auto blocks = room_for(wanted, chosen.gap);
  if (blocks.empty()) {
    out.waiting = wanted + chosen.gap;
    return out;
  }
  ++counters_->onboard_loads;
  out.patience = patience_for(options_.mode, chosen.compute);
  const auto first = static_cast<std::uint32_t>(depth);
  if (chosen.gap == 0) {
    out.loading = wanted;
    begin_load(request, names, {first, chosen.host, chosen.disk}, blocks, then);
    return out;
  }
  ++counters_->onboard_overlapped;
  out.loading = wanted;
  out.gap = chosen.gap;
  out.tail = chosen.disk;
  const auto own = std::span(blocks);
  begin_load(
    request, names, {first + chosen.host + chosen.gap, 0, chosen.disk, true}, own.subspan(chosen.host), then);
  if (chosen.host > 0)
    begin_load(request, names, {first, chosen.host, 0}, own.first(chosen.host), then);
  return out;
}

void tiered_cache::learn_rates() {
  const auto work = counters_->prompt_work.load();
  const auto time = counters_->prompt_nanoseconds.load();
  if (work < seen_work_ + telling_work)
    return;
  policy_.prefill_took(
    static_cast<double>(work - seen_work_), static_cast<double>(time - seen_nanoseconds_) * 1e-9);
  seen_work_ = work;
  seen_nanoseconds_ = time;
}

double tiered_cache::expected_wait() const {
  double seconds = 0;
  for (const auto& item : loads_)
    seconds += item.second->expected;
  return seconds;
}

/// So many blocks of the pool, all or none. Leaves one for each sequence that runs, so that none loses its
/// pages with its next token because of a prompt that has not even begun, and those that the prompt computes
/// beside them.
std::vector<block_id> tiered_cache::room_for(std::uint32_t blocks, std::uint32_t beside) {
  const auto wanted = blocks + beside + static_cast<std::uint32_t>(counters_->sequences.load()) + 1;
  if (wanted > pool_->capacity_blocks())
    return {};
  if (const auto free = pool_->free_blocks(); free < wanted)
    device_.evict_unpinned(wanted - free);
  std::vector<block_id> out;
  if (pool_->free_blocks() < wanted)
    return out;
  while (out.size() < blocks) {
    const auto block = pool_->allocate_block();
    if (!block) { // the device was faster
      pool_->release_blocks(out);
      return {};
    }
    out.push_back(*block);
  }
  return out;
}

void tiered_cache::begin_load(request_id request, const block_names& names, const stretch& which,
  std::span<const block_id> blocks, const std::function<void(tier_load)>& then) {
  auto what = std::make_shared<load>();
  what->key = {request, which.behind_a_gap};
  what->first = which.first;
  if (which.first > 0)
    what->parent = names[which.first - 1];
  const auto mine = std::span(names).subspan(which.first, blocks.size());
  what->names.assign(mine.begin(), mine.end());
  what->blocks.assign(blocks.begin(), blocks.end());
  for (std::uint32_t i = 0; i < which.host; ++i) {
    what->places.push_back(host_->find(what->names[i]));
    host_->hold(what->places.back());
  }
  what->then = then;
  what->since = clock::now();
  what->expected = policy_.reading(which.host, which.disk);
  loads_[what->key] = what;
  counters_->onboard_staged += what->blocks.size();
  auto& lane = which.disk > 0 ? *lanes_.read : *lanes_.memory;
  const auto submitted = lane.submit(
    [this, what] {
      run(*what);
      post([this, what] { loaded(what); });
    },
    true);
  if (!submitted)
    post([this, what] { loaded(what); });
}

/// On the lane's thread.
void tiered_cache::run(load& what) const {
  const auto start = clock::now();
  for (std::size_t i = 0; i < what.places.size() && !what.forgone; ++i) {
    const auto from = host_->contents(what.places[i]);
    std::memcpy(block_contents(*pool_, what.blocks[i]).data(), from.data(), from.size());
    ++what.host_done;
  }
  what.host_seconds = seconds_since(start);
  if (what.host_done < what.places.size())
    return;
  const auto began = clock::now();
  for (auto i = what.places.size(); i < what.blocks.size() && !what.forgone;) {
    const auto count = std::min(read_batch, what.blocks.size() - i);
    std::array<std::span<std::byte>, read_batch> into;
    for (std::size_t k = 0; k < count; ++k)
      into[k] = block_contents(*pool_, what.blocks[i + k]);
    const auto good =
      options_.cold->read(std::span(what.names).subspan(i, count), std::span(into).first(count));
    what.disk_done += static_cast<std::uint32_t>(good);
    if (good < count)
      break;
    i += count;
  }
  what.disk_seconds = seconds_since(began);
}

void tiered_cache::loaded(const std::shared_ptr<load>& what) {
  for (const auto place : what->places)
    host_->let_go(place);
  policy_.host_took(what->host_done, what->host_seconds);
  policy_.disk_took(what->disk_done, what->disk_seconds);
  counters_->host_hits += what->host_done;
  counters_->disk_hits += what->disk_done;
  counters_->onboard_staged -= what->blocks.size();
  counters_->onboard_nanoseconds += static_cast<std::uint64_t>(seconds_since(what->since) * 1e9);
  if (host_)
    host_->asked(std::span(what->names).first(what->host_done));
  if (what->forgone) {
    pool_->release_blocks(what->blocks);
    ++counters_->onboard_forgone;
  } else {
    loads_.erase(what->key);
    const std::size_t done = what->host_done + what->disk_done;
    const auto good = std::span(what->blocks).first(done);
    pool_->release_blocks(std::span(what->blocks).subspan(done));
    pool_->retain_blocks(good);
    const auto names = std::span(what->names).first(done);
    if (what->parent == block_identity{})
      device_.insert(names, good);
    else
      device_.extend(what->parent, names, good);
    const auto other = loads_.find({what->key.first, !what->key.second});
    const auto left = other == loads_.end() ? 0 : other->second->blocks.size();
    what->then({{good.begin(), good.end()}, what->first, what->host_done, what->disk_done,
      static_cast<std::uint32_t>(left)});
  }
  // Blocks that an eviction waits for may have come free.
  serve_evictions();
  count();
}

void tiered_cache::forgo(request_id request) {
  for (const bool behind_a_gap : {false, true})
    if (const auto item = loads_.find({request, behind_a_gap}); item != loads_.end()) {
      item->second->forgone = true;
      loads_.erase(item);
    }
}

} // namespace godwit
