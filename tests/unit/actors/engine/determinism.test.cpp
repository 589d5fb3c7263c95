// Random lives of an engine: whatever else runs, however prompts are cut, whoever cancels, however small the
// pool is, the tokens of a request are those of the definition.

#include "tests/support/asked_number.hpp"
#include "tests/unit/actors/cache/memory_cold_store.hpp"
#include "tests/unit/actors/engine/test_engine.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <set>

using namespace godwit;
using namespace godwit::test;
using schema::FinishReason;

namespace {

class life {
 public:
  explicit life(std::uint32_t seed) : dice_(seed) {
    options_.budget = one_of({16U, 48U, 256U});
    options_.chunk = one_of({16U, 64U, 256U});
    options_.kv_tokens = one_of({288U, 400U, 1024U, 8192U});
    options_.prompts = one_of({1U, 3U, 8U});
    options_.sequences = one_of({2U, 6U, 64U});
    options_.cache_share = one_of({0.0, 0.3, 1.0});
    options_.cache_key = identity_key::derive(std::as_bytes(std::span(&seed, 1)));
    // Time does not pass here: every paused stream may lose its pages at once, or never.
    options_.stall = std::chrono::milliseconds(one_of({0, 100000}));
    // Two lives of three have tiers, on a disk that loses some.
    if (seed % 3 == 0)
      return;
    options_.tiers.host_bytes = one_of({0U, 8U, 64U}) * 2048ULL;
    options_.tiers.cold = disk_;
    options_.tiers.reuse = static_cast<std::uint8_t>(below(2));
    options_.tiers.mode = seed % 3 == 1 ? onboarding::halved : onboarding::always;
    disk_->before_read = [this] { disk_->damaged = below(4) == 0 ? below(4) : ~std::size_t{0}; };
  }

  void run() {
    test_engine engine(options_);
    plan(engine);
    fill_disk();
    while (!waiting_.empty() || !open(engine).empty()) {
      const auto what = below(100);
      if (what < 4 && !waiting_.empty()) {
        engine.post(waiting_.back());
        posted_[waiting_.back().request] = waiting_.back();
        waiting_.pop_back();
      } else if (what < 6) {
        disturb(engine);
      } else if (engine.scheduler.has_job()) {
        engine.run_any(dice_);
      } else if (waiting_.empty()) {
        // Everything waits for credit, or for the timer.
        for (const auto id : open(engine))
          engine.grant(id, 1 + below(20));
        engine.scheduler.trigger_timeouts();
      }
    }
    engine.settle();
    check(engine);
    preemptions += engine.all.counters->preemptions;
    evictions += engine.all.counters->evicted_blocks;
    found += engine.all.counters->found_tokens;
    ends += cancelled_.size();
    overlapped += engine.all.counters->onboard_overlapped;
    brought += engine.all.counters->disk_hits;
  }

  /// What happened in all lives.
  inline static std::uint64_t preemptions = 0;
  inline static std::uint64_t evictions = 0;
  inline static std::uint64_t found = 0;
  inline static std::uint64_t ends = 0;
  inline static std::uint64_t overlapped = 0;
  inline static std::uint64_t brought = 0;

 private:
  template <class T>
  T one_of(std::initializer_list<T> list) {
    return *(list.begin() + below(static_cast<std::uint32_t>(list.size())));
  }
  std::uint32_t below(std::uint32_t bound) { return static_cast<std::uint32_t>(dice_() % bound); }

  void plan(test_engine& engine) {
    for (request_id id = 1; id <= 14; ++id) {
      ask what;
      what.request = id;
      // Few beginnings, many ends: so that prefixes are shared.
      what.tokens = prompt_of(below(150), below(3));
      for (const auto token : prompt_of(1 + below(40), 100 + below(4)))
        what.tokens.push_back(token);
      what.prompt_length = 1 + below(static_cast<std::uint32_t>(what.tokens.size()));
      what.max_tokens = 1 + below(60);
      what.temperature = one_of({0.0F, 1.0F});
      what.seed = below(3);
      what.credit = one_of({0U, 1U, 7U, 1000U});
      what.priority = one_of({0, 0, 0, 1});
      what.tenant = one_of({"a", "b"});
      what.group = below(3);
      what.ignore_end = below(2) == 0;
      GODWIT_CHECK(what.tokens.size() < engine.longest);
      waiting_.push_back(what);
    }
  }

  /// An engine that ran before has left blocks of half the prompts.
  void fill_disk() {
    if (!options_.tiers.cold)
      return;
    auto options = options_;
    options.tiers.reuse = 0;
    test_engine before(options);
    for (const auto& what : waiting_)
      if (what.request % 2 == 0)
        before.request(
          {.request = what.request, .tokens = what.tokens, .max_tokens = 1, .tenant = what.tenant});
  }

  std::vector<request_id> open(test_engine& engine) const {
    std::vector<request_id> ids;
    for (const auto& [id, what] : posted_)
      if (engine.box[id].finals == 0)
        ids.push_back(id);
    return ids;
  }

  void disturb(test_engine& engine) {
    const auto ids = open(engine);
    if (ids.empty())
      return;
    const auto id = ids[below(static_cast<std::uint32_t>(ids.size()))];
    switch (below(8)) {
    case 0:
      engine.cancel({id});
      cancelled_.insert(id);
      break;
    case 1:
      if (const auto group = posted_[id].group; group != 0 && below(4) == 0) {
        engine.cancel({}, schema::EndCause::CANCELLED, group);
        for (const auto& [other, what] : posted_)
          if (what.group == group)
            cancelled_.insert(other);
      }
      break;
    default:
      engine.grant(id, 1 + below(10));
    }
  }

  void check(test_engine& engine) {
    for (const auto& [id, what] : posted_) {
      const auto& got = engine.box[id];
      const auto answer = what.answer(engine.longest);
      INFO("request " << id);
      CHECK(got.finals == 1);
      CHECK_FALSE(got.after_final);
      if (got.finish == FinishReason::CANCELLED) {
        CHECK(cancelled_.contains(id));
        REQUIRE(got.tokens.size() <= answer.size());
        CHECK(std::equal(got.tokens.begin(), got.tokens.end(), answer.begin()));
      } else {
        CHECK(got.tokens == answer);
      }
      for (std::size_t i = 0; i < got.positions.size(); ++i)
        CHECK(got.positions[i] == what.tokens.size() + i);
      CHECK(got.cached_tokens <= what.prompt());
    }
    const auto& counters = *engine.all.counters;
    CHECK(counters.sequences == 0);
    CHECK(counters.streams == 0);
    CHECK(counters.queued == 0);
    CHECK(counters.prompts == 0);
    CHECK(counters.onboard_staged == 0);
    CHECK(counters.offload_waiting == 0);
    // Only the cache holds pages now.
    CHECK(engine.reclaimable() == engine.all.kv_blocks);
  }

  std::mt19937 dice_;
  std::shared_ptr<memory_cold_store> disk_ = std::make_shared<memory_cold_store>();
  engine_options options_;
  std::vector<ask> waiting_;
  std::map<request_id, ask> posted_;
  std::set<request_id> cancelled_;
};

} // namespace

TEST_CASE("the tokens of a request do not depend on anything else that happens") {
  // GODWIT_LIVES=100000 makes a soak of it.
  const auto lives = asked_number("GODWIT_LIVES", 150);
  for (std::uint32_t seed = 1; seed <= lives; ++seed) {
    INFO("seed " << seed);
    life(seed).run();
  }
  // Lives in which nothing happened would prove nothing.
  CHECK(life::preemptions > lives);
  CHECK(life::evictions > lives);
  CHECK(life::found > 100 * lives);
  CHECK(life::ends > lives / 2);
  CHECK(life::overlapped > lives / 4);
  CHECK(life::brought > lives);
}
