#include "actors/device/step_planner.hpp"

#include <catch2/catch.hpp>

#include <map>

using namespace godwit;

namespace {

constexpr step_limits limits{.budget = 128, .chunk = 32, .rows = 160};

step_candidate decode_row(sequence_key key, std::uint64_t arrival, std::uint32_t blocks = 0) {
  return {key, {0, arrival}, false, 1, blocks};
}

step_candidate prompt_row(
  sequence_key key, std::uint64_t arrival, std::uint32_t tokens, std::uint32_t blocks = 0) {
  return {key, {0, arrival}, true, tokens, blocks};
}

/// Tokens by sequence.
std::map<sequence_key, std::uint32_t> given(const step_plan& plan, const std::vector<step_candidate>& rows) {
  std::map<sequence_key, std::uint32_t> out;
  for (const auto& row : plan.rows)
    out[rows[row.candidate].sequence] = row.tokens;
  return out;
}

} // namespace

TEST_CASE("a prompt alone takes the whole budget of a step") {
  const std::vector rows{prompt_row(1, 1, 500)};
  CHECK(given(plan_step(rows, 0, limits), rows) == std::map<sequence_key, std::uint32_t>{{1, 128}});
}

TEST_CASE("a prompt beside streams takes one chunk, and the streams go first") {
  const std::vector rows{prompt_row(1, 1, 500), decode_row(2, 2), decode_row(3, 3)};
  const auto plan = plan_step(rows, 0, limits);
  CHECK(given(plan, rows) == std::map<sequence_key, std::uint32_t>{{1, 32}, {2, 1}, {3, 1}});
  CHECK_FALSE(rows[plan.rows[0].candidate].prompt);
  CHECK(rows[plan.rows[2].candidate].prompt);
}

TEST_CASE("prompts share evenly, and what a short one leaves goes to the long ones") {
  const std::vector rows{prompt_row(1, 1, 500), prompt_row(2, 2, 8), prompt_row(3, 3, 500)};
  CHECK(given(plan_step(rows, 0, limits), rows)
        == std::map<sequence_key, std::uint32_t>{{1, 60}, {2, 8}, {3, 60}});
}

TEST_CASE("more prompts than tokens: the budget is kept and each row has a token") {
  std::vector<step_candidate> rows;
  for (sequence_key key = 1; key <= 40; ++key)
    rows.push_back(prompt_row(key, key, 100));
  const auto plan = plan_step(rows, 0, {.budget = 30, .chunk = 30, .rows = 30});
  CHECK(plan.rows.size() == 30);
  for (const auto& row : plan.rows)
    CHECK(row.tokens == 1);
}

TEST_CASE("streams that fill the budget leave a floor for prompts") {
  std::vector<step_candidate> rows{prompt_row(1000, 1000, 500)};
  for (sequence_key key = 1; key <= 128; ++key)
    rows.push_back(decode_row(key, key));
  const auto out = given(plan_step(rows, 0, limits), rows);
  CHECK(out.size() == 129);
  CHECK(out.at(1000) == prompt_floor);
}

TEST_CASE("no step has more rows than the model takes") {
  std::vector<step_candidate> rows{prompt_row(1000, 1000, 500)};
  for (sequence_key key = 1; key <= 200; ++key)
    rows.push_back(decode_row(key, key));
  const auto plan = plan_step(rows, 0, limits);
  std::uint32_t sum = 0;
  for (const auto& row : plan.rows)
    sum += row.tokens;
  CHECK(sum <= limits.rows);
}

TEST_CASE("blocks go out by rank: priority first, then age") {
  auto urgent = decode_row(3, 30, 1);
  urgent.order.priority = 1;
  const std::vector rows{decode_row(1, 10, 1), decode_row(2, 20, 1), urgent};
  const auto plan = plan_step(rows, 2, limits);
  CHECK(given(plan, rows) == std::map<sequence_key, std::uint32_t>{{1, 1}, {3, 1}});
  REQUIRE(plan.starved.size() == 1);
  CHECK(rows[plan.starved[0]].sequence == 2);
  CHECK(plan.missing == 1);
}

TEST_CASE("a prompt starts only if its whole length fits and a block is left for every running row") {
  const std::vector rows{decode_row(1, 1), decode_row(2, 2), prompt_row(3, 3, 64, 4)};
  CHECK(given(plan_step(rows, 6, limits), rows).contains(3));
  const auto plan = plan_step(rows, 5, limits);
  CHECK_FALSE(given(plan, rows).contains(3));
  CHECK(plan.missing == 1);
}

TEST_CASE("a prompt that is alone needs no blocks beyond its own") {
  const std::vector rows{prompt_row(3, 3, 64, 4)};
  CHECK(given(plan_step(rows, 4, limits), rows).contains(3));
}

TEST_CASE("no prompt overtakes one that waits for blocks, but one that has its blocks goes on") {
  const std::vector rows{prompt_row(1, 1, 160, 10), prompt_row(2, 2, 16, 1), prompt_row(3, 3, 16, 0)};
  const auto out = given(plan_step(rows, 4, limits), rows);
  CHECK(out == std::map<sequence_key, std::uint32_t>{{3, 16}});
}
