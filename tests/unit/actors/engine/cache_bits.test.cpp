// However a sequence's pages came to be, the model gives the same bits: logits of a real graph, recorded as
// the engine sees them.

#include "services/coldstore/cold_options.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/tiny_llama.hpp"
#include "tests/unit/actors/cache/manual_lane.hpp"
#include "tests/unit/actors/cache/memory_cold_store.hpp"
#include "tests/unit/actors/engine/test_engine.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstring>
#include <map>

using namespace godwit;
using namespace godwit::test;

namespace {

/// Logits by the position that they choose a token for. All requests of a test that are recorded have the
/// same tokens, so that each position has one right answer.
struct recording {
  bool on = true;
  std::size_t tokens = 0; ///< computed, recorded or not
  std::map<position_t, std::vector<std::vector<float>>> rows;
};

class recorded_model final : public model {
 public:
  recorded_model(std::unique_ptr<model> inner, std::shared_ptr<recording> to)
    : inner_(std::move(inner)), to_(std::move(to)) {}

  const model_shape& shape() const override { return inner_->shape(); }
  const std::string& fingerprint() const override { return inner_->fingerprint(); }
  std::uint32_t max_rows() const override { return inner_->max_rows(); }

  void forward(std::span<const chunk> chunks, std::span<float> logits, const hidden_taps& taps) override {
    inner_->forward(chunks, logits, taps);
    for (const auto& part : chunks) {
      to_->tokens += part.tokens.size();
      if (part.logits != logits_wanted::last)
        continue;
      const auto row = logits.first(shape().vocabulary);
      logits = logits.subspan(shape().vocabulary);
      if (to_->on)
        to_->rows[part.target->length()].emplace_back(row.begin(), row.end());
    }
  }

 private:
  std::unique_ptr<model> inner_;
  std::shared_ptr<recording> to_;
};

constexpr std::uint32_t prompt_length = 75;
constexpr std::uint32_t answer_length = 40;

/// An engine over the small random Llama.
struct recorded_engine {
  explicit recorded_engine(const engine_options& options = {}, kv_type kv = kv_type::f16) {
    auto inner = model::load(file().file(), {.threads = 1, .kv = kv});
    GODWIT_CHECK(inner.has_value());
    at = std::make_unique<test_engine>(options, std::make_unique<recorded_model>(std::move(*inner), to));
  }

  static const memory_model& file() {
    static const memory_model made{tiny_llama{}};
    return made;
  }

  static ask the_one(request_id id) {
    return {
      .request = id, .tokens = prompt_of(prompt_length, 1), .max_tokens = answer_length, .temperature = 0};
  }

  /// Something else, which is not recorded.
  void other(request_id id, std::size_t length) {
    to->on = false;
    at->request(
      {.request = id, .tokens = prompt_of(length, 77 + static_cast<std::uint32_t>(id)), .max_tokens = 1});
    to->on = true;
  }

  std::shared_ptr<recording> to = std::make_shared<recording>();
  std::unique_ptr<test_engine> at;
};

/// A cold tier that outlives engines: in memory, or that of a node, in a folder.
class kept_disk {
 public:
  explicit kept_disk(bool in_memory) : memory_(in_memory ? std::make_shared<memory_cold_store>() : nullptr) {}

  /// One at a time has the folder.
  std::shared_ptr<cold_store> open() const {
    if (memory_)
      return memory_;
    const auto inner = model::load(recorded_engine::file().file(), {.threads = 1});
    cold_options options;
    options.folder = folder_.path() / "cold";
    options.limit_bytes = 1 << 24;
    options.scope = {.fingerprint = (*inner)->fingerprint(), .shape = (*inner)->shape().kv};
    auto made = open_cold_store(options);
    if (!made)
      FAIL(made.error().message);
    return std::move(*made);
  }

 private:
  temporary_folder folder_;
  std::shared_ptr<memory_cold_store> memory_;
};

/// What is computed without any cache.
const std::map<position_t, std::vector<std::vector<float>>>& cold(kv_type kv = kv_type::f16) {
  static std::map<kv_type, std::map<position_t, std::vector<std::vector<float>>>> known;
  auto& rows = known[kv];
  if (rows.empty()) {
    recorded_engine engine({.cache_share = 0}, kv);
    engine.at->request(recorded_engine::the_one(1));
    rows = engine.to->rows;
  }
  return rows;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

/// Every recorded row is, bit for bit, the one of the cold run.
void check_rows(const recording& to, kv_type kv = kv_type::f16) {
  const auto& expected = cold(kv);
  REQUIRE(expected.size() == answer_length);
  for (const auto& [position, list] : to.rows)
    for (const auto& row : list) {
      INFO("position " << position);
      REQUIRE(expected.contains(position));
      REQUIRE(same_bits(row, expected.at(position).front()));
    }
}

} // namespace

TEST_CASE("a prompt that is found gives the bits of one that is computed") {
  recorded_engine engine;
  engine.at->request(recorded_engine::the_one(1));
  const auto computed = engine.to->tokens;
  engine.to->rows.clear();
  engine.at->request(recorded_engine::the_one(2));
  CHECK(engine.at->box[2].cached_tokens == 64);
  // 11 tokens of the prompt, and the answer without its last token.
  CHECK(engine.to->tokens - computed == prompt_length - 64 + answer_length - 1);
  CHECK(engine.to->rows.size() == answer_length);
  check_rows(*engine.to);
}

TEST_CASE("samples of one prompt share its blocks and give the same bits") {
  recorded_engine engine({.budget = 32, .chunk = 16});
  for (request_id id = 1; id <= 6; ++id)
    engine.at->post(recorded_engine::the_one(id));
  engine.at->settle();
  for (request_id id = 2; id <= 6; ++id)
    CHECK(engine.at->box[id].cached_tokens >= 32);
  CHECK(engine.to->rows.at(prompt_length).size() == 6);
  check_rows(*engine.to);
}

TEST_CASE("a request that goes on from the middle of another one's answer gives the same bits") {
  recorded_engine engine;
  engine.at->request(recorded_engine::the_one(1));
  const auto answer = engine.at->box[1].tokens;
  engine.to->rows.clear();
  for (const std::uint32_t taken : {4U, 5U, 6U, 20U, 39U}) {
    auto branch = recorded_engine::the_one(100 + taken);
    branch.tokens.insert(branch.tokens.end(), answer.begin(), answer.begin() + taken);
    branch.prompt_length = prompt_length;
    branch.max_tokens = answer_length - taken;
    engine.at->request(branch);
    CHECK(std::equal(engine.at->box[branch.request].tokens.begin(),
      engine.at->box[branch.request].tokens.end(), answer.begin() + taken, answer.end()));
  }
  // 75 + 4 tokens are 4 blocks and the last token's logits; with one more a fifth block is found.
  CHECK(engine.at->box[104].cached_tokens == 64);
  CHECK(engine.to->rows.size() == answer_length - 4);
  check_rows(*engine.to);
}

TEST_CASE("while one answers, another one already finds the blocks of its answer") {
  recorded_engine engine;
  auto first = recorded_engine::the_one(1);
  first.credit = 30;
  engine.at->request(first);
  CHECK(engine.at->box[1].finals == 0);
  auto second = recorded_engine::the_one(2);
  second.tokens.insert(second.tokens.end(), engine.at->box[1].tokens.begin(), engine.at->box[1].tokens.end());
  second.max_tokens = 5;
  engine.at->request(second);
  // 75 + 30 tokens, of which 104 were computed.
  CHECK(engine.at->box[2].cached_tokens == 96);
  check_rows(*engine.to);
}

TEST_CASE("blocks that were given up and computed again give the same bits") {
  recorded_engine engine({.kv_tokens = 160});
  engine.at->request(recorded_engine::the_one(1));
  engine.to->rows.clear();
  const auto before = engine.at->all.counters->evicted_blocks.load();
  for (request_id id = 10; id < 16; ++id)
    engine.other(id, 100);
  CHECK(engine.at->all.counters->evicted_blocks > before);
  engine.at->request(recorded_engine::the_one(2));
  CHECK(engine.at->box[2].cached_tokens == 0);
  CHECK(engine.to->rows.size() == answer_length);
  check_rows(*engine.to);
}

TEST_CASE("sequences that lost their pages to each other give the same bits") {
  const auto share = GENERATE(0.0, 1.0);
  recorded_engine engine({.kv_tokens = 192, .cache_share = share});
  for (request_id id = 1; id <= 3; ++id) {
    auto one = recorded_engine::the_one(id);
    // Tenants never share, so that each needs pages of its own.
    one.tenant = std::string(1, static_cast<char>('a' + id));
    engine.at->post(one);
  }
  engine.at->settle();
  CHECK(engine.at->all.counters->preemptions > 0);
  for (request_id id = 1; id <= 3; ++id)
    CHECK(engine.at->box[id].tokens.size() == answer_length);
  check_rows(*engine.to);
}

TEST_CASE("chunks beside running streams, over a found prefix, give the same bits") {
  recorded_engine engine({.budget = 16, .chunk = 16});
  auto shorter = recorded_engine::the_one(1);
  shorter.tokens.resize(40);
  engine.to->on = false;
  engine.at->request(shorter);
  engine.at->post({.request = 9, .tokens = prompt_of(20, 3), .max_tokens = 60, .credit = 1000});
  while (engine.at->box[9].tokens.size() < 5)
    engine.at->scheduler.run_once();
  engine.to->on = true;
  // The other stream passes some of the same positions with other tokens.
  engine.at->post(recorded_engine::the_one(2));
  while (engine.at->box[2].finals == 0)
    engine.at->scheduler.run_once();
  CHECK(engine.at->box[2].cached_tokens == 32);
  std::size_t equal = 0;
  for (const auto& [position, list] : engine.to->rows)
    if (cold().contains(position))
      equal += std::any_of(list.begin(), list.end(),
        [&, p = position](const auto& row) { return same_bits(row, cold().at(p).front()); });
  CHECK(equal == answer_length);
}

TEST_CASE("blocks that came back from host memory give the same bits") {
  recorded_engine engine({.kv_tokens = 320, .tiers = {.host_bytes = 1 << 20, .mode = onboarding::always}});
  engine.at->request(recorded_engine::the_one(1));
  // Asked for again: copied.
  engine.at->request(recorded_engine::the_one(2));
  engine.at->evict_all();
  engine.to->rows.clear();
  const auto computed = engine.to->tokens;
  engine.at->request(recorded_engine::the_one(3));
  CHECK(engine.at->box[3].cached_tokens == 64);
  CHECK(engine.at->box[3].cached_host == 64);
  CHECK(engine.at->box[3].cached_disk == 0);
  CHECK(engine.to->tokens - computed == prompt_length - 64 + answer_length - 1);
  CHECK(engine.to->rows.size() == answer_length);
  check_rows(*engine.to);
}

TEST_CASE("blocks that came back from disk after a restart give the same bits") {
  const kept_disk disk(GENERATE(true, false));
  const auto options = [&] {
    return engine_options{
      .cache_key = identity_key::derive({}), .tiers = {.cold = disk.open(), .mode = onboarding::always}};
  };
  {
    recorded_engine before(options());
    before.at->request(recorded_engine::the_one(1));
    before.at->request(recorded_engine::the_one(2));
  }
  recorded_engine engine(options());
  engine.at->request(recorded_engine::the_one(3));
  CHECK(engine.at->box[3].cached_tokens == 64);
  CHECK(engine.at->box[3].cached_disk == 64);
  CHECK(engine.at->all.counters->cached_disk_tokens == 64);
  CHECK(engine.to->tokens == prompt_length - 64 + answer_length - 1);
  CHECK(engine.to->rows.size() == answer_length);
  check_rows(*engine.to);
}

TEST_CASE("blocks that came back from disk while those before them were computed give the same bits") {
  const auto disk = std::make_shared<memory_cold_store>();
  const auto reads = std::make_shared<job_list>();
  engine_options options{.budget = 16, .cache_key = identity_key::derive({}), .tiers = {.cold = disk}};
  {
    recorded_engine before(options);
    before.at->request(recorded_engine::the_one(1));
    before.at->suspend(recorded_engine::the_one(1).tokens);
  }
  REQUIRE(disk->stats().blocks >= 4);
  options.tiers.mode = onboarding::halved;
  options.tiers.lanes = [reads] {
    return tier_lanes{immediate_lane(), std::make_unique<manual_lane>(reads), immediate_lane()};
  };
  recorded_engine engine(options);
  const auto& counters = *engine.at->all.counters;
  const auto one = recorded_engine::the_one(3);
  engine.at->post(one);
  const int when = GENERATE(0, 1, 2, 3);
  INFO("case " << when);
  // Two blocks are being brought while two are computed.
  if (when == 0) {
    // They come first.
    while (!reads->run_one())
      engine.at->scheduler.run_once();
    CHECK(engine.to->tokens == 0);
  }
  engine.at->settle();
  if (when != 0) {
    CHECK(engine.to->tokens == 32);
    CHECK(engine.at->box[3].tokens.empty());
    CHECK(counters.onboard_staged == 2);
  }
  if (when == 2) // one of them does not check
    disk->damaged = 1;
  if (when == 3)
    engine.at->cancel({3});
  engine.at->settle();
  reads->run_one();
  engine.at->settle();
  CHECK(counters.onboard_staged == 0);
  CHECK(counters.onboard_overlapped == 1);
  CHECK(engine.at->reclaimable() == engine.at->all.kv_blocks);
  if (when == 3) {
    CHECK(engine.at->box[3].finish == schema::FinishReason::CANCELLED);
    CHECK(engine.to->rows.empty());
    return;
  }
  const auto found = when == 2 ? 16U : 32U;
  CHECK(engine.at->box[3].cached_tokens == found);
  CHECK(engine.at->box[3].cached_disk == found);
  CHECK(counters.prefilled_tokens == prompt_length - found);
  CHECK(engine.to->tokens == prompt_length - found + answer_length - 1);
  CHECK(engine.to->rows.size() == answer_length);
  check_rows(*engine.to);
  // All of it is on the device now, for anybody.
  engine.at->request(recorded_engine::the_one(4));
  CHECK(engine.at->box[4].cached_tokens == 64);
  CHECK(engine.at->box[4].cached_disk == 0);
  check_rows(*engine.to);
}

TEST_CASE(
  "where each block goes down, a text that was asked for once is on disk when its sequence has ended") {
  const auto disk = std::make_shared<memory_cold_store>();
  const engine_options options{
    .cache_key = identity_key::derive({}), .tiers = {.cold = disk, .reuse = 0, .mode = onboarding::always}};
  {
    recorded_engine before(options);
    before.at->request(recorded_engine::the_one(1));
    // The answer's blocks too, but for its last token.
    CHECK(disk->stats().blocks == (prompt_length + answer_length - 1) / page_tokens);
  }
  recorded_engine engine(options);
  engine.at->request(recorded_engine::the_one(2));
  CHECK(engine.at->box[2].cached_disk == 64);
  check_rows(*engine.to);
}

TEST_CASE("a suspended text frees its pages, and what is resumed gives the same bits") {
  const auto with_disk = GENERATE(true, false);
  const auto in_memory = GENERATE(true, false);
  if (!with_disk && !in_memory)
    return;
  const kept_disk disk(in_memory);
  tier_options tiers{.host_bytes = 1 << 20, .mode = onboarding::always};
  if (with_disk)
    tiers.cold = disk.open();
  recorded_engine engine({.tiers = tiers});
  engine.at->request(recorded_engine::the_one(1));
  auto next = recorded_engine::the_one(2);
  const auto& answer = engine.at->box[1].tokens;
  next.tokens.insert(next.tokens.end(), answer.begin(), answer.begin() + 30);
  next.prompt_length = prompt_length;
  next.max_tokens = answer_length - 30;
  const auto left = engine.at->suspend(next.tokens);
  CHECK(left.read().getDevice() == 0);
  CHECK(left.read().getHost() == (with_disk ? 0 : 96));
  CHECK(left.read().getDisk() == (with_disk ? 96 : 0));
  const auto prefilled = engine.at->all.counters->prefilled_tokens.load();
  engine.to->rows.clear();
  engine.at->request(next);
  // 105 tokens, of which 96 are full blocks.
  CHECK(engine.at->all.counters->prefilled_tokens - prefilled == 9);
  CHECK(engine.to->rows.size() == answer_length - 30);
  check_rows(*engine.to);
}

TEST_CASE("sequences that were swapped to host memory give the same bits") {
  recorded_engine engine({.kv_tokens = 192, .tiers = {.host_bytes = 1 << 20, .mode = onboarding::always}});
  for (request_id id = 1; id <= 3; ++id) {
    auto one = recorded_engine::the_one(id);
    one.tenant = std::string(1, static_cast<char>('a' + id));
    engine.at->post(one);
  }
  engine.at->settle();
  CHECK(engine.at->all.counters->preemptions > 0);
  CHECK(engine.at->all.counters->swapped_blocks > 0);
  CHECK(engine.at->all.counters->host_hits > 0);
  for (request_id id = 1; id <= 3; ++id)
    CHECK(engine.at->box[id].tokens.size() == answer_length);
  check_rows(*engine.to);
}

TEST_CASE("a disk that fails under everything costs time and no bit") {
  const auto disk = std::make_shared<memory_cold_store>();
  recorded_engine engine({.kv_tokens = 320, .tiers = {.cold = disk, .mode = onboarding::always}});
  engine.at->request(recorded_engine::the_one(1));
  disk->refuses = true;
  engine.at->request(recorded_engine::the_one(2));
  disk->refuses = false;
  engine.at->suspend(recorded_engine::the_one(1).tokens);
  disk->damaged = 1;
  engine.to->rows.clear();
  engine.at->request(recorded_engine::the_one(3));
  CHECK(engine.at->box[3].cached_disk == 16);
  CHECK(engine.to->rows.size() == answer_length);
  check_rows(*engine.to);
}

TEST_CASE(
  "pages of every type come back from host and disk with the same bits, and from those of no other type") {
  const auto kv = GENERATE(kv_type::bf16, kv_type::int8);
  const auto disk = std::make_shared<memory_cold_store>();
  const engine_options options{.kv_tokens = 320,
    .cache_key = identity_key::derive({}),
    .tiers = {.host_bytes = 1 << 20, .cold = disk, .mode = onboarding::always}};
  {
    // The answers may differ: only the prompt is the same text.
    recorded_engine halves(
      {.cache_key = options.cache_key, .tiers = {.cold = disk, .mode = onboarding::always}});
    halves.at->request(recorded_engine::the_one(1));
    halves.at->suspend(recorded_engine::the_one(1).tokens);
  }
  recorded_engine engine(options, kv);
  engine.at->request(recorded_engine::the_one(1));
  CHECK(engine.at->box[1].cached_tokens == 0);
  engine.at->request(recorded_engine::the_one(2));
  CHECK(engine.at->box[2].cached_tokens == 64);
  engine.at->evict_all();
  engine.at->request(recorded_engine::the_one(3));
  CHECK(engine.at->box[3].cached_host == 64);
  const auto left = engine.at->suspend(recorded_engine::the_one(3).tokens);
  CHECK(left.read().getDevice() == 0);
  CHECK(left.read().getDisk() == 64);
  engine.at->request(recorded_engine::the_one(4));
  CHECK(engine.at->box[4].cached_disk == 64);
  CHECK(engine.to->rows.size() == answer_length);
  check_rows(*engine.to, kv);
  bool other = false;
  for (const auto& [position, list] : cold(kv))
    other = other || (cold().contains(position) && !same_bits(list.front(), cold().at(position).front()));
  CHECK(other);
}
