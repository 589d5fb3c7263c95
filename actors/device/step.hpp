#pragma once

// The words between the device and those who decide what it runs, as plain values; step_letters.hpp packs
// them.

#include "actors/device/rank.hpp"
#include "kernels/memory/kv_layout.hpp"
#include "kernels/sampling/sampler.hpp"
#include "kernels/sampling/settings.hpp"
#include "messages/error.hpp"
#include "messages/ids.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace godwit {

/// A sequence on the device; it has the id of its request.
using sequence_key = request_id;
/// Counts the steps of a device, from 1.
using step_number = std::uint64_t;

/// Who decides about rows.
enum class step_role : std::uint8_t { prefill, decode };
inline constexpr std::size_t step_roles = 2;

/// A sequence for the device to keep.
struct sequence_opening {
  sequence_key key = 0;
  rank order;
  std::string tenant;
  std::vector<token_id> tokens; ///< all so far
  std::uint32_t prompt_length = 0;
  sampling_settings sampling;
  std::vector<block_id> cached; ///< blocks of its beginning; a reference of each is handed over
  std::uint32_t cached_at_most = ~std::uint32_t{0}; ///< of their tokens, those that others computed
};

/// At most `tokens` tokens of a sequence in the next step.
struct row_offer {
  sequence_key sequence = 0;
  std::uint32_t tokens = 0;
};

/// What a role wants in the next step; takes the place of what it wanted before.
struct submission {
  step_role role = step_role::prefill;
  step_number seen = 0; ///< the last step whose result the sender knew
  std::vector<sequence_opening> openings;
  std::vector<row_offer> rows;
};

enum class row_outcome : std::uint8_t {
  computed,  ///< some of the prompt; the rest is still to come
  sampled,   ///< up to the last token, and the next one was chosen
  starved,   ///< no pages; to be offered again when blocks have come free
  preempted, ///< its pages went to another one: the sequence is closed
  failed,    ///< the sequence is closed
};

/// What became of a sequence in a step.
struct row_result {
  sequence_key sequence = 0;
  row_outcome outcome = row_outcome::computed;
  bool prompt = false;        ///< nothing had been sampled from it before
  std::uint32_t computed = 0; ///< tokens
  std::uint32_t cached = 0;   ///< tokens that were found, not computed
  position_t position = 0;    ///< of `token`
  sampled token;              ///< if sampled
  error failure;              ///< if failed
};

struct step_result {
  step_number step = 0;
  std::vector<row_result> rows;
};

} // namespace godwit
