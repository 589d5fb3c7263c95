#include "services/coldstore/key_file.hpp"

#include "messages/descriptor.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace godwit {

namespace {

namespace fs = std::filesystem;

constexpr const char* file_name = "identity-key";
constexpr std::string_view magic = "GWKEY-1\n";
constexpr std::size_t seed_bytes = 64;
/// Magic, seed, XXH3-64 of both.
using content = std::array<char, 8 + seed_bytes + 8>;

std::uint64_t checksum(const content& bytes) {
  return XXH3_64bits(bytes.data(), bytes.size() - 8);
}

tl::unexpected<error> refusal(const fs::path& folder, int number) {
  const auto named = "the cold store's folder " + folder.string();
  switch (number) {
  case EROFS:
    return fail(errc::permission, named + " is read-only");
  case EACCES:
  case EPERM:
    return fail(errc::permission, named + " is not this user's to write");
  case ENOSPC:
  case EDQUOT:
    return fail(errc::resource_exhausted, "no space is left in " + named);
  case ENOTDIR:
    return fail(errc::invalid_argument, named + " is not a directory");
  default:
    return fail(errc::io, named + " cannot be used: " + std::system_category().message(number));
  }
}

/// @returns nothing if the file is not there or does not check; an errno if it cannot be read
result<std::optional<content>> read_key(const fs::path& folder) {
  const descriptor file(::open((folder / file_name).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (*file < 0)
    return errno == ENOENT ? result<std::optional<content>>(std::nullopt) : refusal(folder, errno);
  struct stat state {};
  content bytes{};
  if (::fstat(*file, &state) != 0)
    return refusal(folder, errno);
  // Somebody may have copied the folder with other permissions.
  if ((state.st_mode & 077) != 0)
    static_cast<void>(::fchmod(*file, 0600));
  const auto length = ::pread(*file, bytes.data(), bytes.size(), 0);
  if (length < 0)
    return refusal(folder, errno);
  std::uint64_t sum = 0;
  std::memcpy(&sum, bytes.data() + bytes.size() - 8, 8);
  if (static_cast<std::size_t>(state.st_size) != bytes.size()
      || static_cast<std::size_t>(length) != bytes.size() || std::string_view(bytes.data(), 8) != magic
      || sum != checksum(bytes))
    return std::optional<content>();
  return std::optional(bytes);
}

/// Writes a new key beside the place of the file, so that it is there whole or not at all.
/// @param replace what is there does not check
result<void> write_key(const fs::path& folder, bool replace) {
  content bytes{};
  std::memcpy(bytes.data(), magic.data(), magic.size());
  if (::getrandom(bytes.data() + magic.size(), seed_bytes, 0) != static_cast<ssize_t>(seed_bytes))
    return refusal(folder, errno);
  const auto sum = checksum(bytes);
  std::memcpy(bytes.data() + bytes.size() - 8, &sum, 8);

  const auto place = folder / file_name;
  const auto beside = folder / (std::string(file_name) + "-" + std::to_string(::getpid()));
  const descriptor file(::open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (*file < 0)
    return refusal(folder, errno);
  int failure = 0;
  errno = EIO;
  if (::write(*file, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()) || ::fsync(*file) != 0)
    failure = errno;
  // A link does not replace the key that another process made meanwhile.
  else if (replace ? ::rename(beside.c_str(), place.c_str()) != 0
                   : ::link(beside.c_str(), place.c_str()) != 0 && errno != EEXIST)
    failure = errno;
  ::unlink(beside.c_str());
  if (failure != 0)
    return refusal(folder, failure);
  const descriptor directory(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (*directory < 0 || ::fsync(*directory) != 0)
    return refusal(folder, errno);
  return {};
}

/// Nothing of others is mixed with a store, or taken for one.
result<void> check_empty(const fs::path& folder) {
  std::error_code code;
  for (fs::directory_iterator entry(folder, code), end; !code && entry != end; entry.increment(code)) {
    const auto name = entry->path().filename().string();
    if (name.starts_with(std::string(file_name) + "-"))
      continue; // of a process that died while it made the key
    return fail(
      errc::invalid_argument, "the folder " + folder.string() + " holds other files (" + name
                                + "), or a cold store that has lost its file identity-key; give it another "
                                  "folder, or remove this one");
  }
  return {};
}

} // namespace

bool is_cold_store(const fs::path& folder) {
  std::error_code code;
  return fs::exists(folder / file_name, code);
}

result<identity_key> cold_identity_key(const fs::path& folder) {
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    return refusal(folder, errno);
  if (!is_cold_store(folder))
    if (auto good = check_empty(folder); !good)
      return fail(good);
  auto bytes = read_key(folder);
  if (!bytes)
    return fail(bytes);
  if (!*bytes) {
    if (auto made = write_key(folder, is_cold_store(folder)); !made)
      return fail(made);
    bytes = read_key(folder);
    if (!bytes)
      return fail(bytes);
    if (!*bytes)
      return fail(errc::io, "the cold store's key cannot be read back from " + folder.string());
  }
  return identity_key::derive(std::as_bytes(std::span(**bytes).subspan(8, seed_bytes)));
}

} // namespace godwit
