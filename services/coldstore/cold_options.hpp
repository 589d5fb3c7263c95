#pragma once

#include "actors/cache/cold_store.hpp"
#include "messages/result.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string_view>

namespace rocksdb {
class Env;
}

namespace godwit {

/// Places in the life of a store at which a test may let the process die.
enum class cold_point : std::uint8_t {
  planned,       ///< before anything of a change is written
  logged,        ///< it is in the log or, if it is large, in memory only
  blob_written,  ///< its pages are in a file that nobody names yet
  table_written, ///< the same for the keys that name the pages
  committed,     ///< it is on disk, but this process does not know it yet
  tidying,       ///< a merge of tables begins
  blob_moved,    ///< a merge has copied pages that are still in use
  table_merged,  ///< a merge has written its table, and nobody names it yet
  tidied,        ///< the merge is on disk
  dropping,      ///< before a record that does not check is deleted
};

struct cold_options {
  std::filesystem::path folder;  ///< made if it is not there, its parent must be; of one process alone
  std::uint64_t limit_bytes = 0; ///< of records; the disk needs up to a quarter more, see docs/kv-cache.md
  cache_scope scope;             ///< whose blocks are written and read; others only take room until they go
  bool compress = false;         ///< zstd: KV pages hardly shrink, and it costs more than the disk
  /// How long a caller waits for the disk. What is over it goes on in the background, and the store counts
  /// as degraded until it is done.
  std::chrono::milliseconds patience{10'000};
  /// After the disk refused, until it is tried again; doubles with each failure up to `last_retry`.
  std::chrono::milliseconds first_retry{200};
  std::chrono::milliseconds last_retry{10'000};
  /// For the log of the node: one line when the store degrades, and one when it is back. May name files.
  /// Called on any thread, not while a lock is held.
  std::function<void(std::string_view)> warn;

  // For tests: the file system, how much is kept in memory before it goes to tables, and where to die.
  rocksdb::Env* env = nullptr;
  std::size_t write_buffer_bytes = std::size_t{16} << 20;
  std::function<void(cold_point)> at_point;
};

/// The cold tier on RocksDB, in one folder. Never throws and never ends the process for what a disk does.
/// @returns `conflict` when another process has the folder, `permission`, `resource_exhausted`, `io` as the
/// disk says, `unsupported` for a newer format, `invalid_argument` for a folder that holds something else.
/// A store that is damaged beyond single records is emptied, with a warning. Messages are for the operator.
result<std::unique_ptr<cold_store>> open_cold_store(const cold_options& options);

} // namespace godwit
