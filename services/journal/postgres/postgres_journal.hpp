#pragma once

#include "services/journal/queued_journal.hpp"

#include <atomic>
#include <chrono>
#include <memory>
#include <string>

namespace godwit {

namespace postgres {
class primary_finder;
class readers;
class writer;
struct address;
} // namespace postgres

struct postgres_journal_options {
  std::string url;              ///< see postgres::parse_address()
  std::string schema{"godwit"}; ///< of the tables: small letters, digits and '_'
  bool allow_unsafe = false;    ///< also run on a database that may lose what it acknowledged in a crash
  commit_queue::limits queue;   ///< its deadline is also that of a statement
  std::chrono::milliseconds read_deadline{5'000};
  std::size_t read_connections = 4;
  std::shared_ptr<journal_observer> observer; ///< may be null
  std::chrono::milliseconds suspicion{1'500}; ///< an answer that takes longer is asked after
};

/// The journal of many nodes: PostgreSQL, beside which none of them keeps anything.
///
/// All changes go through one thread (commit_queue), which writes what has gathered in one transaction and
/// one message there and back; readers use the caller's thread and connections of their own. Fences are the
/// database's: a head moves only if it is where its writer believes, in the same statement that adds the
/// records. When a connection ends between sending and the answer, the batch's mark on the records tells
/// whether they went in, before anything else is written. While no server takes writes, requests wait, up to
/// their deadline; then they are answered with `io` or `deadline`, and until the outcome of what was under
/// way is known, the heads and records of its sessions answer `io` too.
class postgres_journal final : public queued_journal {
 public:
  /// Waits for a server that takes writes, up to the queue's deadline, and makes the tables if they are not
  /// there.
  /// @returns `invalid_argument` for the options, `io`, `deadline`, `permission`, `unsupported` for newer
  /// tables and for a database that promises too little. Messages are for the operator, without passwords.
  static result<std::unique_ptr<postgres_journal>> create(postgres_journal_options options);

  ~postgres_journal() override;

  result<journal_head> head(const session_id& session) override;
  result<std::vector<placed_record>> read(
    const session_id& session, sequence_number from, std::size_t limit) override;
  result<std::vector<journal_head>> list(const session_id& after, std::size_t limit) override;

  std::string trouble() override;
  /// What an acknowledged record survives, in one sentence, as the server's settings were at start.
  const std::string& promise() const { return promise_; }

 private:
  commit_queue& queue() override { return *queue_; }

  explicit postgres_journal(postgres_journal_options options);

  result<void> readable(const session_id& session);
  std::vector<result<journal_head>> write(const std::vector<const write_request*>& batch);

  postgres_journal_options options_;
  std::string promise_;
  std::atomic<bool> closing_{false};

  std::unique_ptr<postgres::address> address_;
  std::unique_ptr<postgres::primary_finder> servers_;
  std::unique_ptr<postgres::readers> readers_;
  std::unique_ptr<postgres::writer> writer_;
  std::unique_ptr<commit_queue> queue_; ///< the last member: ends first
};

} // namespace godwit
