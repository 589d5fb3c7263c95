#include "kernels/gguf/file.hpp"

#include "kernels/gguf/parser.hpp"
#include "messages/descriptor.hpp"

#include <algorithm>
#include <cerrno>
#include <concepts>
#include <cstring>
#include <limits>
#include <string>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace godwit::gguf {
namespace {

tl::unexpected<error> system_failure(int number) {
  switch (number) {
  case ENOENT:
  case ENOTDIR:
    return fail(errc::not_found, "the model file does not exist");
  case EACCES:
  case EPERM:
    return fail(errc::permission, "the model file may not be read by this user");
  default:
    return fail(errc::io, std::string("the model file cannot be read: ") + std::strerror(number));
  }
}

tl::unexpected<error> missing(std::string_view key) {
  return fail(errc::corrupt, "the model file has no metadata key \"" + std::string(key) + "\"");
}

tl::unexpected<error> mistyped(std::string_view key, std::string_view wanted) {
  return fail(errc::corrupt,
    "the model file has metadata key \"" + std::string(key) + "\", but not as " + std::string(wanted));
}

template <class T>
concept integer = std::integral<T> && !std::same_as<T, bool>;

template <class Items, class NameOf>
auto find_sorted(const Items& items, const std::vector<std::uint32_t>& order, std::string_view name,
  NameOf name_of) -> decltype(&items[0]) {
  const auto named = [&](std::uint32_t i) { return name_of(items[i]); };
  const auto found = std::ranges::lower_bound(order, name, {}, named);
  return found != order.end() && named(*found) == name ? &items[*found] : nullptr;
}

} // namespace

std::size_t array::size() const {
  return std::visit([](const auto& all) { return all.size(); }, items);
}

std::uint64_t tensor::rows() const {
  std::uint64_t count = 1;
  for (std::size_t i = 1; i < shape.size(); ++i)
    count *= shape[i];
  return count;
}

std::size_t tensor::row_bytes() const {
  return static_cast<std::size_t>(columns()) / block_elements(type) * block_bytes(type);
}

result<std::shared_ptr<const file>> file::open(const std::filesystem::path& path) {
  // O_NONBLOCK, so that a named pipe is refused below in place of waited for.
  const descriptor opened(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!opened)
    return system_failure(errno);
  struct stat status {};
  if (::fstat(*opened, &status) != 0)
    return system_failure(errno);
  if (!S_ISREG(status.st_mode))
    return fail(errc::io, "the model file is not a regular file");
  if (status.st_size <= 0)
    return fail(errc::corrupt, "the model file is empty");
  const auto size = static_cast<std::size_t>(status.st_size);
  void* start = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, *opened, 0);
  if (start == MAP_FAILED)
    return system_failure(errno);

  const std::shared_ptr<file> made(new file);
  made->bytes_ = {static_cast<const std::byte*>(start), size};
  made->mapped_ = true;
  parser steps(*made);
  if (!steps.run())
    return tl::unexpected(steps.failure());
  return made;
}

result<std::shared_ptr<const file>> file::parse(std::span<const std::byte> bytes) {
  const std::shared_ptr<file> made(new file);
  made->bytes_ = bytes;
  parser steps(*made);
  if (!steps.run())
    return tl::unexpected(steps.failure());
  return made;
}

file::~file() {
  if (mapped_)
    ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

const value* file::find(std::string_view key) const {
  const auto* found = find_sorted(metadata_, keys_, key, [](const auto& item) { return item.first; });
  return found != nullptr ? &found->second : nullptr;
}

const tensor* file::find_tensor(std::string_view name) const {
  return find_sorted(tensors_, names_, name, [](const tensor& item) { return item.name; });
}

result<std::uint64_t> file::unsigned_value(std::string_view key) const {
  const auto* found = find(key);
  if (found == nullptr)
    return missing(key);
  return std::visit(
    [&]<class T>(const T& held) -> result<std::uint64_t> {
      if constexpr (integer<T>)
        if (std::in_range<std::uint64_t>(held))
          return static_cast<std::uint64_t>(held);
      return mistyped(key, "an unsigned integer");
    },
    *found);
}

result<double> file::float_value(std::string_view key) const {
  const auto* found = find(key);
  if (found == nullptr)
    return missing(key);
  if (const auto* single = std::get_if<float>(found))
    return static_cast<double>(*single);
  if (const auto* wide = std::get_if<double>(found))
    return *wide;
  return mistyped(key, "a float");
}

result<std::string_view> file::string_value(std::string_view key) const {
  const auto* found = find(key);
  if (found == nullptr)
    return missing(key);
  if (const auto* text = std::get_if<std::string_view>(found))
    return *text;
  return mistyped(key, "a string");
}

result<bool> file::bool_value(std::string_view key) const {
  const auto* found = find(key);
  if (found == nullptr)
    return missing(key);
  if (const auto* flag = std::get_if<bool>(found))
    return *flag;
  return mistyped(key, "a boolean");
}

result<std::span<const std::string_view>> file::strings(std::string_view key) const {
  const auto* found = find(key);
  if (found == nullptr)
    return missing(key);
  if (const auto* list = std::get_if<std::shared_ptr<const array>>(found))
    if (const auto* items = std::get_if<std::vector<std::string_view>>(&(*list)->items))
      return std::span<const std::string_view>(*items);
  return mistyped(key, "an array of strings");
}

result<std::vector<std::int64_t>> file::integers(std::string_view key) const {
  const auto* found = find(key);
  if (found == nullptr)
    return missing(key);
  const auto* list = std::get_if<std::shared_ptr<const array>>(found);
  if (list == nullptr)
    return mistyped(key, "an array of integers");
  return std::visit(
    [&]<class T>(const std::vector<T>& items) -> result<std::vector<std::int64_t>> {
      if constexpr (integer<T>)
        if (std::ranges::all_of(items, [](T item) { return std::in_range<std::int64_t>(item); }))
          return std::vector<std::int64_t>(items.begin(), items.end());
      return mistyped(key, "an array of integers");
    },
    (*list)->items);
}

result<std::vector<float>> file::floats(std::string_view key) const {
  const auto* found = find(key);
  if (found == nullptr)
    return missing(key);
  if (const auto* list = std::get_if<std::shared_ptr<const array>>(found)) {
    if (const auto* single = std::get_if<std::vector<float>>(&(*list)->items))
      return *single;
    if (const auto* wide = std::get_if<std::vector<double>>(&(*list)->items)) {
      std::vector<float> narrowed(wide->size());
      std::ranges::transform(*wide, narrowed.begin(), [](double item) { return static_cast<float>(item); });
      return narrowed;
    }
  }
  return mistyped(key, "an array of floats");
}

void file::forget(const tensor& which) const {
  if (!mapped_)
    return;
  // Only pages that lie wholly within the tensor: its neighbours may still be in use.
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const auto from = static_cast<std::size_t>(which.data.data() - bytes_.data());
  const auto first = (from + page - 1) / page * page;
  const auto last = (from + which.data.size()) / page * page;
  if (first < last)
    ::madvise(const_cast<std::byte*>(bytes_.data()) + first, last - first, MADV_DONTNEED);
}

} // namespace godwit::gguf
