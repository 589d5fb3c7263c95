#pragma once

#include "messages/result.hpp"
#include "services/config/config.hpp"

#include <string>
#include <vector>

namespace godwit {

/// What a node does, and leaves to others of its mesh.
struct node_roles {
  bool gateway = true;   ///< the public API over HTTP
  bool session = true;   ///< sessions and their directory, over a journal
  bool tokenizer = true; ///< vocabulary and chat template
  bool router = true;    ///< places requests on workers
  bool prefill = true;   ///< computes prompts: its own worker's, or without `decode` those of other nodes
  bool decode = true;    ///< runs streams, with the `cache` of the same device

  /// As the setting and other nodes name them.
  std::vector<std::string> names() const;
  bool all() const { return gateway && session && tokenizer && router && prefill && decode; }
  /// Whether it has a device: weights and pages.
  bool worker() const { return prefill || decode; }
  /// Whether it computes prompts for the workers of other nodes, and nothing else.
  bool prompts_only() const { return prefill && !decode; }
  /// Whether it has long prompts computed by other nodes, if there are such.
  bool streams_only() const { return decode && !prefill; }
  /// Whether it keeps what outlasts the process: a journal.
  bool has_journal() const { return session; }
};

/// The roles that a node has by its settings, if it can work so.
/// @returns `invalid_argument` with `param` naming the setting: parts of a worker that cannot stand alone,
/// roles that nobody can have since there is no mesh, settings of the mesh that are missing or exclude each
/// other
result<node_roles> roles_of(const config& settings);

} // namespace godwit
