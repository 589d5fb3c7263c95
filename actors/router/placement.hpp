#pragma once

#include "messages/result.hpp"

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace godwit {

/// Blocks of a request's prefix that a worker could take instead of computing them, by where they are.
struct prefix_overlap {
  double device = 0;
  double host = 0;
  double disk = 0;
  double shared = 0;
};

/// What is known of a worker when a request is placed.
struct worker_load {
  std::string name;
  bool available = true;
  bool fetches = false;             ///< it can have prompts computed by others, and is there to run streams
  std::uint64_t prefill_tokens = 0; ///< of prompts that are not done
  double decode_blocks = 0;         ///< of running sequences
  std::uint32_t requests = 0;
  std::uint32_t capacity = 0; ///< requests that it takes, running and waiting
  prefix_overlap overlap;
};

/// Weights of the cost; the defaults are those that serving engines use.
struct cost_weights {
  double scale = 1;    ///< of the prefill part
  double device = 1;   ///< credit for a block found on the device
  double host = 0.75;  ///< in host memory
  double disk = 0.25;  ///< on disk
  double shared = 0.5; ///< in a store that workers share
  double decay = 0;   ///< how fast the device credit fades with prefill work beyond the least loaded worker's
  double request = 0; ///< for each active request
  double temperature = 0; ///< 0 takes the cheapest
};

/// What a worker costs, and of what that is made.
struct worker_cost {
  std::size_t worker = 0; ///< index
  double prefill = 0;     ///< in blocks, as all of these
  double decode = 0;
  double requests = 0;
  double total() const { return prefill + decode + requests; }
};

struct placement_choice {
  std::size_t worker = 0; ///< index
  std::string reason;     ///< the numbers, for whoever asks why
};

/// The cost of giving a request of `tokens` tokens to each available worker with room, lower is better:
/// `scale * max(0, P - (device * fade * d + host * h + disk * k + shared * s)) + decode blocks + request *
/// active`, where P is all prefill work in blocks, this request's included, and fade = 1 / (1 + decay *
/// prefill blocks beyond the least loaded worker's / blocks of the request).
std::vector<worker_cost> costs(std::span<const worker_load> workers, std::uint64_t tokens,
  std::uint32_t block_tokens, const cost_weights& weights);

/// Chooses a worker: the cheapest, ties at random; with a temperature by the softmax of the normalised costs.
/// @returns `unavailable` if there is no worker, `overloaded` if none has room
result<placement_choice> choose_worker(std::span<const worker_load> workers, std::uint64_t tokens,
  std::uint32_t block_tokens, const cost_weights& weights, std::mt19937_64& random);

} // namespace godwit
