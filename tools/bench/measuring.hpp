#pragma once

// What the benches of models share.

#include "kernels/gguf/file.hpp"
#include "kernels/memory/sequence.hpp"
#include "kernels/models/model.hpp"
#include "messages/ids.hpp"
#include "messages/result.hpp"
#include "tools/bench/model_bench.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace godwit::bench {

/// What a bench of a model runs.
struct subject {
  std::shared_ptr<const gguf::file> file;
  std::unique_ptr<model> runs;
};
/// @returns what loading returns; `invalid_argument` for no rounds
result<subject> load(const model_settings& settings);

double seconds_since(std::chrono::steady_clock::time_point start);

/// @param values not empty
double median(std::vector<double> values);

/// Blocks that hold so many positions.
std::uint32_t blocks_for(std::size_t tokens);

/// Tokens without a pattern; which ones they are does not change the work.
/// @param state where the generator starts: other tokens for each
std::vector<token_id> any_tokens(std::size_t count, std::uint32_t vocabulary, std::uint32_t state = 1);

/// Appends a prompt in steps as large as the model takes.
/// @param logits `[vocabulary]`, of the last token
/// @returns `resource_exhausted`
result<void> read_prompt(
  model& runs, sequence& target, std::span<const token_id> prompt, std::span<float> logits);

} // namespace godwit::bench
