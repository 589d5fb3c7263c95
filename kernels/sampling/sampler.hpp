#pragma once

#include "kernels/sampling/settings.hpp"
#include "messages/ids.hpp"

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace godwit {

/// The least log-probability that is reported; less likely tokens, impossible ones too, get this value (it is
/// OpenAI's word for "very unlikely", and JSON has no infinity).
inline constexpr float least_logprob = -9999.0F;

/// What a position got.
struct sampled {
  token_id token = 0;
  float logprob = 0; ///< 0 unless settings.logprobs or top_logprobs ask for it
  /// The settings.top_logprobs most likely tokens, falling; lowest id first among equals.
  std::vector<std::pair<token_id, float>> top;
};

/// Memory that `sample` uses again from call to call; its contents mean nothing between calls. One a thread.
struct sampler_scratch {
  struct candidate {
    float logit;
    token_id token;
    float weight;
  };

  std::vector<float> logits;         // [vocabulary], where settings change them
  std::vector<float> block_greatest; // of each block of logits
  std::vector<float> weights;        // [vocabulary]
  std::vector<float> block_weights;  // the greatest of each block of weights
  std::vector<double> block_sums;    // of each block of weights
  std::vector<double> few_sums;      // what is summed of the greatest weights, of no use
  std::vector<double> sums_above;    // of those above where top_p may end
  std::vector<token_id> between;     // [vocabulary], ids of those where it may
  std::vector<std::uint64_t> likely; // a bit for each token: those that may stay
  std::vector<float> likely_logits;  // [vocabulary + 16], of those
  std::vector<float> likely_weights; // [vocabulary]
  std::vector<float> likely_most;    // no less than those of a block of them
  double whole = 0;                  // the exact sum of all weights at temperature 1, if it was needed
  std::vector<double> bucket_sums;   // of the weights that share their leading bits
  std::vector<std::uint32_t> counts; // [vocabulary], all zero between calls
  std::vector<candidate> candidates;
  std::vector<candidate> border;
};

/// Chooses the token of a position. A pure function of its arguments, to the last bit and on every machine:
/// it uses single IEEE operations in a fixed order, its own exp and log, and uniform_at(seed, position).
///
/// The steps, in this order:
///  1. Log-probabilities, if asked for, are the log-softmax of the logits as they came (as vLLM reports them
///  by
///     default): neither bias, penalties nor temperature show in them.
///  2. A NaN counts as minus infinity, which is never chosen if there is another; plus infinity as the
///  greatest
///     float.
///  3. `bias` is added.
///  4. `repeat_penalty`: each token among the last `penalty_window` of the context has its logit divided if
///  it
///     is positive, else multiplied.
///  5. `frequency_penalty` times its count, and `presence_penalty`, are subtracted for each generated token.
///  6. Temperature 0: the greatest logit, the lowest id among equals. Else the weight of a token is
///     exp((logit - greatest) / temperature).
///  7. `top_k` keeps the k greatest logits, lowest ids first among equals.
///  8. `top_p` keeps the fewest of what is left, greatest first, whose weights reach top_p of their sum. Sums
///     go by the leading bits of weights: all together that lead with more by 14 bits (behind top_k by 17),
///     then by 17 bits, then one by one, greatest logit first, those of the bits with which the goal is
///     reached.
///  9. `min_p` keeps what has at least min_p times the greatest weight.
/// 10. The kept tokens are walked by ascending id until the sum of their weights exceeds the random number
///     times the whole. Sums go by blocks (vocabulary.hpp), behind top_k one by one.
/// If no logit is finite, the token is 0.
///
/// @param logits        `[vocabulary]`, not empty
/// @param settings      which validate() took for this vocabulary
/// @param position      where the token will stand
/// @param context       all tokens before it, ids below the vocabulary
/// @param prompt_length how many of them were given; those after were generated
sampled sample(std::span<const float> logits, const sampling_settings& settings, position_t position,
  std::span<const token_id> context, std::uint32_t prompt_length, sampler_scratch& scratch);

} // namespace godwit
