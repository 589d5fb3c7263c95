#include "actors/device/step_planner.hpp"

#include <algorithm>
#include <numeric>

namespace godwit {
namespace {

std::vector<std::size_t> by_rank(std::span<const step_candidate> candidates) {
  std::vector<std::size_t> order(candidates.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
    [&](std::size_t a, std::size_t b) { return candidates[a].order.before(candidates[b].order); });
  return order;
}

/// Splits `tokens` evenly; what a short prompt does not need goes to the longer ones.
void share(std::span<const step_candidate> candidates, std::vector<std::size_t> prompts, std::uint32_t tokens,
  std::vector<planned_row>& rows) {
  std::stable_sort(prompts.begin(), prompts.end(),
    [&](std::size_t a, std::size_t b) { return candidates[a].tokens < candidates[b].tokens; });
  auto others = static_cast<std::uint32_t>(prompts.size());
  for (const auto index : prompts) {
    const auto part = std::min(tokens, std::max(tokens / others, 1U));
    const auto given = std::min(part, candidates[index].tokens);
    if (given > 0)
      rows.push_back({index, given});
    tokens -= given;
    --others;
  }
}

} // namespace

step_plan plan_step(
  std::span<const step_candidate> candidates, std::uint32_t free_blocks, const step_limits& limits) {
  step_plan plan;
  std::vector<std::size_t> decodes;
  std::vector<std::size_t> prompts;
  bool prompt_waits = false;
  for (const auto index : by_rank(candidates)) {
    const auto& row = candidates[index];
    const auto running = static_cast<std::uint32_t>(decodes.size() + prompts.size());
    const bool starts = row.prompt && row.blocks > 0;
    const auto wanted = row.blocks + (starts ? running : 0);
    if (wanted > free_blocks || (starts && prompt_waits)) {
      if (plan.starved.empty())
        plan.missing = wanted - std::min(wanted, free_blocks);
      plan.starved.push_back(index);
      prompt_waits = prompt_waits || starts;
      continue;
    }
    free_blocks -= row.blocks;
    (row.prompt ? prompts : decodes).push_back(index);
  }

  if (decodes.size() > limits.rows)
    decodes.resize(limits.rows);
  for (const auto index : decodes)
    plan.rows.push_back({index, 1});
  const auto taken = static_cast<std::uint32_t>(decodes.size());
  auto left = limits.budget - std::min(limits.budget, taken);
  if (taken > 0)
    left = std::min(left, limits.chunk);
  left = std::min(std::max(left, prompt_floor), limits.rows - taken);
  if (!prompts.empty())
    share(candidates, std::move(prompts), left, plan.rows);
  return plan;
}

} // namespace godwit
