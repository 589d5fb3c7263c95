#include "services/metrics/process_usage.hpp"

#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <string>

namespace godwit {

namespace {

std::uint64_t count_open_files() {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir("/proc/self/fd"), ::closedir);
  if (!folder)
    return 0;
  std::uint64_t count = 0;
  while (const auto* entry = ::readdir(folder.get()))
    count += entry->d_name[0] != '.';
  return count > 0 ? count - 1 : 0; // one of them is this listing
}

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

} // namespace

process_usage read_process_usage() {
  process_usage out;
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  if (std::ifstream sizes("/proc/self/statm"); sizes) {
    std::uint64_t total = 0;
    std::uint64_t resident = 0;
    if (sizes >> total >> resident) {
      out.virtual_bytes = total * page;
      out.resident_bytes = resident * page;
    }
  }
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("Threads:"))
      out.threads = std::stoull(line.substr(8));
  out.open_files = count_open_files();
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0)
    out.open_files_limit = limit.rlim_cur;
  rusage usage{};
  if (::getrusage(RUSAGE_SELF, &usage) == 0)
    out.cpu_seconds = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  return out;
}

} // namespace godwit
