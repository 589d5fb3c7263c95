#include "services/mesh/leader_workers.hpp"

#include "services/mesh/host.hpp"

#include <charconv>

namespace godwit {

namespace {

constexpr std::size_t most_pods = 4096;

tl::unexpected<error> wrong(const std::string& variable, const std::string& what) {
  return fail(errc::invalid_argument, "the variable " + variable + " " + what);
}

result<std::size_t> number_in(const environment_lookup& environment, const std::string& variable) {
  const auto text = environment(variable);
  if (!text)
    return wrong(variable, "is not set, and LWS_LEADER_ADDRESS is: a pod of a leader-worker set has both");
  std::size_t out = 0;
  const auto* const end = text->data() + text->size();
  if (const auto [stop, code] = std::from_chars(text->data(), end, out); code != std::errc{} || stop != end)
    return wrong(variable, "is not a number: " + *text);
  return out;
}

} // namespace

result<std::optional<leader_workers>> leader_workers_of(const environment_lookup& environment) {
  const auto leader = environment("LWS_LEADER_ADDRESS");
  if (!leader)
    return std::optional<leader_workers>();
  if (!is_host_name(*leader))
    return wrong("LWS_LEADER_ADDRESS", "is not a host's name: " + *leader);
  const auto size = number_in(environment, "LWS_GROUP_SIZE");
  if (!size)
    return fail(size);
  if (*size < 1 || *size > most_pods)
    return wrong("LWS_GROUP_SIZE", "is not from 1 to " + std::to_string(most_pods));
  const auto own = number_in(environment, "LWS_WORKER_INDEX");
  if (!own)
    return fail(own);
  if (*own >= *size)
    return wrong("LWS_WORKER_INDEX", "is not below LWS_GROUP_SIZE");

  leader_workers out{{*leader}, *own};
  const auto dot = std::min(leader->find('.'), leader->size());
  for (std::size_t i = 1; i < *size; ++i) {
    auto address = leader->substr(0, dot) + "-" + std::to_string(i) + leader->substr(dot);
    if (!is_host_name(address))
      return wrong("LWS_LEADER_ADDRESS", "is too long for the names of workers: " + *leader);
    out.addresses.push_back(std::move(address));
  }
  return std::optional(std::move(out));
}

} // namespace godwit
