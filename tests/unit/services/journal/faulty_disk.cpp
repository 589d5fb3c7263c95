#include "tests/unit/services/journal/faulty_disk.hpp"

#include <utility>

namespace godwit::test {

using rocksdb::IOStatus;

/// A file whose writes and syncs ask the disk first.
class faulty_file final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  faulty_file(faulty_disk& disk, std::string name, std::unique_ptr<rocksdb::FSWritableFile> real)
    : FSWritableFileOwnerWrapper(std::move(real)), disk_(disk), name_(std::move(name)) {}

  IOStatus Append(
    const rocksdb::Slice& data, const rocksdb::IOOptions& options, rocksdb::IODebugContext* debug) override {
    std::size_t taken = 0;
    const auto verdict = disk_.admit(data.size(), taken);
    const auto written = target()->Append(rocksdb::Slice(data.data(), taken), options, debug);
    size_ += taken;
    return verdict.ok() ? written : verdict;
  }
  IOStatus Append(const rocksdb::Slice& data, const rocksdb::IOOptions& options,
    const rocksdb::DataVerificationInfo& /*info*/, rocksdb::IODebugContext* debug) override {
    return Append(data, options, debug);
  }
  IOStatus Sync(const rocksdb::IOOptions& options, rocksdb::IODebugContext* debug) override {
    return disk_.sync(name_, size_, [&] { return target()->Sync(options, debug); });
  }
  IOStatus Fsync(const rocksdb::IOOptions& options, rocksdb::IODebugContext* debug) override {
    return disk_.sync(name_, size_, [&] { return target()->Fsync(options, debug); });
  }

 private:
  faulty_disk& disk_;
  std::string name_;
  std::uintmax_t size_ = 0;
};

faulty_disk::faulty_disk() : FileSystemWrapper(rocksdb::FileSystem::Default()) {}

void faulty_disk::fail_appends(IOStatus failure, std::size_t whole) {
  const std::lock_guard lock(mutex_);
  append_failure_ = std::move(failure);
  whole_ = whole;
}

void faulty_disk::fail_syncs(IOStatus failure) {
  const std::lock_guard lock(mutex_);
  sync_failure_ = std::move(failure);
}

void faulty_disk::refuse_files(IOStatus failure) {
  const std::lock_guard lock(mutex_);
  file_failure_ = std::move(failure);
}

void faulty_disk::heal() {
  const std::lock_guard lock(mutex_);
  append_failure_ = IOStatus::OK();
  sync_failure_ = IOStatus::OK();
  file_failure_ = IOStatus::OK();
  hanging_ = false;
  healed_.notify_all();
}

void faulty_disk::hang() {
  const std::lock_guard lock(mutex_);
  hanging_ = true;
}

void faulty_disk::die() {
  const std::lock_guard lock(mutex_);
  dead_ = true;
  hanging_ = false;
  healed_.notify_all();
}

void faulty_disk::lose_unsynced(double tail) {
  const std::lock_guard lock(mutex_);
  for (const auto& [name, synced] : synced_) {
    std::error_code code;
    const auto size = std::filesystem::file_size(name, code);
    if (!code && size > synced)
      std::filesystem::resize_file(
        name, synced + static_cast<std::uintmax_t>(tail * static_cast<double>(size - synced)));
  }
  synced_.clear();
  dead_ = false;
}

IOStatus faulty_disk::admit(std::size_t size, std::size_t& taken) {
  const std::lock_guard lock(mutex_);
  taken = 0;
  if (dead_)
    return IOStatus::IOError("the power is off");
  if (append_failure_.ok() || size <= whole_) {
    if (!append_failure_.ok())
      whole_ -= size;
    taken = size;
    return IOStatus::OK();
  }
  taken = std::exchange(whole_, 0);
  return append_failure_;
}

IOStatus faulty_disk::sync(
  const std::string& name, std::uintmax_t size, const std::function<IOStatus()>& real) {
  std::unique_lock lock(mutex_);
  healed_.wait(lock, [&] { return !hanging_; });
  if (!sync_failure_.ok())
    return sync_failure_;
  if (dead_)
    return IOStatus::IOError("the power is off");
  if (!skipping_)
    if (auto status = real(); !status.ok())
      return status;
  synced_[name] = size;
  return IOStatus::OK();
}

void faulty_disk::skip_syncs() {
  const std::lock_guard lock(mutex_);
  skipping_ = true;
}

IOStatus faulty_disk::NewWritableFile(const std::string& name, const rocksdb::FileOptions& options,
  std::unique_ptr<rocksdb::FSWritableFile>* made, rocksdb::IODebugContext* debug) {
  {
    const std::lock_guard lock(mutex_);
    if (dead_)
      return IOStatus::IOError("the power is off");
    if (!file_failure_.ok())
      return file_failure_;
    synced_[name] = 0;
  }
  auto plain = options;
  plain.use_mmap_writes = false;
  std::unique_ptr<rocksdb::FSWritableFile> real;
  auto status = target()->NewWritableFile(name, plain, &real, debug);
  if (status.ok())
    *made = std::make_unique<faulty_file>(*this, name, std::move(real));
  return status;
}

IOStatus faulty_disk::RenameFile(const std::string& from, const std::string& to,
  const rocksdb::IOOptions& options, rocksdb::IODebugContext* debug) {
  {
    const std::lock_guard lock(mutex_);
    if (dead_)
      return IOStatus::IOError("the power is off");
    if (auto moved = synced_.extract(from)) {
      synced_.erase(to);
      moved.key() = to;
      synced_.insert(std::move(moved));
    }
  }
  return target()->RenameFile(from, to, options, debug);
}

IOStatus faulty_disk::DeleteFile(
  const std::string& name, const rocksdb::IOOptions& options, rocksdb::IODebugContext* debug) {
  {
    const std::lock_guard lock(mutex_);
    if (dead_)
      return IOStatus::IOError("the power is off");
    synced_.erase(name);
  }
  return target()->DeleteFile(name, options, debug);
}

} // namespace godwit::test
