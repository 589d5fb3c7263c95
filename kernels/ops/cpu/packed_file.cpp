#include "kernels/ops/cpu/packed_file.hpp"

#include "messages/check.hpp"
#include "messages/descriptor.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

namespace godwit::ops::cpu {

namespace {

constexpr std::array<char, 8> magic{'G', 'D', 'W', 'T', 'P', 'A', 'C', 'K'};
constexpr std::size_t model_characters = 32;
constexpr std::uint32_t most_entries = 65'536;
constexpr std::size_t alignment = 64;

constexpr std::size_t aligned(std::size_t offset) {
  return (offset + alignment - 1) / alignment * alignment;
}

error failure_of(int number, const std::string& what) {
  const errc code = number == EACCES || number == EPERM || number == EROFS ? errc::permission
                    : number == ENOSPC || number == EDQUOT                 ? errc::resource_exhausted
                                                                           : errc::io;
  return {code, what + ": " + std::generic_category().message(number), {}, {}};
}

/// A file that is closed, and removed unless it was put in its place.
class new_file {
 public:
  explicit new_file(std::filesystem::path path)
    : path_{std::move(path)}, handle_{::open(path_.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644)} {
  }
  ~new_file() {
    if (handle_) {
      ::unlink(path_.c_str());
    }
  }
  new_file(const new_file&) = delete;
  new_file& operator=(const new_file&) = delete;

  bool good() const { return bool(handle_); }

  bool write(std::span<const std::byte> bytes, std::size_t offset) const {
    while (!bytes.empty()) {
      const ::ssize_t written = ::pwrite(*handle_, bytes.data(), bytes.size(), static_cast<::off_t>(offset));
      if (written < 0 && errno == EINTR) {
        continue;
      }
      if (written <= 0) {
        return false;
      }
      bytes = bytes.subspan(static_cast<std::size_t>(written));
      offset += static_cast<std::size_t>(written);
    }
    return true;
  }

  bool put_in_place(const std::filesystem::path& target) {
    if (::fsync(*handle_) != 0 || ::rename(path_.c_str(), target.c_str()) != 0) {
      return false;
    }
    handle_.close();
    return true;
  }

 private:
  std::filesystem::path path_;
  descriptor handle_;
};

} // namespace

struct packed_file::header {
  std::array<char, 8> magic{};
  std::uint32_t version = 0;
  std::uint32_t entries = 0;
  std::array<char, model_characters> model{};
  std::uint64_t size = 0;
  std::uint64_t entries_digest = 0;
};

packed_file::packed_file(std::filesystem::path path, std::string_view model, team& threads)
  : path_{std::move(path)}, model_{model} {
  GODWIT_CHECK(model_.size() == model_characters);
  why_ = read(threads);
  if (!why_.empty()) {
    unmap();
  }
}

packed_file::~packed_file() {
  unmap();
}

void packed_file::unmap() {
  entries_.clear();
  if (!mapped_.empty()) {
    ::munmap(const_cast<std::byte*>(mapped_.data()), mapped_.size());
    mapped_ = {};
  }
}

packed_file::digest packed_file::digest_of(std::span<const std::byte> bytes) {
  const auto made = XXH3_128bits(bytes.data(), bytes.size());
  return {made.low64, made.high64};
}

packed_file::digest packed_file::digest_of(std::string_view text) {
  return digest_of(std::as_bytes(std::span{text.data(), text.size()}));
}

std::string packed_file::read(team& threads) {
  descriptor handle(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  if (!handle) {
    return errno == ENOENT ? std::string{} : failure_of(errno, "it cannot be opened").message;
  }
  struct ::stat status {};
  const bool known = ::fstat(*handle, &status) == 0 && S_ISREG(status.st_mode);
  const auto size = known ? static_cast<std::size_t>(status.st_size) : 0;
  void* const at =
    size >= sizeof(header) ? ::mmap(nullptr, size, PROT_READ, MAP_SHARED, *handle, 0) : MAP_FAILED;
  handle.close();
  if (at == MAP_FAILED) {
    return "it is too short or cannot be mapped";
  }
  mapped_ = {static_cast<const std::byte*>(at), size};

  header head;
  std::memcpy(&head, mapped_.data(), sizeof head);
  if (head.magic != magic) {
    return "it is something else";
  }
  if (head.version != packed_version) {
    return "it is of another version";
  }
  if (std::string_view{head.model.data(), head.model.size()} != model_) {
    return "it belongs to another model";
  }
  if (head.size != size || head.entries == 0 || head.entries > most_entries
      || head.entries * sizeof(entry) > size - sizeof head) {
    return "it is damaged: its size is not what it says";
  }
  const auto table = mapped_.subspan(sizeof head, head.entries * sizeof(entry));
  if (XXH3_64bits(table.data(), table.size()) != head.entries_digest) {
    return "it is damaged: its table has another digest";
  }
  std::vector<entry> found(head.entries);
  std::memcpy(found.data(), table.data(), table.size());
  if (auto wrong = check_entries(found, threads); !wrong.empty()) {
    return wrong;
  }
  entries_ = std::move(found);
  return {};
}

std::string packed_file::check_entries(std::span<const entry> found, team& threads) const {
  for (const auto& each : found) {
    if (each.offset % alignment != 0 || each.offset > mapped_.size()
        || each.size > mapped_.size() - each.offset) {
      return "it is damaged: weights beyond its end";
    }
  }
  std::atomic<bool> good = true;
  threads.run([&](worker& self) {
    for (std::size_t i = self.take(); i < found.size(); i = self.take()) {
      if (digest_of(mapped_.subspan(found[i].offset, found[i].size)) != found[i].weights) {
        good = false;
      }
    }
  });
  return good ? std::string{} : "it is damaged: weights have another digest";
}

std::span<const std::byte> packed_file::find(
  std::string_view tensor, weight_format format, std::size_t outputs, std::size_t inputs) const {
  const digest name = digest_of(tensor);
  for (const auto& each : entries_) {
    if (each.name == name && each.format == static_cast<std::uint64_t>(format) && each.outputs == outputs
        && each.inputs == inputs && each.size == packed_part::bytes_for(format, outputs, inputs)) {
      return mapped_.subspan(each.offset, each.size);
    }
  }
  return {};
}

void packed_file::add(std::string_view tensor, weight_format format, std::size_t outputs, std::size_t inputs,
  std::span<const std::byte> packed) {
  added_.push_back({.name = digest_of(tensor),
    .format = static_cast<std::uint64_t>(format),
    .outputs = outputs,
    .inputs = inputs,
    .offset = 0,
    .size = packed.size(),
    .weights = {}});
  added_weights_.push_back(packed);
}

result<void> packed_file::write(team& threads) {
  if (added_.empty()) {
    return {};
  }
  // What was found goes on being there.
  for (const auto& each : entries_) {
    added_.push_back(each);
    added_weights_.push_back(mapped_.subspan(each.offset, each.size));
  }
  GODWIT_CHECK(added_.size() <= most_entries);
  std::size_t end = aligned(sizeof(header) + added_.size() * sizeof(entry));
  for (auto& each : added_) {
    each.offset = end;
    end = aligned(end + each.size);
  }
  threads.run([&](worker& self) {
    for (std::size_t i = self.take(); i < added_.size(); i = self.take()) {
      added_[i].weights = digest_of(added_weights_[i]);
    }
  });
  const auto table = std::as_bytes(std::span{added_});
  header head{.magic = magic,
    .version = packed_version,
    .entries = static_cast<std::uint32_t>(added_.size()),
    .model = {},
    .size = added_.back().offset + added_.back().size,
    .entries_digest = XXH3_64bits(table.data(), table.size())};
  std::ranges::copy(model_, head.model.begin());

  auto draft = path_;
  draft += ".draft-" + std::to_string(::getpid());
  new_file made{draft};
  const auto failed = [] {
    return tl::unexpected<error>(failure_of(errno, "the packed weights cannot be kept"));
  };
  if (!made.good()) {
    return failed();
  }
  bool good = made.write(std::as_bytes(std::span{&head, 1}), 0) && made.write(table, sizeof head);
  for (std::size_t i = 0; i < added_.size() && good; ++i) {
    good = made.write(added_weights_[i], added_[i].offset);
  }
  if (!good || !made.put_in_place(path_)) {
    return failed();
  }
  added_.clear();
  added_weights_.clear();
  return {};
}

} // namespace godwit::ops::cpu
