#include "services/coldstore/rocks_options.hpp"

#include "services/store/crc32c.hpp"
#include "services/store/rocks_defaults.hpp"
#include "services/store/rocks_logger.hpp"

#include <rocksdb/cache.h>
#include <rocksdb/env.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/listener.h>
#include <rocksdb/table.h>

namespace godwit {

namespace {

/// Tells a test where RocksDB is.
class point_listener final : public rocksdb::EventListener {
 public:
  explicit point_listener(std::function<void(cold_point)> at_point) : at_point_(std::move(at_point)) {}

  void OnBlobFileCreated(const rocksdb::BlobFileCreationInfo& info) override {
    at_point_(info.reason == rocksdb::BlobFileCreationReason::kCompaction ? cold_point::blob_moved
                                                                          : cold_point::blob_written);
  }
  void OnTableFileCreated(const rocksdb::TableFileCreationInfo& info) override {
    at_point_(info.reason == rocksdb::TableFileCreationReason::kCompaction ? cold_point::table_merged
                                                                           : cold_point::table_written);
  }
  void OnCompactionBegin(rocksdb::DB* /*db*/, const rocksdb::CompactionJobInfo& /*info*/) override {
    at_point_(cold_point::tidying);
  }
  void OnCompactionCompleted(rocksdb::DB* /*db*/, const rocksdb::CompactionJobInfo& /*info*/) override {
    at_point_(cold_point::tidied);
  }

 private:
  std::function<void(cold_point)> at_point_;
};

} // namespace

rocksdb::Options cold_rocks_options(const cold_options& options, bool merge) {
  static_cast<void>(crc32c_serves_rocksdb());
  rocksdb::Options made;
  if (options.env != nullptr)
    made.env = options.env;
  made.create_if_missing = true;
  // The store says in one line what is wrong; RocksDB would say it in ten.
  made.info_log = rocks_logger({});
  if (options.at_point)
    made.listeners.push_back(std::make_shared<point_listener>(options.at_point));

  // A cache may lose what stands behind damage in the log.
  made.wal_recovery_mode = rocksdb::WALRecoveryMode::kPointInTimeRecovery;
  made.max_total_wal_size = 4 * options.write_buffer_bytes;
  // What is not in the log when the store closes is what the disk refused.
  made.avoid_flush_during_shutdown = true;
  set_rocks_defaults(made, 512);
  // So that the disk works while a file is written, and the sync at its end is short.
  // Chains are read as they were written, so that the system may read ahead.
  made.advise_random_on_open = false;
  made.bytes_per_sync = std::size_t{1} << 20;

  made.write_buffer_size = options.write_buffer_bytes;
  made.max_write_buffer_number = 3;
  // Tables hold keys, notes and places in blob files: a thousandth of the pages. Merging them is cheap, and a
  // merge on its own never moves pages: the store says when that pays.
  made.enable_blob_files = true;
  made.min_blob_size = 512; // above any note
  made.blob_file_size = 4 * options.write_buffer_bytes;
  made.blob_compression_type = options.compress ? rocksdb::kZSTD : rocksdb::kNoCompression;
  made.enable_blob_garbage_collection = false;
  made.blob_compaction_readahead_size = std::size_t{2} << 20;
  made.compression = rocksdb::kNoCompression;
  made.level0_file_num_compaction_trigger = 8;
  made.level0_slowdown_writes_trigger = 64;
  made.level0_stop_writes_trigger = 256;
  made.disable_auto_compactions = !merge;

  rocksdb::BlockBasedTableOptions table;
  table.block_cache = rocksdb::NewLRUCache(std::size_t{8} << 20, 2);
  table.cache_index_and_filter_blocks = true;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  made.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return made;
}

} // namespace godwit
