#include "actors/router/placement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace godwit {
namespace {

bool has_room(const worker_load& worker) {
  return worker.available && worker.requests < worker.capacity;
}

double unit(std::mt19937_64& random) {
  return std::uniform_real_distribution<double>(0, 1)(random);
}

/// The cheapest; of equal ones each with the same chance (reservoir of one).
std::size_t cheapest(std::span<const worker_cost> list, std::mt19937_64& random) {
  std::size_t best = 0;
  double ties = 1;
  for (std::size_t i = 1; i < list.size(); ++i) {
    if (list[i].total() < list[best].total()) {
      best = i;
      ties = 1;
    } else if (list[i].total() == list[best].total() && unit(random) * ++ties < 1) {
      best = i;
    }
  }
  return best;
}

/// By the softmax of -(cost - min) / ((max - min) * temperature).
std::size_t drawn(std::span<const worker_cost> list, double temperature, std::mt19937_64& random) {
  const auto [low, high] = std::minmax_element(list.begin(), list.end(),
    [](const worker_cost& a, const worker_cost& b) { return a.total() < b.total(); });
  const double least = low->total();
  const double range = high->total() - least;
  if (range <= 0)
    return cheapest(list, random);
  std::vector<double> weights;
  double sum = 0;
  for (const auto& cost : list)
    sum += weights.emplace_back(std::exp(-(cost.total() - least) / (range * temperature)));
  double at = unit(random) * sum;
  for (std::size_t i = 0; i < weights.size(); ++i)
    if ((at -= weights[i]) < 0)
      return i;
  return weights.size() - 1;
}

} // namespace

std::vector<worker_cost> costs(std::span<const worker_load> workers, std::uint64_t tokens,
  std::uint32_t block_tokens, const cost_weights& weights) {
  const auto blocks = [&](std::uint64_t count) { return static_cast<double>(count) / block_tokens; };
  double least = std::numeric_limits<double>::max();
  for (const auto& worker : workers)
    if (has_room(worker))
      least = std::min(least, blocks(worker.prefill_tokens));
  std::vector<worker_cost> list;
  for (std::size_t i = 0; i < workers.size(); ++i) {
    const auto& worker = workers[i];
    if (!has_room(worker))
      continue;
    const double excess = blocks(worker.prefill_tokens) - least;
    const double fade = 1 / (1 + weights.decay * excess / std::max(blocks(tokens), 1.0));
    const auto& known = worker.overlap;
    const double credit = weights.device * fade * known.device + weights.host * known.host
                          + weights.disk * known.disk + weights.shared * known.shared;
    worker_cost cost;
    cost.worker = i;
    cost.prefill = weights.scale * std::max(0.0, blocks(worker.prefill_tokens + tokens) - credit);
    cost.decode = worker.decode_blocks;
    cost.requests = weights.request * worker.requests;
    list.push_back(cost);
  }
  return list;
}

result<placement_choice> choose_worker(std::span<const worker_load> workers, std::uint64_t tokens,
  std::uint32_t block_tokens, const cost_weights& weights, std::mt19937_64& random) {
  if (std::none_of(
        workers.begin(), workers.end(), [](const worker_load& worker) { return worker.available; }))
    return fail(errc::unavailable, "no worker is there to take the request");
  const auto list = costs(workers, tokens, block_tokens, weights);
  if (list.empty())
    return fail(errc::overloaded, "all workers are busy: try again later");
  const auto pick =
    weights.temperature > 0 ? drawn(list, weights.temperature, random) : cheapest(list, random);
  const auto& cost = list[pick];
  return placement_choice{cost.worker,
    fmt::format(
      "cost {:.2f} blocks (prefill {:.2f}, decode {:.2f}, requests {:.2f}); {} of {} workers have room",
      cost.total(), cost.prefill, cost.decode, cost.requests, list.size(), workers.size())};
}

} // namespace godwit
