#pragma once

#include "services/journal/rocks_journal.hpp"

#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>

#include <optional>

namespace godwit {

/// What a status means for the callers of a journal. The text of a status names files, so it stays out.
error to_error(const rocksdb::Status& status);

/// The database of a journal: three column families, reads that check everything, synced writes. Knows no
/// fences. Thread-safe as RocksDB is.
class rocks_store {
 public:
  enum class mode {
    normal,
    without_compaction, ///< tables are only added: damaged ones are left alone
    read_only,          ///< nothing is written, also not what is left in the log
  };

  static result<std::unique_ptr<rocks_store>> open(const rocks_journal_options& options, mode how);
  /// Whether a file can be written and synced in the journal's folder.
  static bool disk_takes_writes(const rocks_journal_options& options);
  ~rocks_store();

  rocks_store(const rocks_store&) = delete;
  rocks_store& operator=(const rocks_store&) = delete;

  /// @returns nothing for an unknown session, `corrupt` for a damaged head
  result<std::optional<journal_head>> head(const session_id& session) const;

  /// At most `limit` records from `from` on. @returns `not_found`, or `corrupt` when a record up to the head
  /// is missing or damaged
  result<std::vector<placed_record>> read(
    const session_id& session, sequence_number from, std::size_t limit) const;

  /// Heads after `after`. A damaged head has the session's name and nothing else, and `quarantined`.
  result<std::vector<journal_head>> list(const session_id& after, std::size_t limit) const;

  // Changes of one batch.
  void put(rocksdb::WriteBatch& batch, const journal_head& head) const;
  void put(rocksdb::WriteBatch& batch, const session_id& session, sequence_number sequence, epoch_t epoch,
    const journal_record& record) const;
  void erase(rocksdb::WriteBatch& batch, const session_id& session) const;

  /// All of a batch or nothing; durable when it returns. After a failure nothing may be written any more:
  /// RocksDB's own way back (Resume) goes on with the log file that failed, which its builds with assertions
  /// (Debian's) answer with an abort.
  rocksdb::Status write(rocksdb::WriteBatch& batch);

 private:
  rocks_store(std::chrono::milliseconds deadline) : deadline_(deadline) {}

  result<void> check_format(mode how);
  rocksdb::ReadOptions reading() const;

  std::chrono::milliseconds deadline_; ///< for reads
  std::unique_ptr<rocksdb::DB> db_;
  rocksdb::ColumnFamilyHandle* meta_ = nullptr;
  rocksdb::ColumnFamilyHandle* records_ = nullptr;
  rocksdb::ColumnFamilyHandle* heads_ = nullptr;
};

} // namespace godwit
