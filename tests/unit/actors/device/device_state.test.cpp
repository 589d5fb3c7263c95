#include "actors/device/device_state.hpp"

#include "tests/unit/actors/device/fake_model.hpp"

#include <catch2/catch.hpp>

#include <stdexcept>

using namespace godwit;
using action = device_state::action;

namespace {

constexpr auto told = [](const step_outcome& out, step_role role) {
  return out.told[static_cast<std::size_t>(role)];
};
const device_state::clock::time_point start{};

struct fixture {
  explicit fixture(std::uint32_t blocks = 16, step_limits limits = {.budget = 64, .chunk = 16, .rows = 64})
    : pool(std::move(*page_pool::create(test::fake_model::small_shape().kv, blocks))),
      device(std::make_shared<test::fake_model>(test::fake_model::small_shape(), log), pool, hasher, limits,
        std::chrono::seconds(1), counters, recalled) {}

  static std::vector<token_id> text(std::size_t length, token_id salt = 1) {
    return std::vector<token_id>(length, salt);
  }

  static sequence_opening opening(sequence_key key, std::vector<token_id> tokens, std::int32_t priority = 0) {
    sequence_opening out;
    out.key = key;
    out.order = {priority, key};
    out.prompt_length = static_cast<std::uint32_t>(tokens.size());
    out.tokens = std::move(tokens);
    out.sampling.temperature = 0;
    return out;
  }

  void prefill(std::vector<sequence_opening> openings, std::vector<row_offer> rows, step_number seen = 1000) {
    device.submit({step_role::prefill, seen, std::move(openings), std::move(rows)});
  }
  void decode(std::vector<row_offer> rows, step_number seen = 1000) {
    device.submit({step_role::decode, seen, {}, std::move(rows)});
  }

  /// Drops what was to be cached, as a cache without any budget.
  void forget_insertions() {
    for (const auto& insertion : device.take_insertions())
      for (const auto block : insertion.blocks)
        pool->release_block(block);
  }

  /// A step, with a cache that has nothing to give.
  step_outcome step(device_state::clock::time_point now = start) {
    while (true) {
      const auto what = device.next(now);
      forget_insertions();
      REQUIRE(what != action::wait);
      if (what == action::run) {
        auto out = device.run();
        forget_insertions();
        return out;
      }
      device.evicted(0);
    }
  }

  block_hasher hasher{identity_key::derive({}), {}};
  std::shared_ptr<test::fake_model::log> log = std::make_shared<test::fake_model::log>();
  std::shared_ptr<page_pool> pool;
  std::shared_ptr<engine_counters> counters = std::make_shared<engine_counters>();
  std::shared_ptr<recall_list> recalled = std::make_shared<recall_list>();
  device_state device;
};

/// The results of one sequence.
std::vector<row_outcome> outcomes(const step_outcome& out, sequence_key key) {
  std::vector<row_outcome> list;
  for (const auto& row : out.result.rows)
    if (row.sequence == key)
      list.push_back(row.outcome);
  return list;
}

} // namespace

TEST_CASE("a device without rows waits") {
  fixture at;
  CHECK(at.device.next(start) == action::wait);
  at.prefill({fixture::opening(1, fixture::text(20))}, {});
  CHECK(at.device.next(start) == action::wait);
}

TEST_CASE("a prompt is computed as far as it is offered, and its last token gives the first of the answer") {
  fixture at;
  at.prefill({fixture::opening(1, fixture::text(20))}, {{1, 12}});
  auto out = at.step();
  CHECK(outcomes(out, 1) == std::vector{row_outcome::computed});
  CHECK(told(out, step_role::prefill));
  CHECK_FALSE(told(out, step_role::decode));
  at.prefill({}, {{1, 12}}, out.result.step);
  out = at.step();
  CHECK(outcomes(out, 1) == std::vector{row_outcome::sampled});
  CHECK(told(out, step_role::decode));
  sampling_settings greedy;
  greedy.temperature = 0;
  CHECK(out.result.rows[0].token.token == test::answer_alone(fixture::text(20), 20, greedy, 1, 512).at(0));
  CHECK(out.result.rows[0].position == 20);
}

TEST_CASE("the next step waits for everybody who was told, and a late word from before does not count") {
  fixture at;
  at.prefill({fixture::opening(1, fixture::text(20))}, {{1, 20}});
  const auto out = at.step();
  REQUIRE((told(out, step_role::prefill) && told(out, step_role::decode)));
  at.prefill({}, {}, out.result.step);
  CHECK(at.device.next(start) == action::wait);
  at.decode({{1, 1}}, out.result.step - 1);
  CHECK(at.device.next(start) == action::wait);
  at.decode({{1, 1}}, out.result.step);
  CHECK(at.device.next(start) == action::run);
}

TEST_CASE("a role that never answers is given up") {
  fixture at;
  at.prefill({fixture::opening(1, fixture::text(20))}, {{1, 20}});
  at.step();
  at.decode({{1, 1}});
  CHECK(at.device.next(start) == action::wait);
  at.device.give_up();
  CHECK(at.device.next(start) == action::run);
}

TEST_CASE("rows of closed sequences drop out, and whoever offered them is told") {
  fixture at;
  at.prefill({fixture::opening(1, fixture::text(20))}, {{1, 20}});
  const std::vector<sequence_key> keys{1, 55};
  at.device.close(keys);
  const auto out = at.step();
  CHECK(out.result.rows.empty());
  CHECK(told(out, step_role::prefill));
  CHECK(at.log->steps == 0);
  CHECK(at.pool->free_blocks() == 16);
}

TEST_CASE("blocks are told to the cache as they become full, of prompts and of answers, and all at the end") {
  fixture at;
  const auto step = [&] {
    REQUIRE(at.device.next(start) == action::run);
    at.device.run();
    auto insertions = at.device.take_insertions();
    for (const auto& insertion : insertions)
      at.pool->release_blocks(insertion.blocks);
    return insertions;
  };
  at.prefill({fixture::opening(1, fixture::text(46))}, {{1, 33}});
  auto insertions = step();
  REQUIRE(insertions.size() == 1);
  CHECK(insertions[0].blocks.size() == 2);
  std::vector<block_identity> names(2);
  at.hasher.chain(at.hasher.root(""), fixture::text(32), names);
  CHECK(insertions[0].names == names);
  CHECK(insertions[0].parent == block_identity{});
  at.prefill({}, {{1, 13}});
  CHECK(step().empty());
  // The first token stands at 46: with two more rows the third block is full.
  at.prefill({}, {});
  at.decode({{1, 1}});
  CHECK(step().empty());
  at.decode({{1, 1}});
  insertions = step();
  REQUIRE(insertions.size() == 1);
  CHECK(insertions[0].blocks.size() == 1);
  CHECK(insertions[0].parent == names[1]);
  // 14 tokens of the prompt, and the answer's first two.
  sampling_settings greedy;
  greedy.temperature = 0;
  const auto answer = test::answer_alone(fixture::text(46), 46, greedy, 2, 512);
  auto third = fixture::text(14);
  third.insert(third.end(), answer.begin(), answer.end());
  REQUIRE(third.size() == page_tokens);
  names.push_back(at.hasher.next(names[1], third));
  CHECK(insertions[0].names == std::vector{names[2]});
  const std::vector<sequence_key> keys{1};
  at.device.close(keys);
  insertions = at.device.take_insertions();
  REQUIRE(insertions.size() == 1);
  CHECK(insertions[0].blocks.size() == 3);
  CHECK(insertions[0].names == names);
  CHECK(insertions[0].parent == block_identity{});
  at.pool->release_blocks(insertions[0].blocks);
  CHECK(at.pool->free_blocks() == 16);
}

TEST_CASE("what is told after a cached prefix follows it") {
  fixture at;
  auto opening = fixture::opening(1, fixture::text(40));
  opening.cached = {at.pool->allocate_block().value()};
  at.prefill({std::move(opening)}, {{1, 23}});
  REQUIRE(at.device.next(start) == action::run);
  at.device.run();
  auto insertions = at.device.take_insertions();
  REQUIRE(insertions.size() == 1);
  CHECK(insertions[0].blocks.size() == 1);
  CHECK(insertions[0].parent == at.hasher.next(at.hasher.root(""), fixture::text(16)));
  at.pool->release_blocks(insertions[0].blocks);
}

TEST_CASE("tokens that a request computed itself before are not told as cached") {
  fixture at;
  auto opening = fixture::opening(1, fixture::text(40));
  opening.cached = {at.pool->allocate_block().value(), at.pool->allocate_block().value()};
  opening.cached_at_most = 16;
  at.prefill({std::move(opening)}, {{1, 8}});
  CHECK(at.step().result.rows.at(0).cached == 16);
}

namespace {

/// A prompt of 60 tokens of which the second and third block are being brought while the first is computed.
/// @returns those blocks, with their content
std::vector<block_id> open_with_hole(fixture& at, std::uint32_t cached_at_most = ~std::uint32_t{0}) {
  at.prefill({fixture::opening(9, fixture::text(60))}, {{9, 48}});
  at.step();
  // Computed once, so that somebody has them.
  const std::vector<sequence_key> keys{9};
  at.device.close(keys);
  auto insertions = at.device.take_insertions();
  auto& blocks = insertions.back().blocks;
  at.pool->release_block(blocks[0]);
  blocks.erase(blocks.begin());
  auto opening = fixture::opening(1, fixture::text(60));
  opening.hole_at = 16;
  opening.cached_at_most = cached_at_most;
  at.prefill({std::move(opening)}, {{1, 60}});
  return blocks;
}

} // namespace

TEST_CASE("a prompt with a hole is computed up to it, and behind it when it is filled") {
  fixture at;
  const std::uint32_t most = GENERATE(~std::uint32_t{0}, 16U);
  const auto blocks = open_with_hole(at, most);
  const auto before = at.counters->prefilled_tokens.load();
  auto out = at.step();
  CHECK(outcomes(out, 1) == std::vector{row_outcome::computed});
  CHECK(out.result.rows[0].computed == 16);
  // No page is taken for what is to come.
  CHECK(at.pool->free_blocks() == 16 - 2 - 1);
  // Offered all the same, it stays where it is.
  at.prefill({}, {{1, 44}});
  CHECK(at.step().result.rows.empty());

  at.device.submit({step_role::prefill, 1000, {}, {{1, 12}}, {{1, 16, blocks}}});
  // The cache hears of them now, as it knows what stands before them.
  auto insertions = at.device.take_insertions();
  REQUIRE(insertions.size() == 1);
  CHECK(insertions[0].blocks == blocks);
  std::vector<block_identity> names(3);
  at.hasher.chain(at.hasher.root(""), fixture::text(48), names);
  CHECK(insertions[0].parent == names[0]);
  CHECK(insertions[0].names == std::vector(names.begin() + 1, names.end()));
  at.pool->release_blocks(insertions[0].blocks);
  out = at.step();
  CHECK(outcomes(out, 1) == std::vector{row_outcome::sampled});
  CHECK(at.counters->prefilled_tokens - before == 16 + 12);
  CHECK(out.result.rows[0].found() == (most == 16 ? found_tokens{16, 0, 16} : found_tokens{32, 0, 32}));
  sampling_settings greedy;
  greedy.temperature = 0;
  CHECK(out.result.rows[0].token.token == test::answer_alone(fixture::text(60), 60, greedy, 1, 512).at(0));
}

TEST_CASE("a hole that nothing comes for is computed, and what comes for another one goes back") {
  fixture at;
  const auto blocks = open_with_hole(at);
  at.step();
  SECTION("nothing") {
    at.pool->release_blocks(blocks);
    at.device.submit({step_role::prefill, 1000, {}, {{1, 44}}, {{1, 16, {}}}});
  }
  SECTION("what belongs elsewhere") {
    at.device.submit({step_role::prefill, 1000, {}, {}, {{1, 32, blocks}}});
    at.device.submit({step_role::prefill, 1000, {}, {{1, 44}}, {{1, 16, {}}}});
  }
  SECTION("what comes for a sequence that heads were cut of") {
    REQUIRE(at.device.keep(1, 0, 0, std::vector<position_t>{3}));
    at.device.submit({step_role::prefill, 1000, {}, {{1, 44}}, {{1, 16, blocks}}});
  }
  const auto out = at.step();
  CHECK(outcomes(out, 1) == std::vector{row_outcome::sampled});
  CHECK(out.result.rows[0].cached == 0);
  const std::vector<sequence_key> keys{1};
  at.device.close(keys);
  at.forget_insertions();
  CHECK(at.pool->free_blocks() == 16);
}

TEST_CASE("what comes for a sequence that is gone goes back") {
  fixture at;
  const auto blocks = open_with_hole(at);
  at.step();
  at.recalled->add(std::vector<sequence_key>{1});
  at.device.submit({step_role::prefill, 1000, {}, {{1, 12}}, {{1, 16, blocks}}});
  at.forget_insertions();
  CHECK(at.pool->free_blocks() == 16);
}

TEST_CASE("a group of sequences that is closed has given back its pages before the next step") {
  fixture at;
  at.prefill({fixture::opening(1, fixture::text(30)), fixture::opening(2, fixture::text(31, 2)),
               fixture::opening(3, fixture::text(20, 3))},
    {{1, 30}, {2, 10}, {3, 20}});
  at.step();
  const std::vector<sequence_key> keys{1, 2};
  at.device.close(keys);
  at.forget_insertions();
  CHECK(at.pool->free_blocks() == 14);
  CHECK(at.device.open_sequences() == 1);
}

TEST_CASE("a recalled group gives its pages back before the next step, whatever stands in the mailbox before "
          "its close") {
  fixture at;
  at.prefill({fixture::opening(1, fixture::text(30)), fixture::opening(2, fixture::text(31, 2)),
               fixture::opening(3, fixture::text(20, 3))},
    {{1, 30}, {2, 10}, {3, 20}});
  at.step();
  // Rows of the group are offered, one of its sequences is only to be opened, and its close is still to come.
  auto late = fixture::opening(4, fixture::text(40, 4));
  late.cached = {at.pool->allocate_block().value()};
  const std::vector<sequence_key> group{1, 2, 4, 99};
  at.decode({{1, 1}, {3, 1}});
  at.recalled->add(group);
  at.prefill({std::move(late)}, {{2, 21}, {4, 24}});
  CHECK(at.device.next(start) == action::run);
  at.forget_insertions();
  CHECK(at.pool->free_blocks() == 14);
  CHECK(at.device.open_sequences() == 1);
  const auto out = at.device.run();
  REQUIRE(out.result.rows.size() == 1);
  CHECK(out.result.rows[0].sequence == 3);
  // A request of the same id that comes behind the close is another one.
  at.device.close(group);
  at.prefill({fixture::opening(4, fixture::text(10, 4))}, {{4, 10}});
  at.decode({});
  CHECK(outcomes(at.step(), 4) == std::vector{row_outcome::sampled});
}

TEST_CASE(
  "of a sequence whose heads keep different positions the cache is told nothing, and it still goes on") {
  fixture at;
  CHECK(at.device.keep(1, 0, 0, {}).error().code == errc::not_found);
  at.prefill({fixture::opening(1, fixture::text(40))}, {{1, 40}});
  REQUIRE(at.device.next(start) == action::run);
  at.device.run();
  CHECK(at.device.take_insertions().size() == 1);
  std::vector<position_t> kept;
  for (position_t p = 20; p < 40; ++p)
    kept.push_back(p);
  // Of these three pages the cache's references keep two.
  CHECK(at.device.keep(1, 0, 1, kept) == 1U);
  CHECK(at.device.keep(1, 1, 1, {}) == 1U);
  for (int i = 0; i < 30; ++i) {
    at.prefill({}, {});
    at.decode({{1, 1}});
    REQUIRE(at.device.next(start) == action::run);
    CHECK(outcomes(at.device.run(), 1) == std::vector{row_outcome::sampled});
    CHECK(at.device.take_insertions().empty());
  }
  const std::vector<sequence_key> keys{1};
  at.device.close(keys);
  CHECK(at.device.take_insertions().empty());
  CHECK(at.pool->free_blocks() == 14);
}

TEST_CASE("a ragged sequence can lose its pages to an older one") {
  fixture at(4);
  at.prefill({fixture::opening(2, fixture::text(40))}, {{2, 40}});
  at.step();
  at.forget_insertions();
  std::vector<position_t> kept{1, 3};
  REQUIRE(at.device.keep(2, 0, 0, kept));
  at.prefill({fixture::opening(1, fixture::text(40, 3))}, {{1, 40}});
  at.decode({});
  const auto out = at.step();
  CHECK(outcomes(out, 2) == std::vector{row_outcome::preempted});
  CHECK(outcomes(out, 1) == std::vector{row_outcome::sampled});
}

TEST_CASE("short of blocks, the device asks the cache first") {
  fixture at(4);
  const auto others = std::vector{at.pool->allocate_block().value(), at.pool->allocate_block().value()};
  at.prefill({fixture::opening(1, fixture::text(40))}, {{1, 40}});
  CHECK(at.device.next(start) == action::evict);
  CHECK(at.device.wanted_blocks() >= 1);
  CHECK(at.device.next(start) == action::wait);
  for (const auto block : others)
    at.pool->release_block(block);
  at.device.evicted(2);
  CHECK(at.device.next(start) == action::run);
}

TEST_CASE("an older row takes the pages of the last in rank, a younger one starves") {
  fixture at(5);
  at.prefill(
    {fixture::opening(1, fixture::text(30)), fixture::opening(2, fixture::text(31))}, {{1, 30}, {2, 31}});
  auto out = at.step();
  REQUIRE(at.pool->free_blocks() == 1);
  at.prefill({}, {});
  // The younger one needs a third block first and takes the last one; then the older one needs its third.
  for (int i = 0; i < 2; ++i) {
    at.decode({{1, 1}, {2, 1}});
    out = at.step();
    CHECK(outcomes(out, 1) == std::vector{row_outcome::sampled});
    CHECK(outcomes(out, 2) == std::vector{row_outcome::sampled});
  }
  at.decode({{1, 1}, {2, 1}});
  out = at.step();
  CHECK(outcomes(out, 1) == std::vector{row_outcome::sampled});
  CHECK(outcomes(out, 2) == std::vector{row_outcome::preempted});
  CHECK(at.counters->preemptions == 1);

  // It comes back longer, but there is no place: the older one keeps its pages.
  at.decode({});
  at.prefill({fixture::opening(2, fixture::text(40))}, {{2, 40}});
  out = at.step();
  CHECK(outcomes(out, 2) == std::vector{row_outcome::starved});
  CHECK(at.device.starving());
  CHECK_FALSE(at.device.take_freed());
  const std::vector<sequence_key> keys{1};
  at.device.close(keys);
  at.forget_insertions();
  CHECK(at.device.take_freed());
  CHECK_FALSE(at.device.take_freed());
}

TEST_CASE("a sequence that had no row for a while gives its pages to anybody") {
  fixture at(4);
  at.prefill({fixture::opening(1, fixture::text(40))}, {{1, 40}});
  at.step();
  at.decode({});
  at.prefill({fixture::opening(2, fixture::text(40))}, {{2, 40}});
  CHECK(outcomes(at.step(start), 2) == std::vector{row_outcome::starved});
  at.decode({});
  at.prefill({}, {{2, 40}});
  const auto out = at.step(start + std::chrono::seconds(1));
  CHECK(outcomes(out, 1) == std::vector{row_outcome::preempted});
  CHECK(outcomes(out, 2) == std::vector{row_outcome::sampled});
  // Decode is told, although it had no row.
  CHECK(told(out, step_role::decode));
}

TEST_CASE("a step that throws closes its sequences and no other") {
  fixture at;
  at.prefill(
    {fixture::opening(1, fixture::text(20)), fixture::opening(2, fixture::text(20))}, {{1, 20}, {2, 10}});
  at.step();
  at.log->before_step = [] { throw std::runtime_error("boom"); };
  at.prefill({}, {});
  at.decode({{1, 1}});
  const auto out = at.step();
  CHECK(outcomes(out, 1) == std::vector{row_outcome::failed});
  // Clients read it: it does not quote the exception.
  CHECK(out.result.rows[0].failure.message.find("boom") == std::string::npos);
  CHECK(at.device.last_failure() == "boom");
  CHECK(at.device.open_sequences() == 1);
}

TEST_CASE("a sequence that is offered twice has one row") {
  fixture at;
  at.prefill({fixture::opening(1, fixture::text(20))}, {{1, 20}, {1, 20}});
  CHECK(at.step().result.rows.size() == 1);
}
