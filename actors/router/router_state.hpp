#pragma once

#include "actors/router/placement.hpp"
#include "actors/router/prompt_sources.hpp"
#include "messages/ids.hpp"
#include "messages/result.hpp"
#include "messages/schemas/generation.capnp.h"

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace godwit {

struct router_options {
  cost_weights weights;
  std::uint32_t block_tokens = 16;
  std::size_t explanations = 1024;   ///< the last ones that are kept
  std::size_t workers = 1024;        ///< that may be known at the same time
  std::uint64_t seed = 0;            ///< for ties
  std::uint32_t min_elsewhere = 512; ///< tokens of a prompt that a worker may have computed by another node
};

/// A placement that was made, for whoever asks.
struct explanation {
  request_id request = 0;
  std::string worker;
  std::string reason;
};

/// Where every request is, and what its worker has to do because of it. The load is counted here, ahead of
/// any report: a request weighs from its placement to its end. A worker is known by an index, which is given
/// to another one only after it is lost.
class router_state {
 public:
  router_state(std::string model, std::vector<worker_load> workers, router_options options);

  /// Knows a worker from now on. @returns its index, or `resource_exhausted` when there are too many
  result<std::size_t> join(worker_load worker);
  /// The worker of that name, unless it is lost.
  std::optional<std::size_t> find(std::string_view name) const;
  /// A worker takes no new requests, or takes them again; those that it has go on.
  void take_requests(std::size_t worker, bool yes);
  bool lost(std::size_t worker) const { return lost_[worker]; }

  /// Places a request.
  /// @param except workers that have refused it
  /// @returns the worker, or `not_found` for another model, `conflict` for a known id, `draining`,
  /// `unavailable`, `overloaded`
  result<std::size_t> place(schema::GenerateRequest::Reader ask, std::span<const std::size_t> except = {});
  /// The prompt is done: from now on the request weighs as a running sequence.
  void prefilled(request_id request);
  /// The request has ended, or was refused by the worker after all.
  void forget(request_id request);
  /// The worker of a request; nothing if it is not here.
  const std::size_t* worker_of(request_id request) const;
  /// The node that may compute its prompt; empty: none.
  std::string source_of(request_id request) const;

  /// The nodes that compute prompts for others.
  prompt_sources& sources() { return sources_; }
  const prompt_sources& sources() const { return sources_; }

  /// The requests named, and those of the group, by worker.
  std::map<std::size_t, std::vector<request_id>> expand(
    std::span<const request_id> requests, std::uint64_t group) const;

  /// A worker is gone. @returns its requests, which are forgotten
  std::vector<request_id> lose_worker(std::size_t worker);

  /// @returns nothing if it was never placed, or too long ago
  const explanation* explain(request_id request) const;

  void drain() { draining_ = true; }
  bool draining() const { return draining_; }
  std::size_t size() const { return requests_.size(); }
  std::vector<request_id> all() const;
  std::span<const worker_load> workers() const { return workers_; }

 private:
  struct placed {
    std::size_t worker = 0;
    std::uint64_t group = 0;
    std::uint64_t tokens = 0;
    bool prefilled = false;
    std::optional<prompt_sources::choice> source = {}; ///< its prompt weighs there and not on the worker
  };

  double blocks(std::uint64_t tokens) const;
  void end_prompt(placed& request);

  std::string model_;
  std::vector<worker_load> workers_;
  std::vector<bool> lost_; ///< by worker: its index may be given away
  router_options options_;
  std::mt19937_64 random_;
  std::map<request_id, placed> requests_;
  std::deque<explanation> explanations_;
  prompt_sources sources_;
  bool draining_ = false;
};

} // namespace godwit
