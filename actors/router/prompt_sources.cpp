#include "actors/router/prompt_sources.hpp"

#include <algorithm>
#include <functional>

namespace godwit {
namespace {

/// Mixes a number into another (SplitMix64's finaliser).
constexpr std::uint64_t mix(std::uint64_t seed, std::uint64_t value) {
  auto z = (seed ^ value) + 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111eb;
  return z ^ (z >> 31U);
}

/// A hash of each beginning of whole segments, the shortest first. Two that collide cost a choice that is not
/// the best, and nothing else.
std::vector<std::uint64_t> beginnings_of(std::string_view tenant, capnp::List<std::uint32_t>::Reader tokens) {
  std::vector<std::uint64_t> out;
  auto hash = mix(std::hash<std::string_view>{}(tenant), tenant.size());
  for (unsigned i = 0; i < tokens.size(); ++i) {
    hash = mix(hash, tokens[i]);
    if ((i + 1) % prompt_sources::segment == 0)
      out.push_back(hash);
  }
  return out;
}

} // namespace

void prompt_sources::remove(std::string_view name) {
  if (const auto found = all_.find(name); found != all_.end())
    all_.erase(found);
}

std::uint64_t prompt_sources::queued(std::string_view name) const {
  const auto found = all_.find(name);
  return found == all_.end() ? 0 : found->second.queued;
}

std::optional<prompt_sources::choice> prompt_sources::choose(
  std::string_view tenant, capnp::List<std::uint32_t>::Reader tokens) {
  if (all_.empty())
    return std::nullopt;
  const auto beginnings = beginnings_of(tenant, tokens);
  std::map<std::string_view, std::uint64_t> known;
  for (std::size_t i = 0; i < beginnings.size(); ++i)
    if (const auto found = computed_.find(beginnings[i]); found != computed_.end())
      known[found->second] = (i + 1) * segment;
  const auto work = [&](const auto& one) {
    const auto found = known.find(one.first);
    return tokens.size() - (found == known.end() ? 0 : found->second);
  };
  const auto best = std::min_element(all_.begin(), all_.end(), [&](const auto& a, const auto& b) {
    const auto cost_a = a.second.queued + work(a);
    const auto cost_b = b.second.queued + work(b);
    return cost_a != cost_b ? cost_a < cost_b : a.second.given < b.second.given;
  });
  choice out{best->first, work(*best)};
  best->second.queued += out.tokens;
  best->second.given += out.tokens;
  remember(beginnings, out.name);
  return out;
}

void prompt_sources::done(const choice& what) {
  const auto found = all_.find(what.name);
  if (found != all_.end())
    found->second.queued -= std::min(found->second.queued, what.tokens);
}

void prompt_sources::remember(const std::vector<std::uint64_t>& beginnings, const std::string& name) {
  for (const auto each : beginnings) {
    const auto [place, fresh] = computed_.insert_or_assign(each, name);
    if (!fresh)
      continue;
    order_.push_back(each);
    if (order_.size() > remembered_) {
      computed_.erase(order_.front());
      order_.pop_front();
    }
  }
}

} // namespace godwit
