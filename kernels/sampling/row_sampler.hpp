#pragma once

#include "kernels/sampling/sampler.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace godwit {

/// One row of a step whose next token is to be chosen; the arguments of `sample`.
struct sampling_row {
  std::span<const float> logits;
  const sampling_settings* settings = nullptr;
  position_t position = 0;
  std::span<const token_id> context;
  std::uint32_t prompt_length = 0;
};

/// Chooses the tokens of many rows on several threads. What a row gets does not depend on who takes it, or
/// when: `sample` is a pure function.
class row_sampler {
 public:
  using job = std::function<void(std::size_t row, std::uint32_t thread)>;
  /// Calls the job once for each row below `rows`, on threads below the number that `sample` was told; a
  /// thread has one row at a time.
  using sharing = std::function<void(std::size_t rows, const job& job)>;

  /// @param chosen `[rows]`
  /// @throws what `sample` throws for want of memory, of the row that failed first
  void sample(std::span<const sampling_row> rows, std::span<sampled> chosen, std::uint32_t threads,
    const sharing& share_out);

 private:
  std::vector<sampler_scratch> scratch_; // [threads]
};

} // namespace godwit
