#pragma once

#include "services/mesh/registry.hpp"

#include <filesystem>
#include <memory>

namespace godwit {

struct static_registry_options {
  std::filesystem::path file;
  node_name self;
  /// Sockets without keys, on loopback addresses only. The file must hold no keys then.
  bool plain = false;
};

/// Nodes from a TOML file, read once:
///
///     [[node]]
///     name = "alpha"
///     host = "10.0.0.7"        # an address or a name; IPv6 without brackets
///     port = 7401              # letters; bulk and events have the two ports that follow
///     key = "alpha.public"     # a file, as seen from this one, or its line "godwit-public-1 alpha ..."
///
///     [[node]]
///     name = "beta"
///     host = "beta.example"
///     letters_port = 7401      # or each by itself
///     bulk_port = 7501
///     events_port = 7601
///     bind = "0.0.0.0"         # where it listens itself, if that is not `host`: an address
///     key = "godwit-public-1 beta Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID"
///
/// A node's own entry says where it listens; it is there or not.
class static_registry {
 public:
  /// Reads and checks the file.
  /// @returns `not_found`, `io`, or `invalid_argument` with a message that names file and line: an unknown or
  /// missing field, a name, host, port or key that is none, two nodes of one name, one endpoint or one key, a
  /// host that is not loopback with plain sockets, a key with them or none without
  static result<std::shared_ptr<registry>> load(const static_registry_options& options);
};

} // namespace godwit
