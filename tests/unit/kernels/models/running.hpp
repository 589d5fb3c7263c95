#pragma once

// Runs models in tests.

#include "kernels/memory/page_pool.hpp"
#include "kernels/models/model.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace godwit {

inline std::unique_ptr<model> load(const std::shared_ptr<const gguf::file>& file,
  const std::string& implementation, std::uint32_t threads = 1, std::uint32_t max_rows = 512,
  std::optional<kv_type> kv = std::nullopt) {
  auto made =
    model::load(file, {.implementation = implementation, .threads = threads, .max_rows = max_rows, .kv = kv});
  if (!made) {
    FAIL(made.error().message);
  }
  return std::move(*made);
}

/// Appends tokens in chunks of `step`.
/// @returns the logits of all of them, [tokens, vocabulary]
inline std::vector<float> append(
  model& runs, sequence& target, std::span<const token_id> tokens, std::size_t step = 512) {
  const std::size_t width = runs.shape().vocabulary;
  std::vector<float> logits(tokens.size() * width);
  for (std::size_t start = 0; start < tokens.size(); start += step) {
    const std::size_t count = std::min(step, tokens.size() - start);
    REQUIRE(target.reserve(static_cast<std::uint32_t>(count)).has_value());
    const chunk part{&target, tokens.subspan(start, count), logits_wanted::all};
    runs.forward({&part, 1}, std::span{logits}.subspan(start * width, count * width));
  }
  return logits;
}

inline std::vector<token_id> random_tokens(std::size_t count, std::uint32_t seed, std::uint32_t vocabulary) {
  std::mt19937 random{seed};
  std::vector<token_id> made(count);
  std::ranges::generate(made, [&] { return static_cast<token_id>(random() % vocabulary); });
  return made;
}

} // namespace godwit
