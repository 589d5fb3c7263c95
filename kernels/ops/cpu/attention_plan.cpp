#include "kernels/ops/cpu/attention_plan.hpp"

#include "kernels/ops/cpu/kernels.hpp"

#include <algorithm>
#include <tuple>

namespace godwit::ops::cpu {

namespace {

/// Queries that a task takes through the pages together: enough to pay for reading a page, few enough for
/// their scores to stay in the first cache.
constexpr std::uint32_t task_queries = 24;
/// Rows of a sequence up to which its segments become tasks.
constexpr std::uint32_t most_split_rows = 8;
/// No task should be more than this part of a thread's work.
constexpr std::uint32_t tasks_per_thread = 8;

} // namespace

attention_plan::attention_plan(const op_shape& shape, std::uint32_t threads, std::uint32_t slots)
  : heads_{shape.heads}, kv_heads_{shape.kv.kv_heads}, threads_{threads}, slots_{slots},
    rows_(shape.max_rows) {
  // So that no step allocates: a task for each row and head, or for each slot.
  tasks_.reserve(std::size_t{shape.max_rows} * kv_heads_ + slots);
}

std::uint32_t attention_plan::tile_rows() const {
  return std::max<std::uint32_t>(1, task_queries / (heads_ / kv_heads_));
}

std::size_t attention_plan::most_queries() const {
  return std::size_t{std::max(tile_rows(), most_split_rows)} * (heads_ / kv_heads_);
}

void attention_plan::make(const step& what) {
  tasks_.clear();
  split_ = false;
  // Work counts in pairs of row and position; that of rows in one sequence is taken as equal.
  std::size_t work = 0;
  for (const auto& part : what.sequences) {
    work += part.rows * (std::size_t{part.target->most_kept()} + part.rows);
  }
  const std::size_t largest = work * kv_heads_ / (std::size_t{threads_} * tasks_per_thread);
  std::size_t used = 0;
  for (std::uint32_t s = 0; s < what.sequences.size(); ++s) {
    const auto& part = what.sequences[s];
    // Heads that keep less have nothing in the last segments.
    const std::size_t kept = part.target->most_kept();
    const auto positions = kept + part.rows;
    const auto segments = static_cast<std::uint32_t>((positions + segment_tokens - 1) / segment_tokens);
    const std::size_t wanted = std::size_t{part.rows} * heads_ * segments;
    const bool split = threads_ > 1 && part.rows * positions > largest && segments > 1
                       && part.rows <= most_split_rows && used + wanted <= slots_;
    for (std::uint32_t r = 0; r < part.rows; ++r) {
      rows_[part.first_row + r] = {used + std::size_t{r} * heads_ * segments, split ? segments : 0};
    }
    if (split) {
      used += wanted;
      split_ = true;
      const auto run = static_cast<std::uint32_t>(
        std::max<std::size_t>(1, largest / (std::size_t{part.rows} * segment_tokens)));
      for (std::uint32_t head = 0; head < kv_heads_; ++head) {
        // Neighbouring segments go together: while one is read the next one can be asked for. The last ones
        // in ever shorter runs, so that the threads are done at nearly the same time.
        for (std::uint32_t first = 0, last = 0; first < segments; first = last) {
          last = first + std::min(run, (segments - first + 1) / 2);
          tasks_.push_back({s, part.first_row, part.rows, head, first, last, true,
            std::size_t{part.rows} * (last - first) * segment_tokens});
        }
      }
      continue;
    }
    const std::uint32_t tiles = (part.rows + tile_rows() - 1) / tile_rows();
    for (std::uint32_t tile = 0; tile < tiles; ++tile) {
      const std::uint32_t first = tile * tile_rows();
      const std::uint32_t rows = std::min(tile_rows(), part.rows - first);
      const std::size_t seen = kept + first + rows;
      for (std::uint32_t head = 0; head < kv_heads_; ++head) {
        tasks_.push_back({s, part.first_row + first, rows, head, 0, 0, false, rows * seen});
      }
    }
  }
  // The largest first, so that no thread ends with a long task alone.
  std::ranges::sort(tasks_, [](const attention_task& a, const attention_task& b) {
    return a.work != b.work ? a.work > b.work
                            : std::tie(a.sequence, a.first_row, a.kv_head, a.first_segment)
                                < std::tie(b.sequence, b.first_row, b.kv_head, b.first_segment);
  });
}

} // namespace godwit::ops::cpu
