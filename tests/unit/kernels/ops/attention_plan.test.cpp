#include "kernels/ops/cpu/attention_plan.hpp"
#include "kernels/ops/cpu/kernels.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <list>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

using namespace godwit;
using namespace godwit::ops;
using namespace godwit::ops::cpu;

namespace {

constexpr kv_shape pages{.layers = 1, .kv_heads = 3, .head_dim = 16};
constexpr std::uint32_t heads = 9;

/// A step over sequences of these lengths, each with so many rows more.
struct planned {
  std::unique_ptr<page_pool> pool = page_pool::create(pages, 4096).value();
  std::list<sequence> sequences;
  std::vector<step_sequence> parts;
  std::vector<token_id> tokens;
  std::vector<position_t> positions;

  planned(const std::vector<std::pair<std::uint32_t, std::uint32_t>>& lengths_and_rows) {
    for (const auto& [length, rows] : lengths_and_rows) {
      auto& each = sequences.emplace_back(*pool);
      REQUIRE(each.reserve(length + rows));
      each.advance(length);
      parts.push_back({&each, static_cast<std::uint32_t>(tokens.size()), rows});
      for (std::uint32_t row = 0; row < rows; ++row) {
        tokens.push_back(0);
        positions.push_back(length + row);
      }
    }
  }

  std::vector<attention_task> tasks(std::uint32_t threads, std::uint32_t slots = 8192) const {
    op_shape shape;
    shape.max_rows = 512;
    shape.heads = heads;
    shape.kv = pages;
    attention_plan plan{shape, threads, slots};
    plan.make({tokens, positions, parts, {}});
    // Slots of split rows are each row's own.
    std::vector<bool> used(slots);
    for (const auto& part : parts) {
      for (std::uint32_t row = part.first_row; row < part.first_row + part.rows; ++row) {
        for (std::uint32_t i = 0; i < heads * plan.segments_of(row); ++i) {
          const auto slot = plan.slot(row, i / plan.segments_of(row), i % plan.segments_of(row));
          REQUIRE(slot < slots);
          REQUIRE_FALSE(used[slot]);
          used[slot] = true;
        }
      }
    }
    return {plan.tasks().begin(), plan.tasks().end()};
  }
};

} // namespace

TEST_CASE("every row meets each segment that it sees once, for each KV head, whatever the step") {
  for (const auto& step : std::vector<std::vector<std::pair<std::uint32_t, std::uint32_t>>>{{{0, 1}},
         {{4096, 1}}, {{127, 1}}, {{128, 1}}, {{5000, 8}}, {{5000, 9}}, {{0, 300}},
         {{8191, 1}, {3, 1}, {100, 40}}, {{700, 1}, {700, 1}, {700, 1}}}) {
    const planned made{step};
    for (const std::uint32_t threads : {1U, 2U, 3U, 7U}) {
      for (const std::uint32_t slots : {8192U, 100U}) {
        const auto tasks = made.tasks(threads, slots);
        std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, int> met; // row, head, segment
        for (const auto& task : tasks) {
          const auto& part = made.parts[task.sequence];
          for (std::uint32_t row = task.first_row; row < task.first_row + task.rows; ++row) {
            REQUIRE(row >= part.first_row);
            REQUIRE(row < part.first_row + part.rows);
            const std::uint32_t seen = made.positions[row] + 1;
            const auto all = static_cast<std::uint32_t>((seen + segment_tokens - 1) / segment_tokens);
            const std::uint32_t last = task.split ? task.last_segment : all;
            for (std::uint32_t segment = task.first_segment; segment < last; ++segment) {
              ++met[{row, task.kv_head, segment}];
            }
          }
        }
        for (std::uint32_t row = 0; row < made.tokens.size(); ++row) {
          for (std::uint32_t head = 0; head < pages.kv_heads; ++head) {
            for (std::uint32_t segment = 0; segment * segment_tokens <= made.positions[row]; ++segment) {
              REQUIRE(met[{row, head, segment}] == 1);
            }
          }
        }
      }
    }
  }
}

TEST_CASE("the largest tasks come first, and one long context is shared to within a segment") {
  const planned made{{{4096, 1}}};
  for (const std::uint32_t threads : {2U, 3U, 4U}) {
    const auto tasks = made.tasks(threads);
    CHECK(std::ranges::is_sorted(tasks, std::greater{}, &attention_task::work));
    // Whoever has done least takes the next one.
    std::vector<std::size_t> done(threads);
    for (const auto& task : tasks) {
      *std::ranges::min_element(done) += task.work;
    }
    const auto [least, most] = std::ranges::minmax(done);
    CHECK(most - least <= segment_tokens);
  }
}
