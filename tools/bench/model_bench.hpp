#pragma once

#include "kernels/memory/kv_layout.hpp"
#include "messages/ids.hpp"
#include "messages/result.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

/// What a model does on this machine, without a node. Rates are medians over rounds; where several sizes are
/// measured the rounds alternate between them, so that a disturbance does not hit one size alone.
namespace godwit::bench {

struct model_settings {
  std::filesystem::path model;
  std::uint32_t threads = 0;       ///< 0: one for each core
  std::string implementation = {}; ///< of the dispatch table; empty: GODWIT_OPS, else the best
  std::optional<kv_type> kv = {};  ///< of pages; nothing: what the implementation takes by itself
  std::uint32_t rounds = 5;        ///< at least 1, after one that does not count
};

struct prefill_rate {
  std::uint32_t tokens = 0; ///< of the prompt
  double tokens_per_s = 0;
  double operations_per_s = 0; ///< of the model: multiplications and additions, see model_work.hpp
};

/// The speed of prompts: from the first token to the logits of the last.
/// @returns what loading returns; `invalid_argument` for a size of 0 or beyond the context
result<std::vector<prefill_rate>> prefill(
  const model_settings& settings, std::span<const std::uint32_t> tokens);

struct decode_rate {
  std::uint32_t context = 0;
  std::uint32_t batch = 0;
  double tokens_per_s = 0; ///< of the whole batch
  double bytes_per_s = 0;  ///< of weights, keys and values that the steps read
};

/// Tokens that are decoded in a round, by each stream.
inline constexpr std::uint32_t decode_steps = 16;

/// The speed of decoding `batch` streams that each have `context` tokens behind them, in pages of their own.
/// @returns what loading returns; `invalid_argument` for a size of 0 or beyond the context;
/// `resource_exhausted` if the streams' pages do not fit
result<std::vector<decode_rate>> decode(const model_settings& settings,
  std::span<const std::uint32_t> contexts, std::span<const std::uint32_t> batches);

struct verify_time {
  std::uint32_t context = 0;
  std::uint32_t tokens = 0; ///< of one block
  double seconds = 0;       ///< of one pass with logits for each of them
};

/// The time to verify a block of each size behind `context` tokens: one pass, cut off again.
/// @returns as decode()
result<std::vector<verify_time>> verify(const model_settings& settings,
  std::span<const std::uint32_t> contexts, std::span<const std::uint32_t> tokens);

struct text_loss {
  std::uint64_t tokens = 0; ///< of the text
  double mean_nll = 0;      ///< nats for each token that has one before it
};

/// The mean negative log-likelihood of a text under teacher forcing. A text beyond the model's context is cut
/// into pieces of that length, each read anew.
/// @returns what loading returns; `invalid_argument` for less than two tokens or one beyond the vocabulary
result<text_loss> nll(const model_settings& settings, std::span<const token_id> text);

} // namespace godwit::bench
