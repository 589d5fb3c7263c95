#include "kernels/sampling/row_sampler.hpp"

#include "messages/check.hpp"

#include <exception>
#include <mutex>

namespace godwit {

void row_sampler::sample(std::span<const sampling_row> rows, std::span<sampled> chosen, std::uint32_t threads,
  const sharing& share_out) {
  GODWIT_CHECK(chosen.size() == rows.size());
  if (scratch_.size() < threads)
    scratch_.resize(threads);
  // Threads of a team must not throw.
  std::mutex guard;
  std::exception_ptr failure;
  share_out(rows.size(), [&](std::size_t row, std::uint32_t thread) {
    const auto& what = rows[row];
    try {
      chosen[row] = godwit::sample(
        what.logits, *what.settings, what.position, what.context, what.prompt_length, scratch_.at(thread));
    } catch (...) {
      const std::lock_guard lock(guard);
      if (!failure)
        failure = std::current_exception();
    }
  });
  if (failure)
    std::rethrow_exception(failure);
}

} // namespace godwit
