#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace godwit {

/// What a journal has done since its start; any thread may read. Names as a metrics exporter shows them.
struct journal_counters {
  std::atomic<std::uint64_t> appends{0};          ///< requests that were stored
  std::atomic<std::uint64_t> records{0};          ///< records that were stored
  std::atomic<std::uint64_t> bytes{0};            ///< of them
  std::atomic<std::uint64_t> syncs{0};            ///< group commits; records / syncs is the group's mean size
  std::atomic<std::uint64_t> fenced{0};           ///< requests refused as stale
  std::atomic<std::uint64_t> overloaded{0};       ///< requests refused since too much waited
  std::atomic<std::uint64_t> deadlines{0};        ///< requests that were answered by their deadline
  std::atomic<std::uint64_t> failures{0};         ///< group commits that the disk refused
  std::atomic<std::uint64_t> recoveries{0};       ///< times that writing went on after a failure
  std::atomic<std::uint64_t> quarantined{0};      ///< sessions that were found damaged
  std::atomic<std::uint64_t> waiting_requests{0}; ///< now
  std::atomic<std::uint64_t> waiting_bytes{0};    ///< now
  std::atomic<bool> failed{false};         ///< now: the disk refuses; appends are answered with its error
  std::atomic<bool> compaction_off{false}; ///< now: a damaged table keeps the store from tidying up
};

/// One group commit.
struct commit_sample {
  std::size_t requests = 0;
  std::size_t records = 0;
  std::size_t bytes = 0;
  std::chrono::nanoseconds write{0};  ///< writing and syncing
  std::chrono::nanoseconds oldest{0}; ///< from the arrival of its oldest request until it was durable
};

/// Is told of every group commit, for histograms, and of what an operator should know. Called on the
/// journal's threads: do little.
class journal_observer {
 public:
  virtual ~journal_observer() = default;
  virtual void committed(const commit_sample&) {}
  /// For the log of the node: may name files.
  virtual void warning(std::string_view) {}
};

} // namespace godwit
