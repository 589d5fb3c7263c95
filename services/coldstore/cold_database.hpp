#pragma once

#include "services/coldstore/codec.hpp"
#include "services/coldstore/cold_index.hpp"
#include "services/coldstore/cold_options.hpp"

#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

namespace godwit {

/// What a status means for the callers of a cold store. The text of a status names files, so it stays out.
error to_cold_error(const rocksdb::Status& status);

/// The database of a cold store: notes in tables, pages in blob files. Knows no limit and no order.
/// Thread-safe as RocksDB is.
class cold_database {
 public:
  /// What it takes on disk.
  struct usage {
    struct file {
      std::uint64_t bytes = 0;
      std::uint64_t garbage = 0; ///< of deleted blocks, as far as merges have met them
    };
    std::vector<file> blobs; ///< the oldest first
    std::uint64_t table_bytes = 0;

    std::uint64_t blob_bytes() const;
    std::uint64_t garbage_bytes() const;
  };
  struct notes {
    std::vector<cold_codec::note> good;
    std::vector<std::string> damaged; ///< keys
  };

  /// @param merge false: tables are not merged until merge_again()
  /// @returns see open_cold_store(); `corrupt` for what empty() would mend
  static result<std::unique_ptr<cold_database>> open(const cold_options& options, bool merge = true);
  /// Deletes all of a closed store but its key. @returns as open() does
  static result<void> empty(const cold_options& options);
  /// Whether a file of that many bytes, or a small one if they are fewer, can be written and synced in the
  /// folder.
  static bool disk_takes_writes(const cold_options& options, std::size_t bytes);
  ~cold_database();

  cold_database(const cold_database&) = delete;
  cold_database& operator=(const cold_database&) = delete;

  /// Reads all notes, and no pages. @returns `corrupt` if a table is damaged, `io`
  result<notes> read_notes() const;
  /// A stored record, not checked yet.
  rocksdb::Status read_record(
    std::uint32_t place, const block_identity& identity, rocksdb::PinnableSlice& into) const;

  static void put(rocksdb::WriteBatch& batch, const cold_codec::note& note, const cold_codec::header& header,
    std::span<const std::byte> pages);
  static void drop(rocksdb::WriteBatch& batch, std::uint32_t place, const block_identity& identity);
  /// Only the record, where the block has another one by now.
  static void drop_record(rocksdb::WriteBatch& batch, std::uint32_t place, const block_identity& identity);
  /// Drops what notes() found damaged, and the records that no note names. Reads all pages if there are any.
  void drop_damaged(rocksdb::WriteBatch& batch, const notes& found) const;

  /// Writes into notes how often blocks were read and what they are worth. What fails is only left undone:
  /// the next commit meets the same disk.
  void note_uses(std::span<const cold_index::use> uses);

  /// All of a batch or nothing; survives the process when it returns. A small batch goes into the log, a
  /// large one at once into files of its own, so that its pages are written once. After a failure nothing may
  /// be written any more, since RocksDB's own way back is not to be trusted (docs/journal-store.md).
  rocksdb::Status write(rocksdb::WriteBatch& batch);

  usage used() const;
  /// Whether tables hold deletions, of which no merge has told used() yet. True if they do not say.
  bool has_deletions() const;
  /// Merges tables: forgets what was deleted, and with it files of which nothing is left.
  /// @param move the oldest files from which pages still in use are moved, so that these go too
  /// @param cancelled ends it early, with `Incomplete`
  rocksdb::Status merge(std::size_t move, std::atomic<bool>& cancelled);
  void merge_again();

 private:
  cold_database() = default;
  result<void> check_format();
  void point(cold_point where) const {
    if (at_point_)
      at_point_(where);
  }

  std::function<void(cold_point)> at_point_;
  std::size_t direct_bytes_ = 0; ///< batches from this size on go past the log
  std::unique_ptr<rocksdb::DB> db_;
};

} // namespace godwit
