#pragma once

#include "kernels/ops/cpu/packed.hpp"
#include "kernels/threads/team.hpp"

#include <cstddef>
#include <span>
#include <vector>

// Between two ops the memory would be idle, and at the beginning of one the thread would wait for it. So
// threads ask for what they will read first in the next op before they wait for each other. All of this is
// advice to the caches: what is asked for need not be there any more.
namespace godwit::ops::cpu {

/// The tile at which a thread's share of a product begins.
constexpr std::size_t first_of_share(std::size_t tiles, std::size_t thread, std::size_t threads) {
  return tiles * thread / threads;
}

/// Asks for memory that will be read soon, into the second cache. Any address is allowed.
void ask_for(const std::byte* from, std::size_t bytes);

/// Where the tiles of a matrix lie. By values, so that it may outlive the matrix.
class tile_places {
 public:
  void set(std::span<const packed_part> parts);

  /// Asks for the beginning of a thread's share: while a product runs each tile asks for what follows it, and
  /// nobody for the first.
  void ask_for_first(const worker& self) const;

 private:
  struct place {
    const std::byte* start;
    std::size_t tile_bytes;
    std::size_t tiles;

    void ask(std::size_t tile) const;
  };

  std::vector<place> places_;
  std::size_t tiles_ = 0;
  bool gated_ = false; ///< each thread's share is one of both parts
};

} // namespace godwit::ops::cpu
