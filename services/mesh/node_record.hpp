#pragma once

#include "messages/ids.hpp"
#include "services/link/keys.hpp"
#include "services/link/transport.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace godwit {

/// Where a node's three sockets are, as ZeroMQ writes it: tcp://10.0.0.7:7401
struct node_endpoints {
  std::string letters;
  std::string bulk;
  std::string events;

  bool operator==(const node_endpoints&) const = default;
};

/// A node as a registry knows it. Name, endpoints and key are enough to reach it; the rest may be empty,
/// since a node that is up tells of itself what it serves.
struct node_record {
  node_name name;
  std::uint64_t incarnation = 0;       ///< higher at each start; 0: the registry does not know it
  node_endpoints endpoints;            ///< where others reach it
  std::optional<link::public_key> key; ///< nothing on plain sockets
  std::vector<std::string> roles;
  std::map<std::string, std::string> models; ///< fingerprints by the model's name
  std::uint32_t capacity = 0;                ///< requests that its worker takes, running and waiting

  bool operator==(const node_record&) const = default;
};

/// What the link has to know of it.
inline link::peer_record to_peer(const node_record& record) {
  return {record.name, record.key, record.endpoints.letters, record.endpoints.bulk, record.endpoints.events};
}

} // namespace godwit
