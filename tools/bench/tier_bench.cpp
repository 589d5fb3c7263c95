#include "tools/bench/tier_bench.hpp"

#include "actors/cache/tiered_cache.hpp"
#include "kernels/memory/sequence.hpp"
#include "messages/check.hpp"
#include "services/coldstore/cold_options.hpp"
#include "tools/bench/measuring.hpp"

#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace godwit::bench {

namespace {

using clock = std::chrono::steady_clock;

constexpr std::uint32_t streams = 8;
constexpr std::uint32_t stream_context = 128;
const std::string tenant = "tenant";

/// A store on a disk that takes so long for a block.
class slow_store final : public cold_store {
 public:
  slow_store(std::shared_ptr<cold_store> under, double block_seconds)
    : under_(std::move(under)), block_(block_seconds) {}

  std::size_t known(std::span<const block_identity> chain) const override { return under_->known(chain); }
  std::size_t read(
    std::span<const block_identity> chain, std::span<const std::span<std::byte>> into) override {
    const auto begin = clock::now();
    const auto good = under_->read(chain, into);
    std::this_thread::sleep_until(begin + block_ * static_cast<double>(good));
    return good;
  }
  result<void> write(std::span<const cold_block> blocks) override { return under_->write(blocks); }
  cold_stats stats() const override { return under_->stats(); }

 private:
  std::shared_ptr<cold_store> under_;
  std::chrono::duration<double> block_;
};

/// A cache with tiers, run by the bench's thread as an actor would run it.
class tiers {
 public:
  tiers(const kv_shape& shape, const cache_scope& scope, std::uint32_t blocks, const tier_options& options)
    : pool(page_pool::create(shape, blocks).value()) {
    cache = tiered_cache::create(pool, block_hasher(identity_key::derive({}), scope), {.budget = blocks},
      options, counters, [this](tiered_cache::task what, std::chrono::milliseconds) {
        post(std::move(what));
      }).value();
  }

  void post(tiered_cache::task what) {
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(what));
    }
    there_.notify_one();
  }
  /// Does what there is to do.
  void turn() {
    std::unique_lock lock(mutex_);
    run(lock);
  }
  template <class Condition>
  void wait(Condition done) {
    std::unique_lock lock(mutex_);
    while (!done()) {
      there_.wait(lock, [&] { return !tasks_.empty(); });
      run(lock);
    }
  }

  /// The blocks of a prompt, from wherever they are.
  std::vector<block_id> find(std::span<const token_id> prompt) {
    bool loaded = false;
    tier_load load;
    auto answer = cache->find(1, tenant, prompt, [&](tier_load what) {
      load = std::move(what);
      loaded = true;
    });
    if (answer.loading > 0)
      wait([&] { return loaded; });
    answer.blocks.insert(answer.blocks.end(), load.blocks.begin(), load.blocks.end());
    return answer.blocks;
  }
  void suspend(std::span<const token_id> prompt) {
    bool done = false;
    cache->suspend(tenant, prompt, [&](const result<tier_holdings>&) { done = true; });
    wait([&] { return done; });
  }

  std::shared_ptr<page_pool> pool;
  std::shared_ptr<engine_counters> counters = std::make_shared<engine_counters>();
  std::unique_ptr<tiered_cache> cache;

 private:
  void run(std::unique_lock<std::mutex>& lock) {
    while (!tasks_.empty()) {
      const auto next = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      next();
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable there_;
  std::deque<tiered_cache::task> tasks_;
};

class tier_bench {
 public:
  tier_bench(model& runs, std::uint32_t tokens, std::filesystem::path folder)
    : runs_(runs), tokens_(tokens), folder_(std::move(folder)), logits_(runs.shape().vocabulary) {
    scope_.fingerprint = runs.fingerprint();
    scope_.shape = runs.shape().kv;
  }

  result<std::shared_ptr<cold_store>> open() const {
    cold_options options;
    options.folder = folder_;
    options.limit_bytes = 64 * prompt_bytes() + (std::uint64_t{64} << 20);
    options.scope = scope_;
    auto made = open_cold_store(options);
    if (!made)
      return fail(made);
    return std::shared_ptr<cold_store>(std::move(*made));
  }

  std::unique_ptr<tiers> start(const std::shared_ptr<cold_store>& cold, std::uint64_t host_bytes,
    onboarding mode = onboarding::always) const {
    const auto blocks = 2 * blocks_for(tokens_) + streams * (blocks_for(stream_context) + 64) + 2;
    return std::make_unique<tiers>(runs_.shape().kv, scope_, blocks,
      tier_options{.host_bytes = host_bytes, .cold = cold, .in_flight = blocks, .mode = mode});
  }

  std::uint64_t prompt_bytes() const {
    return std::uint64_t{blocks_for(tokens_)} * runs_.shape().kv.block_bytes();
  }

  /// Computes a prompt and has the cache learn it. @returns milliseconds
  double compute(tiers& in, std::span<const token_id> prompt) {
    sequence target(*in.pool);
    const auto begin = clock::now();
    GODWIT_CHECK(read_prompt(runs_, target, prompt, logits_).has_value());
    const auto took = seconds_since(begin) * 1e3;
    const auto full = target.blocks().first(prompt.size() / page_tokens);
    in.pool->retain_blocks(full);
    in.cache->device().insert(tenant, prompt, full);
    return took;
  }

  /// Finds a prompt and computes what is missing. @returns milliseconds
  double find(tiers& in, std::span<const token_id> prompt) {
    const auto expected = logits_;
    sequence target(*in.pool);
    const auto begin = clock::now();
    target.adopt(in.find(prompt.first(prompt.size() - 1)));
    // All of it must have been found, or another thing is measured.
    GODWIT_CHECK(target.length() == (prompt.size() - 1) / page_tokens * page_tokens);
    GODWIT_CHECK(read_prompt(runs_, target, prompt.subspan(target.length()), logits_).has_value());
    const auto took = seconds_since(begin) * 1e3;
    GODWIT_CHECK(logits_ == expected);
    return took;
  }

  result<void> hits(tier_rates& out, std::uint32_t rounds) {
    std::vector<double> cold;
    std::vector<double> host;
    std::vector<double> disk;
    for (std::uint32_t round = 0; round <= rounds; ++round) {
      const auto prompt = any_tokens(tokens_, runs_.shape().vocabulary, 77 + round);
      auto store = open();
      if (!store)
        return fail(store);
      {
        const auto in = start(nullptr, prompt_bytes());
        cold.push_back(compute(*in, prompt));
        in->suspend(prompt);
        host.push_back(find(*in, prompt));
      }
      {
        const auto in = start(*store, 0);
        compute(*in, prompt);
        in->suspend(prompt);
      }
      store->reset();
      store = open();
      if (!store)
        return fail(store);
      const auto in = start(*store, 0);
      disk.push_back(find(*in, prompt));
    }
    // The first round warms up.
    for (auto* times : {&cold, &host, &disk})
      times->erase(times->begin());
    out.cold_ms = median(cold);
    out.host_ms = median(host);
    out.disk_ms = median(disk);
    return {};
  }

  /// Finds a prompt on disk, and computes what the cache leaves to be computed while the rest is read.
  /// @returns milliseconds
  double find_beside(tiers& in, std::span<const token_id> prompt) {
    const auto expected = logits_;
    sequence target(*in.pool);
    const auto begin = clock::now();
    std::optional<tier_load> load;
    const auto answer = in.cache->find(
      1, tenant, prompt.first(prompt.size() - 1), [&](tier_load what) { load = std::move(what); });
    if (answer.gap > 0)
      GODWIT_CHECK(
        read_prompt(runs_, target, prompt.first(std::size_t{answer.gap} * page_tokens), logits_).has_value());
    if (answer.loading > 0 || answer.tail > 0) {
      in.wait([&] { return load.has_value(); });
      target.adopt(load->blocks);
    }
    GODWIT_CHECK(read_prompt(runs_, target, prompt.subspan(target.length()), logits_).has_value());
    const auto took = seconds_since(begin) * 1e3;
    GODWIT_CHECK(logits_ == expected);
    return took;
  }

  /// A disk that takes as long as computing.
  result<void> slow_disk(tier_rates& out, std::uint32_t rounds) {
    const auto tokens = std::max(tokens_ / 4, 2 * page_tokens);
    const auto blocks = tokens / page_tokens;
    auto store = open();
    if (!store)
      return fail(store);
    std::vector<double> cold;
    std::vector<double> found;
    std::unique_ptr<tiers> in;
    for (std::uint32_t round = 0; round <= rounds; ++round) {
      const auto prompt = any_tokens(tokens, runs_.shape().vocabulary, 2077 + round);
      {
        const auto writes = start(*store, 0);
        cold.push_back(compute(*writes, prompt));
        writes->suspend(prompt);
      }
      const auto seconds = cold.back() * 1e-3;
      const auto disk = std::make_shared<slow_store>(*store, seconds / blocks);
      in = start(disk, 0, onboarding::measured);
      // What an engine would have learned by now. Reads of a few blocks at a time teach the disk's pace.
      for (std::uint32_t known = 0; known < 12; ++known) {
        in->pool->release_blocks(
          in->find(std::span(prompt).first(std::min<std::size_t>(4, blocks) * page_tokens)));
        in->cache->device().evict(blocks);
      }
      in->counters->prompt_work += tokens + std::uint64_t{tokens} * tokens / 2 / work_doubles_at;
      in->counters->prompt_nanoseconds += static_cast<std::uint64_t>(seconds * 1e9);
      found.push_back(find_beside(*in, prompt));
    }
    // The first round warms up.
    for (auto* times : {&cold, &found})
      times->erase(times->begin());
    out.slow_tokens = tokens;
    out.slow_cold_ms = median(cold);
    out.slow_ms = median(found);
    return {};
  }

  /// Tokens a second of all streams over so long.
  double decode(tiers& in, std::vector<sequence>& running, double seconds) {
    const auto begin = clock::now();
    std::uint64_t steps = 0;
    std::vector<float> logits(std::size_t{streams} * runs_.shape().vocabulary);
    const token_id token = 1;
    do {
      for (std::uint32_t step = 0; step < 16; ++step) {
        std::vector<chunk> chunks;
        for (auto& target : running) {
          GODWIT_CHECK(target.reserve(1).has_value());
          chunks.push_back({&target, std::span(&token, 1), logits_wanted::last});
        }
        runs_.forward(chunks, logits);
        in.turn();
        ++steps;
      }
      // Always at about the same depth.
      for (auto& target : running)
        target.truncate(stream_context);
    } while (seconds_since(begin) < seconds);
    return static_cast<double>(steps * streams) / seconds_since(begin);
  }

  result<void> offload(tier_rates& out, std::uint32_t rounds) {
    auto store = open();
    if (!store)
      return fail(store);
    const auto in = start(*store, 2 * prompt_bytes());
    std::vector<sequence> running;
    for (std::uint32_t i = 0; i < streams; ++i) {
      running.emplace_back(*in->pool);
      const auto prompt = any_tokens(stream_context, runs_.shape().vocabulary, 5 + i);
      GODWIT_CHECK(read_prompt(runs_, running.back(), prompt, logits_).has_value());
    }
    const auto window = std::clamp(out.cold_ms * 1e-3, 0.05, 10.0);
    std::vector<double> alone;
    std::vector<double> beside;
    for (std::uint32_t round = 0; round <= rounds; ++round) {
      const auto prompt = any_tokens(tokens_, runs_.shape().vocabulary, 1077 + round);
      compute(*in, prompt);
      alone.push_back(decode(*in, running, window));
      // Asked for again: both tiers take it while the streams go on.
      in->pool->release_blocks(in->find(prompt));
      beside.push_back(decode(*in, running, window));
      in->suspend(prompt);
    }
    alone.erase(alone.begin());
    beside.erase(beside.begin());
    out.streams = streams;
    out.alone_per_s = median(alone);
    out.beside_offload_per_s = median(beside);
    return {};
  }

 private:
  model& runs_;
  std::uint32_t tokens_;
  std::filesystem::path folder_;
  cache_scope scope_;
  std::vector<float> logits_;
};

} // namespace

result<tier_rates> measure_tiers(
  model& runs, std::uint32_t tokens, std::uint32_t rounds, const std::filesystem::path& folder) {
  const auto place = folder / ("godwit-bench-cold-" + std::to_string(::getpid()));
  tier_rates out;
  out.tokens = tokens;
  result<void> done;
  {
    tier_bench bench(runs, tokens, place);
    done = bench.hits(out, rounds);
    if (done)
      done = bench.slow_disk(out, rounds);
    if (done)
      done = bench.offload(out, rounds);
  }
  std::error_code ignored;
  std::filesystem::remove_all(place, ignored);
  if (!done)
    return fail(done);
  return out;
}

} // namespace godwit::bench
