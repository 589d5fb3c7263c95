#pragma once

#include "messages/result.hpp"

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace godwit {

/// A variable of the environment; nothing: it is not set.
using environment_lookup = std::function<std::optional<std::string>(const std::string&)>;

/// The pods of one group of a leader-worker set of Kubernetes (sigs.k8s.io/lws), as the environment of each
/// of them says: LWS_LEADER_ADDRESS is the leader's name, LWS_GROUP_SIZE how many they are, LWS_WORKER_INDEX
/// which one this is, 0 being the leader. Pods of a group are called after their leader, with their index
/// behind it: set-1.set.default, set-1-1.set.default, set-1-2.set.default.
struct leader_workers {
  std::vector<std::string> addresses; ///< the leader's first, then by index
  std::size_t own = 0;
};

/// @returns nothing if this is no pod of such a set, `invalid_argument` naming the variable that is missing
/// or makes no sense
result<std::optional<leader_workers>> leader_workers_of(const environment_lookup& environment);

} // namespace godwit
