#pragma once

#include "messages/result.hpp"
#include "services/link/actor_codec.hpp"

#include <caf/actor_control_block.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace godwit::link {

/// An actor of this node that others reach, by which interface.
struct reached_actor {
  caf::strong_actor_ptr actor;
  const interface_codec* codec = nullptr;
};

/// The actors of this node that other nodes hold. Each is kept alive until the node that holds it drops it,
/// ends, or is lost. Any thread may call; what is let go is handed out, so that its end finds no lock.
class given_actors {
 public:
  struct given {
    std::uint64_t id = 0; ///< by which the node knows it
    std::string node;
    reached_actor what;
    std::uint64_t count = 0; ///< how often it was given
  };

  /// @param most actors that other nodes may hold
  explicit given_actors(std::size_t most);

  /// Given to a node once more. @returns its number; `unavailable` for a node that is not there: what it was
  /// given behind its loss would be held for ever; `resource_exhausted` at the limit; `draining` after the
  /// end
  result<std::uint64_t> give(
    const std::string& node, const caf::strong_actor_ptr& actor, const interface_codec& as);
  /// What a node means by a number.
  std::optional<reached_actor> find(std::uint64_t id, std::string_view node) const;
  bool holds(std::uint64_t id) const;

  /// A node has dropped what it was given so often. @returns what is held no more
  std::optional<given> release(std::uint64_t id, std::string_view node, std::uint64_t count);
  /// The actor has ended. @returns what nodes held of it
  std::vector<given> ended(caf::actor_id actor);

  void node_up(const std::string& node);
  /// @returns whether it was there, and what is held no more
  std::pair<bool, std::vector<given>> node_lost(const std::string& node);
  /// Gives nothing more. @returns all that was held
  std::vector<given> close();

  std::size_t size() const;

 private:
  using table = std::map<std::uint64_t, given>;

  /// With the lock.
  given extract(table::iterator which);

  const std::size_t most_;
  mutable std::mutex mutex_;
  bool closed_ = false;
  table all_;
  std::map<std::tuple<caf::actor_id, std::string, const interface_codec*>, std::uint64_t> ids_;
  std::set<std::string> up_;
  std::uint64_t last_;
};

} // namespace godwit::link
