#pragma once

#include "actors/session/journal.hpp"
#include "services/journal/queued_journal.hpp"

#include <filesystem>
#include <memory>
#include <set>
#include <string>

namespace rocksdb {
class Env;
}

namespace godwit {

class rocks_store;

/// What to do at start with a log that is damaged before its end. (A torn end is no damage: a crash leaves
/// one, and what it held was never acknowledged.)
enum class damaged_log {
  refuse, ///< open nothing and change nothing: some acknowledged records cannot be read
  cut,    ///< go on from what stands before the damage; later records of all sessions are lost
};

struct rocks_journal_options {
  std::filesystem::path folder; ///< made if it is not there; its parent must be
  commit_queue::limits queue;
  damaged_log when_damaged = damaged_log::refuse;
  std::shared_ptr<journal_observer> observer; ///< may be null
  std::chrono::milliseconds first_retry{100}; ///< after a failed write; doubles with each failure
  std::chrono::milliseconds last_retry{5000};

  // For tests: the file system, and how much is kept in memory before it goes to tables.
  rocksdb::Env* env = nullptr;
  std::size_t write_buffer_bytes = std::size_t{8} << 20;
};

/// The journal of one node, embedded: RocksDB with a synced log and group commit.
///
/// All changes go through one thread (commit_queue), which therefore needs no locks to check fences; readers
/// use the caller's thread and see only what is durable. When the disk refuses a write, appends are answered
/// with `io` or `resource_exhausted`; reading goes on. With growing pauses the next calls try whether the
/// disk takes writes again, and open the store anew. Until then the end of the sessions in the failed batch
/// is unknown: their heads and records answer `io` too.
class rocks_journal final : public queued_journal {
 public:
  /// @returns `io`, `permission`, `resource_exhausted`, `conflict` when another process has it open,
  /// `unsupported` for a newer format, `corrupt` when it is damaged. Messages are for the operator.
  static result<std::unique_ptr<rocks_journal>> create(rocks_journal_options options);

  ~rocks_journal() override;

  result<journal_head> head(const session_id& session) override;
  result<std::vector<placed_record>> read(
    const session_id& session, sequence_number from, std::size_t limit) override;
  result<std::vector<journal_head>> list(const session_id& after, std::size_t limit) override;

  std::string trouble() override;

 private:
  commit_queue& queue() override { return queue_; }

  explicit rocks_journal(rocks_journal_options options, std::shared_ptr<rocks_store> store);

  // Readers, any thread.
  result<std::shared_ptr<rocks_store>> store_for(const session_id& session);

  // The writing thread.
  std::vector<result<journal_head>> write(const std::vector<const write_request*>& batch);
  bool recover();
  bool reopen();
  void failed(const std::vector<const write_request*>& batch, const error& failure, bool damaged_table);

  rocks_journal_options options_;

  std::mutex mutex_; ///< of the next two
  std::shared_ptr<rocks_store> store_;
  std::set<session_id> unsure_; ///< sessions of a failed batch, until the store is back

  // Of the writing thread alone.
  error failure_;
  std::chrono::milliseconds pause_{0};
  std::chrono::steady_clock::time_point next_attempt_;

  commit_queue queue_; ///< the last member: ends first
};

} // namespace godwit
