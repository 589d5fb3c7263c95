#pragma once

#include "services/postgres/connection.hpp"
#include "services/postgres/promise.hpp"
#include "services/postgres/tables.hpp"

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace godwit::postgres {

struct primary_options {
  address servers;
  std::string schema{"godwit"};                              ///< see good_schema_name()
  versioned_tables tables;                                   ///< made at need
  std::vector<std::pair<std::string, std::string>> prepared; ///< names and texts of statements
  bool allow_unsafe = false;
  /// False: commits return before they are on any disk, and settings that promise little are no matter. For
  /// what is told again soon.
  bool durable = true;
  std::chrono::milliseconds statement_time{
    10'000}; ///< of the server for one statement; a commit may wait longer
};

/// A connection to the server that takes writes, with our statements prepared.
struct primary {
  std::unique_ptr<connection> line;
  std::string started;  ///< when the server was started: tells servers, and their lives, apart
  std::string timeline; ///< rises with each promotion; eight hexadecimal digits
  server_settings settings;
  std::string promise; ///< see promise_of()
  std::string server;  ///< host and port
};

/// Finds servers that take writes and makes their tables ready. Any thread.
class primary_finder {
 public:
  /// @param options with at least one server
  explicit primary_finder(primary_options options) : options_(std::move(options)) {}

  /// Tries each server once, beginning with the one that was found last.
  /// @returns the last failure: `io`, `deadline`, `permission`; `unsupported` for unsafe settings and for
  /// newer tables. Messages are for the operator
  result<primary> find(const patience& how);

  /// Whether the server process of a transaction that does not end is still at work on it. @returns nothing
  /// if no server tells
  std::optional<bool> at_work(const primary& on, const patience& how);

  std::size_t servers() const { return options_.servers.servers.size(); }
  std::chrono::milliseconds connect_time() const { return options_.servers.connect_time; }
  /// The highest timeline that was seen; connections of lower ones lead to a server that was replaced.
  std::string timeline() const;

 private:
  enum class depth { bare, ready };
  /// @param all for making tables, which may take longer than all else, `how`
  result<primary> enter(
    const server_address& server, depth how_far, const patience& how, const patience& all);
  result<void> check_tables(primary& entered, bool there, const patience& how);
  result<void> migrate(primary& entered, const patience& how);
  result<std::int64_t> version(primary& entered, const patience& how);

  const primary_options options_;
  mutable std::mutex mutex_;
  std::size_t last_ = 0; ///< server that was found
  std::string timeline_;
};

/// The failure of a transaction, as the operator should read it. @returns its code by the SQLSTATE
error error_of(const outcome& failed, const address& of);

} // namespace godwit::postgres
