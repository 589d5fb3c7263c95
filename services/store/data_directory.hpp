#pragma once

#include "messages/descriptor.hpp"
#include "messages/ids.hpp"
#include "messages/result.hpp"

#include <filesystem>
#include <utility>

namespace godwit {

/// The directory of one node's journal and caches, held by this process alone as long as the object lives.
/// Also a crash gives it up: the lock is the kernel's (flock), the file `lock` in it only says who holds it.
class data_directory {
 public:
  /// Makes the directory, its parents too, if need be: readable by its owner only, since journals hold what
  /// users wrote. Messages are for the operator and name the path.
  /// @returns `conflict` when another node uses it, `invalid_argument` when it is not a directory,
  /// `permission` when it is read-only, `resource_exhausted` when the disk is full, `io` for anything else
  static result<data_directory> open(const std::filesystem::path& path, const node_name& owner);

  const std::filesystem::path& path() const { return path_; }
  /// Where the embedded journal lies.
  std::filesystem::path journal() const { return path_ / "journal"; }

 private:
  data_directory(std::filesystem::path path, descriptor lock)
    : path_(std::move(path)), lock_(std::move(lock)) {}

  std::filesystem::path path_;
  descriptor lock_; ///< of the locked file
};

} // namespace godwit
