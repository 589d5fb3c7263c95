#pragma once

#include "actors/cache/block_identity.hpp"
#include "actors/device/step.hpp"
#include "messages/letter.hpp"
#include "messages/result.hpp"
#include "messages/schemas/engine.capnp.h"
#include "messages/schemas/generation.capnp.h"

#include <span>
#include <vector>

namespace godwit {

/// How to choose tokens, out of a request.
sampling_settings read_sampling(schema::Sampling::Reader from);
void write_token(schema::SampledToken::Builder to, const sampled& token);
sampled read_token(schema::SampledToken::Reader from);

/// Lists of tokens or blocks.
std::vector<std::uint32_t> read_ids(capnp::List<std::uint32_t>::Reader from);
void write_ids(capnp::List<std::uint32_t>::Builder to, std::span<const std::uint32_t> ids);
/// Lists of requests or sequences.
std::vector<std::uint64_t> read_keys(capnp::List<std::uint64_t>::Reader from);
void write_keys(capnp::List<std::uint64_t>::Builder to, std::span<const std::uint64_t> keys);
/// Names of blocks, each by its two halves.
std::vector<block_identity> read_names(capnp::List<std::uint64_t>::Reader from);
/// @param to twice as long as `names`
void write_names(capnp::List<std::uint64_t>::Builder to, std::span<const block_identity> names);

/// A sequence to open, as prefill knows it.
struct opening_order {
  letter<schema::GenerateRequest> ask;
  std::vector<token_id> tokens; ///< all so far: the request's, or more when it starts again
  std::uint64_t arrival = 0;
  std::vector<block_id> cached;
  std::uint32_t cached_at_most = ~std::uint32_t{0};
  std::uint32_t cached_host = 0; ///< tokens
  std::uint32_t cached_disk = 0;
  std::uint32_t hole_at = 0; ///< see sequence_opening
};

letter<schema::StepSubmission> pack_submission(step_role role, step_number seen,
  std::span<const row_offer> rows, std::span<const opening_order> openings = {},
  std::span<const hole_filling> fillings = {});
submission unpack(schema::StepSubmission::Reader from);

letter<schema::StepResult> pack(const step_result& result);
step_result unpack(schema::StepResult::Reader from);

letter<schema::CloseSequences> pack_close(std::span<const sequence_key> keys);

} // namespace godwit
