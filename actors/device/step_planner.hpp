#pragma once

#include "actors/device/rank.hpp"
#include "actors/device/step.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace godwit {

/// How much one step takes.
struct step_limits {
  std::uint32_t budget = 512; ///< tokens of a step
  std::uint32_t chunk =
    128;                    ///< prompt tokens of a step that has decode rows too: what a stream waits at most
  std::uint32_t rows = 512; ///< tokens that the model takes at once, whatever the budget
  /// What a stream should wait for its next token at most: prompts beside streams take fewer tokens than
  /// `chunk` if this asks for it (step_pace.hpp); 0 is no such wish.
  std::chrono::nanoseconds inter_token{0};
};

/// A row that could run.
struct step_candidate {
  sequence_key sequence = 0;
  rank order;
  bool prompt = false;
  std::uint32_t tokens = 0; ///< offered: 1 for a decode row, up to all that is left of a prompt
  std::uint32_t blocks =
    0; ///< to be taken from the pool first: for one token, or for the whole prompt at its start
  bool room_only = false; ///< these blocks are to be there, and nothing is to run
};

struct planned_row {
  std::size_t candidate = 0; ///< index
  std::uint32_t tokens = 0;
};

/// What runs, decode rows first.
struct step_plan {
  std::vector<planned_row> rows;
  std::vector<std::size_t> starved; ///< indices of candidates that got no blocks, the first in rank first
  std::uint32_t missing = 0;        ///< blocks that would let the first of them run
};

/// Fills one step. Blocks go out by rank. A prompt takes the blocks of its whole length when it starts, so
/// that it never stops half-way, and leaves one for each row that runs, so that it is not thrown out again at
/// once; no prompt starts while one that goes before it waits for blocks. Decode rows always run; the tokens
/// left of the budget are shared evenly among the prompts, at least `prompt_floor` of them in all.
step_plan plan_step(
  std::span<const step_candidate> candidates, std::uint32_t free_blocks, const step_limits& limits);

/// Prompt tokens that even a step full of decode rows takes, so that prompts get on.
inline constexpr std::uint32_t prompt_floor = 16;

} // namespace godwit
