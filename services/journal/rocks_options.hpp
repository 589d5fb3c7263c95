#pragma once

#include "services/journal/rocks_journal.hpp"

#include <rocksdb/options.h>

namespace godwit {

/// RocksDB's settings for a journal: little memory, few threads, no files but its own.
rocksdb::DBOptions rocks_database_options(const rocks_journal_options& options);

/// Settings of the column families, which share one small block cache.
/// @param compaction false: tables are only added, never rewritten
rocksdb::ColumnFamilyOptions rocks_family_options(
  std::size_t write_buffer_bytes, bool compaction, const std::shared_ptr<rocksdb::Cache>& cache);

} // namespace godwit
