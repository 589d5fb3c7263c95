#include "services/store/data_directory.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

namespace godwit {

namespace {

/// What an errno means for the operator.
tl::unexpected<error> refusal(const std::filesystem::path& path, int number) {
  const auto named = "the data directory " + path.string();
  switch (number) {
  case ENOTDIR:
  case EEXIST:
    return fail(errc::invalid_argument, named + " is not a directory", "data");
  case EROFS:
    return fail(errc::permission, named + " is read-only", "data");
  case EACCES:
  case EPERM:
    return fail(errc::permission, named + " is read-only for this user", "data");
  case ENOSPC:
  case EDQUOT:
    return fail(errc::resource_exhausted, "no space is left in " + named, "data");
  default:
    return fail(errc::io, named + " cannot be used: " + std::system_category().message(number), "data");
  }
}

/// Makes a directory and those above it. @returns 0 or an errno
int make_directories(const std::filesystem::path& path) {
  std::error_code code;
  if (std::filesystem::is_directory(path, code))
    return 0;
  if (const auto parent = path.parent_path(); !parent.empty() && parent != path)
    if (const int number = make_directories(parent); number != 0)
      return number;
  if (::mkdir(path.c_str(), 0700) == 0)
    return 0;
  const int number = errno;
  return std::filesystem::is_directory(path, code) ? 0 : number; // another may have made it meanwhile
}

/// A lock file that can be written says nothing about new files: tries one. @returns 0 or an errno
int probe(const std::filesystem::path& path) {
  const auto file = path / ("probe-" + std::to_string(::getpid()));
  const descriptor opened(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!opened && errno != EEXIST)
    return errno;
  ::unlink(file.c_str());
  return 0;
}

/// What the holder wrote into the lock file.
std::string holder(int file) {
  std::array<char, 128> text{};
  const auto length = ::pread(file, text.data(), text.size(), 0);
  std::string line(text.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
  line.resize(std::min(line.find('\n'), line.size()));
  return line.empty() ? "" : " (" + line + ")";
}

} // namespace

result<data_directory> data_directory::open(const std::filesystem::path& path, const node_name& owner) {
  if (const int number = make_directories(path); number != 0)
    return refusal(path, number);

  const auto file = path / "lock";
  descriptor opened(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!opened)
    return refusal(path, errno);
  data_directory made(path, std::move(opened));
  const auto& lock = made.lock_;
  if (::flock(*lock, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK)
      return refusal(path, errno);
    return fail(errc::conflict,
      "the data directory " + path.string() + " is in use by another node" + holder(*lock), "data");
  }
  if (const int number = probe(path); number != 0)
    return refusal(path, number);

  const auto line = "node " + owner.value + ", process " + std::to_string(::getpid()) + "\n";
  if (::ftruncate(*lock, 0) != 0
      || ::pwrite(*lock, line.data(), line.size(), 0) != static_cast<ssize_t>(line.size()))
    return refusal(path, errno);
  return made;
}

} // namespace godwit
