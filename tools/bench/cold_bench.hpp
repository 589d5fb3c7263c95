#pragma once

#include "messages/result.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>

namespace godwit::bench {

struct cold_settings {
  std::filesystem::path
    folder;                    ///< on the disk to be measured; a folder of its own is made in it, and removed
  std::filesystem::path model; ///< whose pages are written, of a text that it read; empty: pages of noise
  std::uint32_t megabytes = 512; ///< of pages, in a round
  std::uint32_t batch = 64;      ///< blocks in a commit
  std::uint32_t rounds = 3;
  bool compress = false; ///< zstd
};

/// Store and plain file with the same bytes on the same disk, in turn; medians over the rounds.
struct cold_rates {
  std::size_t block_bytes = 0;
  std::uint64_t blocks = 0; ///< of a round
  /// Bytes a second. The file is written in sequence, in pieces of a batch, and synced once at its end.
  double write = 0;
  double file_write = 0;
  double file_write_synced = 0; ///< the same, synced behind each piece as the store does
  /// In the order in which they were written, when no byte of them is in memory.
  double read = 0;
  double file_read = 0;
  /// The same when the system has all of them in memory.
  double read_warm = 0;
  double file_read_warm = 0;
  /// Bytes that the process gave to the system, over those of pages.
  double write_amplification = 0;
  double space_amplification = 0; ///< of the folder, over those of pages in it

  // A store that is full: three times its limit is written, and one text of eight is read again and again.
  double full_write = 0;
  double full_write_amplification = 0;
  double full_space_amplification = 0; ///< the greatest that was seen behind a commit
  std::uint64_t evicted = 0;
  double worthy_kept = 0;   ///< of the blocks that were read often, how many are there at the end
  double unworthy_kept = 0; ///< of the others
};

/// @returns `io`, `invalid_argument`, what loading a model returns
result<cold_rates> cold(const cold_settings& settings);

} // namespace godwit::bench
