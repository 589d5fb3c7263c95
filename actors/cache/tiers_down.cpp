// How a tiered_cache moves blocks to the lower tiers.

#include "actors/cache/tiers_up.hpp"

#include "kernels/memory/block_copy.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace godwit {
namespace {

/// Blocks of one copying job: a load that comes waits for so many at most.
constexpr std::size_t copy_batch = 32;
/// One commit of the cold store costs four syncs, whatever its size.
constexpr std::size_t write_bytes = std::size_t{24} << 20;
constexpr std::size_t write_blocks = 64;
constexpr std::uint32_t most_suspensions = 16;
/// After the cold store refused a write, nothing but suspensions asks it for so long.
constexpr auto pause_after_refusal = std::chrono::seconds(5);
/// The device closes a sequence between two steps: its blocks are held until then.
constexpr auto closing_pause = std::chrono::milliseconds(50);
constexpr unsigned closing_tries = 40;
/// Blocks that a generation may be ahead of its session: its credit, and a part of one.
constexpr std::size_t unclaimed = 5;

} // namespace

/// Blocks on their way to the host, with a reference and a held place for each.
struct tiered_cache::copy {
  std::vector<block_id> blocks;
  std::vector<host_tier::place> places;
  block_names names;
};

/// Blocks on their way to the cold store.
struct tiered_cache::writing {
  struct item {
    block_identity name;
    block_identity parent;
    std::uint32_t depth = 0;
    std::uint8_t hits = 0;
    host_tier::place place = host_tier::nowhere; ///< held; nowhere: it comes from the device
    block_id block = 0;                          ///< with a reference
  };
  std::string tenant;
  std::vector<item> items;
  result<void> outcome = {};
};

struct tiered_cache::suspension {
  std::string tenant;
  std::vector<token_id> tokens;
  block_names names;
  bool host_too = false; ///< the cold store has all: the host need not
  unsigned tries = closing_tries;
  std::function<void(result<tier_holdings>)> done;
};

void tiered_cache::keep_reused(std::string_view tenant, std::span<const block_identity> chain) {
  // Whoever asked for a block asked for those before it too.
  const auto fresh = std::find_if(chain.begin(), chain.end(), [&](const auto& name) {
    const auto* entry = device_.look(name);
    return entry == nullptr || entry->hits < options_.reuse;
  });
  const auto reused = chain.first(static_cast<std::size_t>(fresh - chain.begin()));
  if (reused.empty())
    return;
  const bool to_disk = options_.cold && options_.cold->known(reused) < reused.size();
  if (!host_) {
    if (to_disk)
      write_down(tenant, reused, true);
    return;
  }
  const auto copies = copy_down(reused, true);
  if (!to_disk)
    return;
  if (copies == 0)
    return write_down(tenant, reused, true);
  // From the host, so that the device's blocks are held for the copy only and not for the disk.
  behind(
    *lanes_.memory, [this, tenant = std::string(tenant), names = block_names(reused.begin(), reused.end())] {
      write_down(tenant, names, true);
      count();
    });
}

void tiered_cache::told(std::string_view tenant, std::span<const block_identity> names) {
  if (options_.reuse == 0 && tiers())
    keep_reused(tenant, names);
}

void tiered_cache::swapped(std::span<const block_identity> names) {
  if (host_)
    counters_->swapped_blocks += copy_down(names, false);
}

/// Has those copied that are on the device and not in the host tier. @returns how many
std::size_t tiered_cache::copy_down(std::span<const block_identity> chain, bool bounded) {
  copy batch;
  std::size_t queued = 0;
  for (std::size_t i = 0; i < chain.size(); ++i) {
    if (host_->has(chain[i]))
      continue;
    const auto* entry = device_.look(chain[i]);
    if (entry == nullptr)
      break;
    const auto place = bounded && copying_ >= in_flight_limit_
                         ? host_tier::nowhere
                         : host_->reserve(chain[i], i == 0 ? nullptr : &chain[i - 1]);
    if (place == host_tier::nowhere) {
      counters_->offload_dropped += chain.size() - i;
      break;
    }
    pool_->retain_block(entry->where);
    batch.blocks.push_back(entry->where);
    batch.places.push_back(place);
    batch.names.push_back(chain[i]);
    ++copying_;
    ++queued;
    if (batch.blocks.size() == copy_batch && !submit(std::exchange(batch, {})))
      return queued - copy_batch;
  }
  if (!batch.blocks.empty()) {
    const auto size = batch.blocks.size();
    if (!submit(std::move(batch)))
      return queued - size;
  }
  return queued;
}

bool tiered_cache::submit(copy batch) {
  const auto what = std::make_shared<const copy>(std::move(batch));
  const auto submitted = lanes_.memory->submit(
    [this, what] {
      for (std::size_t i = 0; i < what->blocks.size(); ++i) {
        const auto from = block_contents(*pool_, what->blocks[i]);
        std::memcpy(host_->contents(what->places[i]).data(), from.data(), from.size());
      }
      post([this, what] { copied(*what); });
    },
    false);
  if (submitted)
    return true;
  counters_->offload_dropped += what->blocks.size();
  copying_ -= static_cast<std::uint32_t>(what->blocks.size());
  pool_->release_blocks(what->blocks);
  for (auto i = what->names.size(); i > 0; --i) {
    host_->let_go(what->places[i - 1]);
    host_->erase(what->names[i - 1]);
  }
  return false;
}

void tiered_cache::copied(const copy& done) {
  pool_->release_blocks(done.blocks);
  for (const auto place : done.places)
    host_->filled(place);
  copying_ -= static_cast<std::uint32_t>(done.blocks.size());
  counters_->offloaded_blocks += done.blocks.size();
  serve_evictions();
  count();
}

/// Has those written that are on the device or in the host tier and not in the cold store.
void tiered_cache::write_down(std::string_view tenant, std::span<const block_identity> chain, bool bounded) {
  if (bounded && refused_ && std::chrono::steady_clock::now() < retry_at_) {
    counters_->offload_dropped += chain.size();
    return;
  }
  const auto most = std::clamp<std::size_t>(write_bytes / pool_->shape().block_bytes(), 1, write_blocks);
  writing batch;
  batch.tenant = tenant;
  for (auto i = options_.cold->known(chain); i < chain.size(); ++i) {
    if (writing_.contains(chain[i]))
      continue;
    if (bounded && writing_.size() >= in_flight_limit_) {
      counters_->offload_dropped += chain.size() - i;
      break;
    }
    writing::item item;
    item.name = chain[i];
    item.parent = i == 0 ? hasher_.root(tenant) : chain[i - 1];
    item.depth = static_cast<std::uint32_t>(i);
    const auto* entry = device_.look(chain[i]);
    item.hits = entry == nullptr ? 1 : entry->hits;
    item.place = host_ ? host_->find(chain[i]) : host_tier::nowhere;
    if (item.place != host_tier::nowhere) {
      host_->hold(item.place);
    } else if (entry != nullptr) {
      item.block = entry->where;
      pool_->retain_block(item.block);
    } else {
      break;
    }
    writing_.insert(chain[i]);
    batch.items.push_back(item);
    if (batch.items.size() == most) {
      submit(std::move(batch));
      batch = {};
      batch.tenant = tenant;
    }
  }
  if (!batch.items.empty())
    submit(std::move(batch));
}

void tiered_cache::submit(writing batch) {
  const auto what = std::make_shared<writing>(std::move(batch));
  const auto submitted = lanes_.write->submit(
    [this, what] {
      std::vector<cold_block> blocks;
      for (const auto& item : what->items)
        blocks.push_back({item.name, item.parent, item.depth, item.hits, what->tenant,
          item.place != host_tier::nowhere ? host_->contents(item.place)
                                           : block_contents(*pool_, item.block)});
      what->outcome = options_.cold->write(blocks);
      post([this, what] { written(*what); });
    },
    false);
  if (submitted)
    return;
  what->outcome = fail(errc::overloaded, "too much waits for the cold tier");
  written(*what);
}

void tiered_cache::written(const writing& done) {
  for (const auto& item : done.items) {
    writing_.erase(item.name);
    if (item.place != host_tier::nowhere)
      host_->let_go(item.place);
    else
      pool_->release_block(item.block);
  }
  if (done.outcome)
    counters_->stored_blocks += done.items.size();
  else
    counters_->offload_dropped += done.items.size();
  // The store itself tells the operator.
  refused_ = !done.outcome;
  if (refused_)
    retry_at_ = std::chrono::steady_clock::now() + pause_after_refusal;
  serve_evictions();
  count();
}

/// Frees what nobody else uses, from the end on. @returns false if the last one is still in use
bool tiered_cache::leave(std::span<const block_identity> chain, bool host_too) {
  if (!chain.empty())
    device_.leave_behind(chain.back(), unclaimed);
  bool last_is_free = true;
  for (auto i = chain.size(); i > 0; --i)
    if (const auto* entry = device_.look(chain[i - 1]); entry != nullptr && !device_.leave(chain[i - 1])) {
      last_is_free = i < chain.size() || entry->children > 0 || entry->pins > 0;
      break;
    }
  if (host_ && host_too)
    for (auto i = chain.size(); i > 0; --i)
      if (host_->has(chain[i - 1]) && !host_->erase(chain[i - 1]))
        break;
  return last_is_free;
}

void tiered_cache::suspend(std::string_view tenant, std::span<const token_id> tokens,
  std::function<void(result<tier_holdings>)> done) {
  if (suspending_ >= most_suspensions)
    return done(fail(errc::overloaded, "too many sessions are being suspended: try again later"));
  ++suspending_;
  const auto what = std::make_shared<suspension>();
  what->tenant = tenant;
  what->tokens.assign(tokens.begin(), tokens.end());
  what->names = chain_of(tenant, tokens);
  what->done = std::move(done);
  const auto gone = std::find_if(what->names.begin(), what->names.end(), [this](const auto& name) {
    return device_.look(name) == nullptr && (!host_ || host_->find(name) == host_tier::nowhere);
  });
  what->names.erase(gone, what->names.end());
  if (!tiers())
    return settle(what);
  const auto to_host = [this, what] {
    if (host_)
      copy_down(what->names, false);
    behind(*lanes_.memory, [this, what] { settle(what); });
  };
  if (!options_.cold)
    return to_host();
  write_down(what->tenant, what->names, false);
  behind(*lanes_.write, [this, what, to_host] {
    what->host_too = options_.cold->known(what->names) == what->names.size();
    if (!what->host_too)
      return to_host();
    // Copies to the host that were under way hold blocks.
    behind(*lanes_.memory, [this, what] { settle(what); });
  });
}

void tiered_cache::settle(const std::shared_ptr<suspension>& what) {
  if (!leave(what->names, what->host_too) && what->tries-- > 0)
    return post_([this, what] { settle(what); }, closing_pause);
  --suspending_;
  serve_evictions();
  count();
  what->done(probe(what->tenant, what->tokens));
}

} // namespace godwit
