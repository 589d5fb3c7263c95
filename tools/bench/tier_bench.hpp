#pragma once

#include "kernels/models/model.hpp"
#include "messages/result.hpp"

#include <cstdint>
#include <filesystem>

namespace godwit::bench {

/// Time from a prompt to the logits of its last token, by where its blocks are found.
struct tier_rates {
  std::uint32_t tokens = 0;
  double cold_ms = 0; ///< nowhere
  double host_ms = 0; ///< in host memory
  double disk_ms = 0; ///< on disk, after store and cache were made anew: names from disk, pages as the system
                      ///< has them
  std::uint32_t slow_tokens =
    0;                       ///< of a prompt on a disk that takes as long to read it as computing it takes
  double slow_cold_ms = 0;   ///< that is computed
  double slow_ms = 0;        ///< that is found there, a part of it computed meanwhile if that pays
  std::uint32_t streams = 0; ///< that decode while blocks go down
  double alone_per_s = 0;    ///< tokens of these streams
  double beside_offload_per_s = 0; ///< the same while host and disk take the prompt's blocks, once in the
                                   ///< time that computing it takes
};

/// Measures the tiers below the device with a real model; medians over rounds.
/// @param tokens length of the prompt, at least two blocks
/// @param folder for the store; must exist, and what is made there goes again
/// @returns what opening the store does
result<tier_rates> measure_tiers(
  model& runs, std::uint32_t tokens, std::uint32_t rounds, const std::filesystem::path& folder);

} // namespace godwit::bench
