// A disk that is full, fails, hangs or is read-only: the store degrades, says so once, and comes back.

#include "tests/support/temporary_folder.hpp"
#include "tests/unit/services/coldstore/texts.hpp"
#include "tests/unit/services/journal/faulty_disk.hpp"

#include <catch2/catch.hpp>

#include <sys/mount.h>

#include <atomic>
#include <fstream>
#include <mutex>
#include <thread>

using namespace godwit;
using namespace godwit::test;
using namespace std::chrono_literals;
using rocksdb::IOStatus;

namespace {

/// A file whose reads fail on demand.
class unreadable_file final : public rocksdb::FSRandomAccessFileOwnerWrapper {
 public:
  unreadable_file(std::unique_ptr<rocksdb::FSRandomAccessFile> real, const std::atomic<bool>& fails)
    : FSRandomAccessFileOwnerWrapper(std::move(real)), real_(target()), fails_(fails) {}

  IOStatus Read(std::uint64_t offset, std::size_t size, const rocksdb::IOOptions& options,
    rocksdb::Slice* into, char* scratch, rocksdb::IODebugContext* debug) const override {
    if (fails_)
      return IOStatus::IOError("the disk is broken");
    return real_->Read(offset, size, options, into, scratch, debug);
  }

 private:
  rocksdb::FSRandomAccessFile* real_;
  const std::atomic<bool>& fails_;
};

/// A faulty disk of which blob files can also not be read.
class unreadable_disk final : public rocksdb::FileSystemWrapper {
 public:
  explicit unreadable_disk(const std::shared_ptr<rocksdb::FileSystem>& under) : FileSystemWrapper(under) {}
  const char* Name() const override { return "unreadable_disk"; }
  IOStatus NewRandomAccessFile(const std::string& name, const rocksdb::FileOptions& options,
    std::unique_ptr<rocksdb::FSRandomAccessFile>* made, rocksdb::IODebugContext* debug) override {
    std::unique_ptr<rocksdb::FSRandomAccessFile> real;
    auto status = target()->NewRandomAccessFile(name, options, &real, debug);
    if (status.ok())
      *made =
        name.ends_with(".blob") ? std::make_unique<unreadable_file>(std::move(real), fails) : std::move(real);
    return status;
  }
  std::atomic<bool> fails{false};
};

class faulty_store {
 public:
  explicit faulty_store(std::chrono::milliseconds patience = 10'000ms) : options_(small_store({})) {
    options_.folder = folder_.path() / "cold";
    options_.env = env_.get();
    options_.patience = patience;
    options_.warn = [this](std::string_view line) {
      const std::lock_guard lock(mutex_);
      warnings_.emplace_back(line);
    };
    start();
  }
  ~faulty_store() { disk_->heal(); }

  void start() {
    auto made = open_cold_store(options_);
    if (!made)
      FAIL(made.error().message);
    store_ = std::move(*made);
  }
  void stop() { store_.reset(); }

  cold_store& operator*() { return *store_; }
  cold_store* operator->() { return store_.get(); }
  faulty_disk& disk() { return *disk_; }
  unreadable_disk& reads() { return *reads_; }
  std::vector<std::string> warnings() {
    const std::lock_guard lock(mutex_);
    return warnings_;
  }
  void wait_until_back() {
    for (int i = 0; i < 4000 && store_->stats().refusing; ++i)
      std::this_thread::sleep_for(5ms);
    REQUIRE_FALSE(store_->stats().refusing);
    // The line comes behind the state.
    for (int i = 0; i < 200 && warnings().empty(); ++i)
      std::this_thread::sleep_for(5ms);
  }

 private:
  temporary_folder folder_;
  std::shared_ptr<faulty_disk> disk_ = std::make_shared<faulty_disk>();
  std::shared_ptr<unreadable_disk> reads_ = std::make_shared<unreadable_disk>(disk_);
  std::unique_ptr<rocksdb::Env> env_ = rocksdb::NewCompositeEnv(reads_);
  cold_options options_;
  std::mutex mutex_;
  std::vector<std::string> warnings_;
  std::unique_ptr<cold_store> store_;
};

errc code(const result<void>& answer) {
  return answer ? errc{} : answer.error().code;
}

} // namespace

TEST_CASE("a full disk refuses blocks, gives those that are there, and is written again once there is room") {
  // The disk takes some of it before it is full: of a log, of pages, of a table.
  const auto partly = GENERATE(0, 100, 3000, 30'000, 70'000);
  const bool large = GENERATE(false, true);
  faulty_store store;
  const text before(1, 10);
  const text lost(2, large ? 60 : 5);
  REQUIRE(store->write(before.blocks()));
  store.disk().fail_appends(IOStatus::NoSpace("full"), static_cast<std::size_t>(partly));
  // What is small may still fit.
  auto answer = store->write(lost.blocks());
  for (std::uint32_t i = 100; answer && i < 200; ++i)
    answer = store->write(text(i, 5).blocks());
  REQUIRE(code(answer) == errc::resource_exhausted);
  CHECK(store->stats().degraded);
  CHECK(code(store->write(text(3, 5).blocks())) == errc::resource_exhausted);
  CHECK(read_right(*store, before) == 10);
  CHECK(store->stats().failures >= 2);
  std::this_thread::sleep_for(30ms);
  CHECK(store->stats().degraded);
  REQUIRE(store.warnings().size() == 1);
  CHECK(store.warnings()[0].find("cannot write") != std::string::npos);

  store.disk().heal();
  store.wait_until_back();
  CHECK(read_right(*store, before) == 10);
  CHECK(read_right(*store, lost) == store->known(lost.names));
  REQUIRE(store->write(lost.blocks()));
  CHECK(read_right(*store, lost) == lost.names.size());
  for (std::uint32_t i = 300; i < 320 && store->stats().degraded; ++i)
    REQUIRE(store->write(text(i, 10).blocks()));
  CHECK_FALSE(store->stats().degraded);
  for (int i = 0; i < 400 && store.warnings().size() < 2; ++i)
    std::this_thread::sleep_for(5ms);
  CHECK(store.warnings().size() == 2);
  const auto stats = store->stats();
  store.stop();
  store.start();
  CHECK(store->stats().blocks == stats.blocks);
  CHECK(store->stats().bytes == stats.bytes);
  CHECK(read_right(*store, before) == 10);
  CHECK(read_right(*store, lost) == lost.names.size());
}

TEST_CASE("a disk that takes a probe and refuses the next commit is one failure, and one line") {
  faulty_store store;
  REQUIRE(store->write(text(1, 10).blocks()));
  for (std::uint32_t i = 2; i < 12; ++i) {
    store.disk().fail_appends(IOStatus::NoSpace("full"), 3000);
    CHECK(code(store->write(text(i, 60).blocks())) == errc::resource_exhausted);
    store.disk().heal();
    store.wait_until_back();
    CHECK(store->stats().degraded);
  }
  CHECK(store.warnings().size() == 1);
  REQUIRE(store->write(text(20, 61).blocks()));
  CHECK_FALSE(store->stats().degraded);
  for (int i = 0; i < 400 && store.warnings().size() < 2; ++i)
    std::this_thread::sleep_for(5ms);
  REQUIRE(store.warnings().size() == 2);
  CHECK(store.warnings()[1].find("can write again") != std::string::npos);
}

TEST_CASE("a disk with room for less than the commit that it refused is not written again") {
  faulty_store store;
  REQUIRE(store->write(text(1, 10).blocks()));
  const auto room = 100 * small_record;
  for (int i = 0; i < 20; ++i) {
    store.disk().fail_appends(IOStatus::NoSpace("full"), room);
    static_cast<void>(store->write(text(2, 200).blocks()));
    std::this_thread::sleep_for(20ms);
    REQUIRE(store->stats().refusing);
  }
  CHECK(store.warnings().size() == 1);
}

TEST_CASE("after a failed sync the store finds out what is there") {
  faulty_store store;
  const text before(1, 40);
  const text unsure(2, 40);
  REQUIRE(store->write(before.blocks()));
  store.disk().fail_syncs(IOStatus::IOError("broken"));
  CHECK(code(store->write(unsure.blocks())) == errc::io);
  CHECK(store->known(unsure.names) == 0);
  CHECK(read_right(*store, before) == 40);
  store.disk().heal();
  store.wait_until_back();
  CHECK(read_right(*store, before) == 40);
  CHECK(read_right(*store, unsure) == store->known(unsure.names));
  CHECK((store->known(unsure.names) == 0 || store->known(unsure.names) == 40));
  REQUIRE(store->write(unsure.blocks()));
  CHECK(read_right(*store, unsure) == 40);
  CHECK(store->stats().blocks == 80);
}

TEST_CASE("a failed eviction leaves counters that are true again once the disk is back") {
  temporary_folder folder;
  faulty_environment environment;
  auto options = small_store(folder.path(), 50 * small_record);
  options.env = environment.env.get();
  auto store = std::move(*open_cold_store(options));
  std::vector<text> all;
  for (std::uint32_t i = 0; i < 8; ++i)
    all.emplace_back(i, 20);
  std::mt19937 random(1);
  for (int round = 0; round < 12; ++round) {
    environment.disk->fail_appends(IOStatus::NoSpace("full"), random() % 60'000);
    for (int i = 0; i < 6; ++i)
      static_cast<void>(store->write(all[random() % all.size()].blocks()));
    environment.disk->heal();
    for (int i = 0; i < 4000 && store->stats().refusing; ++i)
      std::this_thread::sleep_for(5ms);
    const auto stats = store->stats();
    REQUIRE_FALSE(stats.refusing);
    REQUIRE(stats.blocks == known_of(*store, all));
    REQUIRE(stats.bytes == stats.blocks * small_record);
    REQUIRE(stats.bytes <= options.limit_bytes);
    REQUIRE(stats.damaged == 0);
    for (const auto& one : all)
      REQUIRE(read_right(*store, one) == store->known(one.names));
    REQUIRE(store->write(all[0].blocks()));
    REQUIRE(read_right(*store, all[0]) == 20);
  }
}

TEST_CASE("a disk that hangs holds nobody longer than the patience, and what was under way is there later") {
  faulty_store store(300ms);
  const text before(1, 40);
  const text late(2, 40);
  REQUIRE(store->write(before.blocks()));
  store.disk().hang();
  const auto start = std::chrono::steady_clock::now();
  CHECK(code(store->write(late.blocks())) == errc::io);
  CHECK(std::chrono::steady_clock::now() - start < 5s);
  CHECK(store->stats().degraded);
  // Others are not held at all.
  CHECK(code(store->write(text(3, 40).blocks())) == errc::io);
  CHECK(read_right(*store, before) == 40);
  CHECK(store.warnings().size() == 1);
  store.disk().heal();
  store.wait_until_back();
  CHECK(read_right(*store, late) == 40);
  CHECK(store->known(text(3, 40).names) == 0);
  REQUIRE(store->write(text(3, 40).blocks()));
  CHECK(store->stats().blocks == 120);
}

TEST_CASE("a disk that does not give pages costs misses, one line, and no block") {
  faulty_store store;
  const text one(1, 40);
  REQUIRE(store->write(one.blocks()));
  store.reads().fails = true;
  for (int i = 0; i < 5; ++i)
    CHECK(read_right(*store, one) == 0);
  CHECK(store->stats().failures == 5);
  CHECK(store->stats().misses == 200);
  CHECK(store->stats().damaged == 0);
  CHECK(store->known(one.names) == 40);
  REQUIRE(store.warnings().size() == 1);
  CHECK(store.warnings()[0].find("cannot be read") != std::string::npos);
  store.reads().fails = false;
  CHECK(read_right(*store, one) == 40);
  CHECK(store->stats().blocks == 40);
}

TEST_CASE("a store that is closed while the disk refuses opens with what it had") {
  faulty_store store;
  const text before(1, 40);
  REQUIRE(store->write(before.blocks()));
  store.disk().fail_appends(IOStatus::IOError("broken"));
  CHECK(code(store->write(text(2, 40).blocks())) == errc::io);
  store.stop();
  store.disk().heal();
  store.start();
  CHECK(read_right(*store, before) == 40);
}

TEST_CASE("a real disk that is full, and one that is read-only") {
  temporary_folder folder;
  const auto place = folder.path() / "disk";
  std::filesystem::create_directory(place);
  if (::mount("tmpfs", place.c_str(), "tmpfs", 0, "size=2m") != 0) {
    WARN("no file system can be mounted here; not tested");
    return;
  }
  {
    auto options = small_store(place / "cold");
    std::vector<std::string> warnings;
    std::mutex mutex;
    options.warn = [&](std::string_view line) {
      const std::lock_guard lock(mutex);
      warnings.emplace_back(line);
    };
    auto store = std::move(*open_cold_store(options));
    const text first(0, 40);
    REQUIRE(store->write(first.blocks()));
    result<void> answer;
    for (std::uint32_t i = 1; answer && i < 100; ++i)
      answer = store->write(text(i, 40).blocks());
    CHECK(code(answer) == errc::resource_exhausted);
    CHECK(read_right(*store, first) == 40);
    CHECK(::mount("tmpfs", place.c_str(), "tmpfs", MS_REMOUNT, "size=8m") == 0);
    for (int i = 0; i < 4000 && store->stats().refusing; ++i)
      std::this_thread::sleep_for(5ms);
    CHECK_FALSE(store->stats().refusing);
    CHECK(store->write(text(200, 40).blocks()));
    for (std::uint32_t i = 201; i < 220 && store->stats().degraded; ++i)
      CHECK(store->write(text(i, 40).blocks()));
    CHECK_FALSE(store->stats().degraded);
    CHECK(read_right(*store, text(200, 40)) == 40);
    store.reset();
    CHECK(warnings.size() == 2);

    CHECK(::mount("tmpfs", place.c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, "size=8m") == 0);
    const auto refused = open_cold_store(options);
    CHECK_FALSE(refused);
    CHECK(refused.error().code == errc::permission);
    CHECK(open_cold_store(small_store(place / "other")).error().code == errc::permission);
  }
  ::umount2(place.c_str(), MNT_DETACH);
}
