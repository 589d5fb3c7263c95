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

/// Tokens that were found and not computed, in the order of their positions: first those that were on the
/// device, then those brought from host memory, then those from the cold tier.
struct found_tokens {
  std::uint32_t all = 0;
  std::uint32_t host = 0;
  std::uint32_t disk = 0;

  /// Those of the first `most` tokens.
  found_tokens first(std::uint32_t most) const {
    const auto device = all - host - disk;
    found_tokens out;
    out.all = all < most ? all : most;
    const auto below = out.all - (device < out.all ? device : out.all);
    out.host = host < below ? host : below;
    out.disk = below - out.host;
    return out;
  }

  bool operator==(const found_tokens&) const = default;
};

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
  std::uint32_t cached_host = 0;                    ///< of their tokens, those that came from host memory
  std::uint32_t cached_disk = 0;                    ///< and from the cold tier
  /// Above 0: it is computed up to so many tokens only, a multiple of page_tokens, until a filling comes.
  std::uint32_t hole_at = 0;
};

/// Blocks that were brought while those before them were computed, for the hole that was left for them.
struct hole_filling {
  sequence_key key = 0;
  std::uint32_t at = 0;         ///< tokens before the hole
  std::vector<block_id> blocks; ///< from the cold tier, with a reference of each; none: it is to be computed
};

/// In an offer, in place of a number: nothing is to be computed, but room made for all of it as if it were.
/// The result is `computed` with 0 tokens.
inline constexpr std::uint32_t room_only = ~std::uint32_t{0};

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
  std::vector<hole_filling> fillings = {};
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
  bool prompt = false;           ///< nothing had been sampled from it before
  std::uint32_t computed = 0;    ///< tokens
  std::uint32_t cached = 0;      ///< tokens that were found, not computed
  std::uint32_t cached_host = 0; ///< of these, from host memory
  std::uint32_t cached_disk = 0; ///< and from the cold tier
  position_t position = 0;       ///< of `token`
  sampled token;                 ///< if sampled
  error failure;                 ///< if failed

  found_tokens found() const { return {cached, cached_host, cached_disk}; }
};

struct step_result {
  step_number step = 0;
  std::vector<row_result> rows;
};

} // namespace godwit
