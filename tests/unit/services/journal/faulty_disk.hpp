#pragma once

#include <rocksdb/env.h>
#include <rocksdb/file_system.h>

#include <condition_variable>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

namespace godwit::test {

/// The real file system with faults on demand. It knows how much of each file was synced, so that a test can
/// cut the power: what was not synced is lost then.
class faulty_disk final : public rocksdb::FileSystemWrapper {
 public:
  faulty_disk();

  const char* Name() const override { return "faulty_disk"; }

  /// Lets writes fail from now on, after `whole` more bytes were taken.
  void fail_appends(rocksdb::IOStatus failure, std::size_t whole = 0);
  /// Lets syncs fail from now on.
  void fail_syncs(rocksdb::IOStatus failure);
  /// Takes no new files from now on; those that are open can be written.
  void refuse_files(rocksdb::IOStatus failure);
  /// The disk works again.
  void heal();
  /// Lets syncs of logs wait until heal().
  void hang();

  /// Syncs are only noted, for tests that open many times.
  void skip_syncs();

  /// Nothing can be changed any more: the process is about to die with the power.
  void die();
  /// Cuts each file to what was synced of it, and `tail` of what was not.
  void lose_unsynced(double tail);

  rocksdb::IOStatus NewWritableFile(const std::string& name, const rocksdb::FileOptions& options,
    std::unique_ptr<rocksdb::FSWritableFile>* made, rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus RenameFile(const std::string& from, const std::string& to,
    const rocksdb::IOOptions& options, rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus DeleteFile(
    const std::string& name, const rocksdb::IOOptions& options, rocksdb::IODebugContext* debug) override;

 private:
  friend class faulty_file;

  /// How many of `size` bytes may be written. @returns the failure for the rest
  rocksdb::IOStatus admit(std::size_t size, std::size_t& taken);
  /// @param real what syncs the file
  rocksdb::IOStatus sync(
    const std::string& name, std::uintmax_t size, const std::function<rocksdb::IOStatus()>& real);

  std::mutex mutex_;
  std::condition_variable healed_;
  rocksdb::IOStatus append_failure_;
  rocksdb::IOStatus sync_failure_;
  rocksdb::IOStatus file_failure_;
  std::size_t whole_ = 0;
  bool hanging_ = false;
  bool dead_ = false;
  bool skipping_ = false;
  std::map<std::string, std::uintmax_t> synced_; ///< bytes of each written file
};

/// An environment over a faulty disk; both live as long as it does.
struct faulty_environment {
  std::shared_ptr<faulty_disk> disk = std::make_shared<faulty_disk>();
  std::unique_ptr<rocksdb::Env> env = rocksdb::NewCompositeEnv(disk);
};

} // namespace godwit::test
