#include "actors/router/router_state.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace godwit {

router_state::router_state(std::string model, std::vector<worker_load> workers, router_options options)
  : model_(std::move(model)), workers_(std::move(workers)), lost_(workers_.size(), false), options_(options),
    random_(options.seed) {}

result<std::size_t> router_state::join(worker_load worker) {
  const auto place = std::find(lost_.begin(), lost_.end(), true);
  const auto index = static_cast<std::size_t>(place - lost_.begin());
  if (place != lost_.end()) {
    workers_[index] = std::move(worker);
    lost_[index] = false;
    return index;
  }
  if (workers_.size() >= options_.workers)
    return fail(errc::resource_exhausted, "the router knows as many workers as it may");
  workers_.push_back(std::move(worker));
  lost_.push_back(false);
  return index;
}

std::optional<std::size_t> router_state::find(std::string_view name) const {
  for (std::size_t i = 0; i < workers_.size(); ++i)
    if (!lost_[i] && workers_[i].name == name)
      return i;
  return std::nullopt;
}

void router_state::take_requests(std::size_t worker, bool yes) {
  workers_[worker].available = yes && !lost_[worker];
}

double router_state::blocks(std::uint64_t tokens) const {
  return static_cast<double>((tokens + options_.block_tokens - 1) / options_.block_tokens);
}

result<std::size_t> router_state::place(
  schema::GenerateRequest::Reader ask, std::span<const std::size_t> except) {
  if (draining_)
    return fail(errc::draining, "this node takes no new work");
  if (ask.getModel().size() > 0 && model_ != ask.getModel().cStr())
    return fail(errc::not_found, "this node does not serve that model", "model");
  if (requests_.contains(ask.getRequest()))
    return fail(errc::conflict, "a generation of this id is running", "request");
  const std::uint64_t tokens = ask.getTokens().size();
  const auto choose = [&](std::span<const worker_load> among) {
    return choose_worker(among, tokens, options_.block_tokens, options_.weights, random_);
  };
  auto others = except.empty() ? std::vector<worker_load>() : workers_;
  for (const auto worker : except)
    others[worker].available = false;
  auto choice = choose(except.empty() ? std::span<const worker_load>(workers_) : others);
  if (!choice)
    return fail(choice);
  auto& worker = workers_[choice->worker];
  placed fresh{choice->worker, ask.getGroup(), tokens, false};
  if (worker.fetches && tokens >= options_.min_elsewhere)
    fresh.source = sources_.choose(ask.getTenant().cStr(), ask.getTokens());
  if (fresh.source)
    choice->reason += "; prompt by " + fresh.source->name;
  else
    worker.prefill_tokens += tokens;
  ++worker.requests;
  requests_[ask.getRequest()] = std::move(fresh);
  explanations_.push_back({ask.getRequest(), worker.name, std::move(choice->reason)});
  if (explanations_.size() > options_.explanations)
    explanations_.pop_front();
  return choice->worker;
}

/// The prompt weighs no more, wherever it did.
void router_state::end_prompt(placed& request) {
  if (request.source)
    sources_.done(*request.source);
  else
    workers_[request.worker].prefill_tokens -= request.tokens;
}

void router_state::prefilled(request_id request) {
  const auto item = requests_.find(request);
  if (item == requests_.end() || std::exchange(item->second.prefilled, true))
    return;
  end_prompt(item->second);
  workers_[item->second.worker].decode_blocks += blocks(item->second.tokens);
}

void router_state::forget(request_id request) {
  const auto item = requests_.find(request);
  if (item == requests_.end())
    return;
  auto& worker = workers_[item->second.worker];
  if (item->second.prefilled)
    worker.decode_blocks -= blocks(item->second.tokens);
  else
    end_prompt(item->second);
  --worker.requests;
  requests_.erase(item);
}

const std::size_t* router_state::worker_of(request_id request) const {
  const auto item = requests_.find(request);
  return item == requests_.end() ? nullptr : &item->second.worker;
}

std::string router_state::source_of(request_id request) const {
  const auto item = requests_.find(request);
  return item == requests_.end() || !item->second.source ? std::string() : item->second.source->name;
}

std::map<std::size_t, std::vector<request_id>> router_state::expand(
  std::span<const request_id> requests, std::uint64_t group) const {
  std::set<request_id> wanted(requests.begin(), requests.end());
  if (group != 0)
    for (const auto& [request, where] : requests_)
      if (where.group == group)
        wanted.insert(request);
  std::map<std::size_t, std::vector<request_id>> out;
  for (const auto request : wanted)
    if (const auto* worker = worker_of(request))
      out[*worker].push_back(request);
  return out;
}

std::vector<request_id> router_state::lose_worker(std::size_t worker) {
  workers_[worker].available = false;
  lost_[worker] = true;
  std::vector<request_id> lost;
  for (const auto& [request, where] : requests_)
    if (where.worker == worker)
      lost.push_back(request);
  for (const auto request : lost)
    forget(request);
  return lost;
}

const explanation* router_state::explain(request_id request) const {
  const auto item = std::find_if(explanations_.rbegin(), explanations_.rend(),
    [&](const explanation& one) { return one.request == request; });
  return item == explanations_.rend() ? nullptr : &*item;
}

std::vector<request_id> router_state::all() const {
  std::vector<request_id> ids;
  for (const auto& item : requests_)
    ids.push_back(item.first);
  return ids;
}

} // namespace godwit
