#pragma once

#include "kernels/ops/op_set.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace godwit::ops::cpu {

/// Attention of some rows of one sequence for the query heads that share one KV head.
struct attention_task {
  std::uint32_t sequence = 0; ///< index in the step
  std::uint32_t first_row = 0;
  std::uint32_t rows = 0;
  std::uint32_t kv_head = 0;
  std::uint32_t first_segment = 0; ///< those to compute if `split`: [first, last)
  std::uint32_t last_segment = 0;
  bool split = false;   ///< else all segments, merged at once
  std::size_t work = 0; ///< pairs of row and position
};

/// Cuts a step's attention into tasks that any thread may take, the largest first. The segments of a few rows
/// whose context is a large part of the step's work become tasks of their own, whose partial results wait in
/// slots to be merged in order. The result is the same either way.
class attention_plan {
 public:
  /// @param slots partial results there is room for
  attention_plan(const op_shape& shape, std::uint32_t threads, std::uint32_t slots);

  void make(const step& what);

  std::span<const attention_task> tasks() const { return tasks_; }

  bool any_split() const { return split_; }

  /// Segments of a row whose attention is split, else 0.
  std::uint32_t segments_of(std::uint32_t row) const { return rows_[row].segments; }
  /// Slot of a row's query head and segment.
  std::size_t slot(std::uint32_t row, std::uint32_t head, std::uint32_t segment) const {
    return rows_[row].first_slot + std::size_t{head} * rows_[row].segments + segment;
  }

  /// Queries of the largest task.
  std::size_t most_queries() const;

 private:
  struct row_slots {
    std::size_t first_slot = 0;
    std::uint32_t segments = 0;
  };

  std::uint32_t tile_rows() const;

  std::uint32_t heads_;
  std::uint32_t kv_heads_;
  std::uint32_t threads_;
  std::size_t slots_;
  bool split_ = false;
  std::vector<attention_task> tasks_;
  std::vector<row_slots> rows_;
};

} // namespace godwit::ops::cpu
