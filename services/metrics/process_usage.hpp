#pragma once

#include <cstdint>

namespace godwit {

/// What this process takes of its machine. What cannot be read is 0.
struct process_usage {
  std::uint64_t resident_bytes = 0;
  std::uint64_t virtual_bytes = 0;
  std::uint64_t threads = 0;
  std::uint64_t open_files = 0;
  std::uint64_t open_files_limit = 0;
  double cpu_seconds = 0;
};

/// Reads /proc and the process's own counters.
process_usage read_process_usage();

} // namespace godwit
