#pragma once

#include "tests/support/temporary_folder.hpp"

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace godwit::test {

/// A PostgreSQL server of its own, on loopback at a free port, in a temporary folder, run by the package's
/// user where the test is root. It dies with the test program. Starting one throws std::runtime_error with a
/// sentence if the package postgresql-15 is not there.
class postgres_server {
 public:
  using settings = std::vector<std::string>; ///< "name=value"

  /// Without syncing: enough for tests that kill processes, since the system keeps what they wrote, and
  /// quick.
  static settings unsynced() { return {"fsync=off", "full_page_writes=off"}; }

  /// An empty database. The first of a process makes a cluster, later ones copy it.
  explicit postgres_server(settings more = {});
  /// A standby that follows `primary`, has its settings and is called `name`. It has a slot there.
  postgres_server(postgres_server& primary, std::string_view name);
  ~postgres_server();

  postgres_server(const postgres_server&) = delete;
  postgres_server& operator=(const postgres_server&) = delete;

  std::uint16_t port() const { return port_; }
  /// For the superuser, or another one; "127.0.0.1:PORT".
  std::string url(std::string_view user = "godwit") const;
  std::string host_and_port() const { return "127.0.0.1:" + std::to_string(port_); }

  /// Waits until it answers queries.
  void start();
  void kill();  ///< all at once, as a loss of power of the process
  void pause(); ///< it and its children stop where they are
  void resume();
  bool running() const { return process_ > 0; }

  /// Makes a standby the primary, and waits until it takes writes.
  void promote();

  /// One statement as superuser. @returns the first field of the first row, or ""
  std::string ask(const std::string& sql) const;
  /// For all later connections.
  void set(const std::string& name, const std::string& value) const;

  /// The one server of a test program that does not sync: for cases that need no crash.
  static postgres_server& common();

 private:
  void launch();
  void signal_all(int signal) const;

  temporary_folder folder_;
  settings more_;
  std::uint16_t port_ = 0;
  pid_t process_ = 0;
};

} // namespace godwit::test
