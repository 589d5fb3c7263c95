#pragma once

#include "services/coldstore/cold_database.hpp"
#include "services/coldstore/cold_index.hpp"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

namespace godwit {

/// The cold tier on RocksDB.
///
/// Callers read on their own threads. What changes the disk runs on two threads of the store, so that a disk
/// that hangs holds nobody longer than `patience`: one commits, deletes what does not check and opens the
/// store again after the disk refused; one merges tables. After a failed write the disk is asked with growing
/// pauses whether it takes a file; then the store is closed, opened and read as at a start. Until then
/// reading goes on.
class rocks_cold_store final : public cold_store {
 public:
  static result<std::unique_ptr<rocks_cold_store>> open(const cold_options& options);
  ~rocks_cold_store() override;

  std::size_t known(std::span<const block_identity> chain) const override;
  std::size_t read(
    std::span<const block_identity> chain, std::span<const std::span<std::byte>> into) override;
  result<void> write(std::span<const cold_block> blocks) override;
  cold_stats stats() const override;

 private:
  using clock = std::chrono::steady_clock;
  using database = std::shared_ptr<cold_database>;

  /// One commit on its way.
  struct commit {
    explicit commit(rocksdb::WriteBatch memory) : batch(std::move(memory)) {}

    rocksdb::WriteBatch batch;
    std::uint64_t written = 0;
    std::uint64_t evicted = 0;
    std::uint64_t dropped_bytes = 0;
    bool done = false;
    result<void> verdict;
  };
  /// How the store is opened again.
  enum class mending : std::uint8_t { none, reopen, check_all, empty };
  enum class reading : std::uint8_t { good, missing, damaged, refused };

  /// What a start found.
  struct started {
    database opened;
    cold_index index;
    std::uint64_t damaged = 0;
    std::uint64_t evicted = 0; ///< of no use, or over the limit
    std::uint64_t garbage = 0;
  };

  explicit rocks_cold_store(const cold_options& options);

  // Callers' threads.
  result<void> write_some(std::span<const cold_block> blocks);
  /// @param memory of an earlier commit
  std::shared_ptr<commit> make_commit(std::span<const cold_block> blocks,
    const std::vector<cold_index::step>& steps, rocksdb::WriteBatch memory) const;
  reading read_one(const cold_database& from, std::uint32_t place, const block_identity& identity,
    std::span<std::byte> into, std::string& reason) const;

  // The committing thread.
  void commit_loop();
  void run(std::unique_lock<std::mutex>& lock, const std::shared_ptr<commit>& job);
  void drop_damaged(std::unique_lock<std::mutex>& lock);
  void mend(std::unique_lock<std::mutex>& lock);
  /// Opens the folder and reads what is there; needs no lock.
  result<started> start(mending how) const;
  /// Drops every record that does not check. @returns how many, or what the disk says against it
  static result<std::uint64_t> check_all(cold_database& in, std::vector<cold_codec::note>& notes);
  void take(started from);

  // The merging thread.
  void merge_loop();
  void merge(std::unique_lock<std::mutex>& lock);

  // Under the lock.
  bool degraded() const { return slow_ || mend_ != mending::none; }
  /// The disk refused: nothing is written until the store is opened again. @returns what to warn of, or ""
  /// @param bytes what it should have taken
  std::string refuse(const rocksdb::Status& status, std::string_view what, std::size_t bytes);
  std::uint64_t allowed_garbage() const;
  /// Before the next attempt, when one was in vain.
  std::chrono::milliseconds longer_pause() const;

  void warn(const std::string& line) const;

  const cold_options options_;
  const cold_codec::digest model_;
  const cold_codec::digest profile_;

  mutable std::mutex mutex_; ///< of all below but what is atomic
  std::condition_variable changed_;
  database database_; ///< null while it is opened again
  cold_index index_;
  cold_stats counters_;
  bool busy_ = false; ///< a change is planned and not confirmed
  std::shared_ptr<commit> job_;
  /// Memory of the last commit for the next one: having it from the system anew takes a tenth of its time.
  rocksdb::WriteBatch spare_;
  std::vector<std::pair<block_identity, std::uint32_t>> damaged_; ///< to be deleted, with their places
  std::uint64_t garbage_ = 0;    ///< bytes on disk of blocks that were deleted
  std::uint64_t merge_from_ = 0; ///< garbage at which tables are merged
  bool merging_ = false;
  bool slow_ = false; ///< a commit is over its time
  mending mend_ = mending::none;
  bool checked_ = false; ///< all records were checked since a merge went well
  bool read_failed_ = false;
  error failure_;
  std::chrono::milliseconds pause_{0}; ///< 0 unless the disk refused and has not proved itself since
  std::size_t refused_bytes_ = 0;      ///< the greatest commit that it refused since then
  std::size_t unproved_bytes_ = 0;     ///< what has to be written yet until the disk counts as good again
  clock::time_point next_attempt_;
  bool stop_ = false;
  std::atomic<bool> cancel_merge_{false};

  std::thread committer_;
  std::thread merger_;
};

} // namespace godwit
