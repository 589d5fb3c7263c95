#pragma once

#include "messages/result.hpp"

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <string>

namespace godwit {

struct journal_bench_options {
  std::filesystem::path
    folder;        ///< on the disk to be measured; a folder of its own is made in it, and removed
  std::string url; ///< of a database, to measure the journal in it in place of the embedded one; it gets
                   ///< tables in the schema `godwit_bench`, whose sessions are erased again
  std::size_t sessions = 64;      ///< that append side by side, each one record at a time
  std::size_t record_bytes = 200; ///< about a group of tokens
  std::size_t rounds = 5;         ///< journal and raw file take turns; medians are reported
  std::chrono::milliseconds round{1000};
};

/// One side of the comparison: medians over the rounds.
struct commit_rate {
  double records_per_s = 0;
  double records_per_sync = 0;
  std::chrono::nanoseconds p50{0}; ///< from handing a record over until it is durable
  std::chrono::nanoseconds p99{0};
};

struct journal_bench {
  commit_rate journal; ///< with group commit
  commit_rate raw;     ///< a file, with a write and an fdatasync for each record, from one thread
};

/// Measures a journal against the least that the disk of a folder needs for one durable record.
result<journal_bench> measure_journal(const journal_bench_options& options);

} // namespace godwit
