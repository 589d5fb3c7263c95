#include "services/journal/rocks_options.hpp"

#include "services/store/rocks_defaults.hpp"
#include "services/store/rocks_logger.hpp"

#include <rocksdb/cache.h>
#include <rocksdb/env.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/table.h>

#include <algorithm>

namespace godwit {

rocksdb::DBOptions rocks_database_options(const rocks_journal_options& options) {
  rocksdb::DBOptions db;
  if (options.env != nullptr)
    db.env = options.env;
  db.create_if_missing = true;
  db.create_missing_column_families = true;
  db.info_log_level = rocksdb::InfoLogLevel::WARN_LEVEL;
  db.info_log = rocks_logger([observer = options.observer](std::string_view line) {
    if (observer != nullptr)
      observer->warning(line);
  });

  // A crash leaves an incomplete last entry in the log, never acknowledged: it is dropped. Any other damage
  // must not be taken for the end, as point-in-time recovery would: acknowledged records behind it would
  // vanish without a word. One writing thread that waits for each sync has at most one entry to lose. This
  // mode also reads on in the next log after an incomplete entry that a full disk left in an older one.
  db.wal_recovery_mode = options.when_damaged == damaged_log::refuse
                           ? rocksdb::WALRecoveryMode::kTolerateCorruptedTailRecords
                           : rocksdb::WALRecoveryMode::kPointInTimeRecovery;
  // Heads and records reach tables together, so that a log that was cut leaves them equally old.
  db.atomic_flush = true;
  // Bounds the log, hence the time that a start takes to replay it. It is also what decides when tables are
  // written, long before a buffer is full (see rocks_family_options).
  db.max_total_wal_size = options.write_buffer_bytes;

  set_rocks_defaults(db, 256);
  return db;
}

rocksdb::ColumnFamilyOptions rocks_family_options(
  std::size_t write_buffer_bytes, bool compaction, const std::shared_ptr<rocksdb::Cache>& cache) {
  rocksdb::ColumnFamilyOptions family;
  // Never full before the log is: where RocksDB 7 begins a new log because of a full buffer, and the disk
  // refuses the file, it forgets references of the other families, and builds with assertions (Debian's) end
  // the process when the store is closed. The way that begins with a full log has no such fault.
  family.write_buffer_size = 8 * write_buffer_bytes;
  family.arena_block_size = std::clamp(write_buffer_bytes / 8, std::size_t{4} << 10, std::size_t{1} << 20);
  family.max_write_buffer_number = 3;
  family.compression = rocksdb::kLZ4Compression;
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = cache;
  table.cache_index_and_filter_blocks = true;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  family.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  if (!compaction) {
    family.disable_auto_compactions = true;
    family.level0_slowdown_writes_trigger = 1 << 20;
    family.level0_stop_writes_trigger = 1 << 20;
    family.soft_pending_compaction_bytes_limit = 0;
    family.hard_pending_compaction_bytes_limit = 0;
  }
  return family;
}

} // namespace godwit
