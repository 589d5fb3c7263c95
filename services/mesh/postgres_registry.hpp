#pragma once

#include "services/mesh/registry.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <string>

namespace godwit {

struct postgres_registry_options {
  std::string url;              ///< see postgres::parse_address()
  std::string schema{"godwit"}; ///< of the table: small letters, digits and '_'
  node_name self;
  bool plain = false; ///< sockets without keys, on loopback only; records must have no keys then
  std::chrono::milliseconds beat{1'000};       ///< between two beats
  std::chrono::milliseconds limit{5'000};      ///< a record whose beat is older does not count
  std::chrono::milliseconds refresh{10'000};   ///< between two readings when nobody tells of a change
  std::chrono::milliseconds statement{3'000};  ///< for an answer of the database
  std::chrono::milliseconds start{20'000};     ///< for the first announcement
  std::chrono::milliseconds last_retry{1'000}; ///< longest pause before the next look for the database
  /// What the operator should know: the database went away, it is back, another process has this node's name,
  /// a record does not check. Each once. Called on the registry's thread; without passwords.
  std::function<void(const std::string&)> report = [](const std::string&) {};
};

/// Nodes from a table of a PostgreSQL database (see registry_table), which each of them keeps up to date
/// itself: a record counts while its node beats, by the database's clock. News come by LISTEN and NOTIFY,
/// which may be lost, so that the table is read at intervals too.
///
/// It is advice: who is up is found out by the link. While the database is away the last known list stays.
/// Whoever may write the table decides whose keys are accepted.
class postgres_registry {
 public:
  /// Does not connect: announce() does, and waits for the database and for the name of an earlier process,
  /// which is free when that has not beaten within the limit. announce() returns `conflict` if another
  /// process has the name and beats.
  /// @returns `invalid_argument`, without a part of the url
  static result<std::shared_ptr<registry>> open(postgres_registry_options options);
};

} // namespace godwit
