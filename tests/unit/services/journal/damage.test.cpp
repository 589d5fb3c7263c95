// What becomes of a journal whose bytes have changed.

#include "tests/unit/services/journal/engines.hpp"
#include "tests/unit/services/journal/faulty_disk.hpp"

#include "services/journal/codec.hpp"

#include <rocksdb/db.h>

#include <fstream>
#include <iterator>
#include <random>
#include <thread>

using namespace godwit;
using namespace godwit::test;
namespace fs = std::filesystem;

namespace {

const session_id one = session(1);
const session_id two = session(2);
const session_id before_one = session(0);

result<std::unique_ptr<rocks_journal>> try_open(const fs::path& folder,
  damaged_log when_damaged = damaged_log::refuse, std::size_t buffer = 1 << 20, rocksdb::Env* env = nullptr) {
  rocks_journal_options options;
  options.folder = folder;
  options.when_damaged = when_damaged;
  options.write_buffer_bytes = buffer;
  options.env = env;
  options.first_retry = std::chrono::milliseconds(1);
  return rocks_journal::create(std::move(options));
}

std::unique_ptr<rocks_journal> must_open(
  const fs::path& folder, std::size_t buffer = 1 << 20, rocksdb::Env* env = nullptr) {
  auto made = try_open(folder, damaged_log::refuse, buffer, env);
  if (!made)
    FAIL(made.error().message);
  return std::move(*made);
}

std::vector<std::string> all(journal& log, const session_id& of = one) {
  const auto records = log.read(of, 1, 1'000'000);
  REQUIRE(records);
  return texts(*records);
}

std::vector<fs::path> files(const fs::path& folder, const std::string& ending) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().string().ends_with(ending))
      found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

std::string content(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

void flip(const fs::path& file, std::uintmax_t at) {
  std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
  stream.seekg(static_cast<std::streamoff>(at));
  const auto byte = static_cast<char>(stream.get() ^ 0x10);
  stream.seekp(static_cast<std::streamoff>(at));
  stream.put(byte);
}

/// The database behind a journal, to do what a journal never would.
class raw_database {
 public:
  explicit raw_database(const fs::path& folder) {
    std::vector<std::string> names;
    REQUIRE(rocksdb::DB::ListColumnFamilies({}, folder.string(), &names).ok());
    std::vector<rocksdb::ColumnFamilyDescriptor> families;
    for (const auto& name : names)
      families.emplace_back(name, rocksdb::ColumnFamilyOptions());
    rocksdb::DB* made = nullptr;
    REQUIRE(rocksdb::DB::Open({}, folder.string(), families, &handles_, &made).ok());
    db_.reset(made);
  }
  ~raw_database() {
    for (auto* handle : handles_)
      db_->DestroyColumnFamilyHandle(handle);
  }
  rocksdb::ColumnFamilyHandle* family(const std::string& name) {
    for (auto* handle : handles_)
      if (handle->GetName() == name)
        return handle;
    FAIL("no such family");
    return nullptr;
  }
  std::string get(const std::string& name, const std::string& key) {
    std::string value;
    REQUIRE(db_->Get({}, family(name), key, &value).ok());
    return value;
  }
  void put(const std::string& name, const std::string& key, const std::string& value) {
    REQUIRE(db_->Put({}, family(name), key, value).ok());
  }
  void remove(const std::string& name, const std::string& key) {
    REQUIRE(db_->Delete({}, family(name), key).ok());
  }
  void add_family(const std::string& name) {
    rocksdb::ColumnFamilyHandle* handle = nullptr;
    REQUIRE(db_->CreateColumnFamily({}, name, &handle).ok());
    handles_.push_back(handle);
  }

 private:
  std::unique_ptr<rocksdb::DB> db_;
  std::vector<rocksdb::ColumnFamilyHandle*> handles_;
};

/// A journal of two sessions, "a" to "d" in the first.
void write_two_sessions(const fs::path& folder) {
  auto log = must_open(folder);
  REQUIRE(log->open(one, tenant, node_a, {record("a"), record("b")}, false));
  REQUIRE(log->open(two, tenant, node_a, {record("z")}, false));
  REQUIRE(append_now(*log, more(one, 2, {record("c"), record("d")})));
}

} // namespace

TEST_CASE("a log that was cut at any byte of its last entry opens at the last whole one") {
  const temporary_folder folder;
  const auto original = folder.path() / "original";
  std::uintmax_t before = 0;
  std::uintmax_t end = 0;
  faulty_environment environment;
  environment.disk->skip_syncs();
  {
    auto log = must_open(original);
    REQUIRE(log->open(one, tenant, node_a, {record("a")}, false));
    REQUIRE(append_now(*log, more(one, 1, {record("b")})));
    const auto file = files(original, ".log").back();
    before = fs::file_size(file);
    REQUIRE(append_now(*log, more(one, 2, {record("c"), record("d")})));
    end = fs::file_size(file);
  }
  REQUIRE(end > before + 200);
  for (auto cut = before; cut <= end; ++cut) {
    const auto copy = folder.path() / "copy";
    fs::remove_all(copy);
    fs::copy(original, copy);
    fs::resize_file(files(copy, ".log").back(), cut);
    auto log = must_open(copy, 1 << 20, environment.env.get());
    // Both records of the last append, or none.
    std::vector<std::string> expected{"a", "b"};
    if (cut == end)
      expected = {"a", "b", "c", "d"};
    REQUIRE(all(*log) == expected);
    REQUIRE(append_now(*log, more(one, expected.size(), {record("e")})) == expected.size() + 1);
    expected.emplace_back("e");
    if (cut % 8 != 0)
      continue;
    log.reset();
    log = must_open(copy, 1 << 20, environment.env.get());
    REQUIRE(all(*log) == expected);
  }
}

TEST_CASE("a log whose end is zeros, as after a loss of power, opens at the last whole entry") {
  const temporary_folder folder;
  write_two_sessions(folder.path());
  const auto file = files(folder.path(), ".log").back();
  fs::resize_file(file, fs::file_size(file) + 5000);
  auto log = must_open(folder.path());
  CHECK(all(*log) == std::vector<std::string>{"a", "b", "c", "d"});
}

TEST_CASE("a log that is damaged in the middle is refused and left as it is, unless its loss is accepted") {
  const temporary_folder folder;
  write_two_sessions(folder.path());
  const auto file = files(folder.path(), ".log").back();
  const auto whole = content(file);
  // In the first entry of the sessions; two more stand behind it.
  flip(file, whole.find("ses_00000001") + 2);
  for (int attempt = 0; attempt < 2; ++attempt) {
    const auto refused = try_open(folder.path());
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == errc::corrupt);
    CHECK(refused.error().message.find("journal_damaged_log") != std::string::npos);
    CHECK(content(file).size() == whole.size());
  }
  SECTION("mended, it opens with everything") {
    std::ofstream(file, std::ios::binary) << whole;
    CHECK(all(*must_open(folder.path())) == std::vector<std::string>{"a", "b", "c", "d"});
  }
  SECTION("cut, it opens with what stands before the damage") {
    auto log = try_open(folder.path(), damaged_log::cut);
    REQUIRE(log);
    CHECK((*log)->list({}, 10)->empty());
    CHECK((*log)->open(one, tenant, node_a, {record("new")}, false) == 1);
  }
}

TEST_CASE("a damaged record quarantines its session and no other") {
  const temporary_folder folder;
  write_two_sessions(folder.path());
  {
    raw_database raw(folder.path());
    const auto key = journal_codec::record_key(one, 3);
    auto value = raw.get("records", key);
    value[20] = static_cast<char>(value[20] ^ 1);
    raw.put("records", key, value);
  }
  auto log = must_open(folder.path());
  // Not shortened: what stands before the damage can be read on its own, the whole cannot.
  CHECK(texts(*log->read(one, 1, 2)) == std::vector<std::string>{"a", "b"});
  CHECK(log->read(one, 1, 4).error().code == errc::quarantined);
  CHECK(log->counters().quarantined == 1);
  // From now on nothing else is told of it.
  CHECK(log->read(one, 1, 2).error().code == errc::quarantined);
  CHECK(log->head(one).error().code == errc::quarantined);
  CHECK(code(append_now(*log, more(one, 4, {record("e")}))) == errc::quarantined);
  CHECK(log->claim(one, 1, node_b, record("e")).error().code == errc::quarantined);
  const auto heads = log->list({}, 10);
  REQUIRE(heads->size() == 2);
  CHECK((*heads)[0].quarantined);
  CHECK_FALSE((*heads)[1].quarantined);
  CHECK(append_now(*log, more(two, 1, {record("y")})) == 2);
  // Erasing makes the name free again.
  REQUIRE(log->erase(one));
  CHECK(log->head(one).error().code == errc::not_found);
  CHECK(log->open(one, tenant, node_a, {record("new")}, false) == 1);
  CHECK(all(*log) == std::vector<std::string>{"new"});
}

TEST_CASE("a missing record quarantines its session, wherever it is missing") {
  const temporary_folder folder;
  write_two_sessions(folder.path());
  const auto missing = GENERATE(as<sequence_number>(), 1, 3, 4);
  {
    raw_database raw(folder.path());
    raw.remove("records", journal_codec::record_key(one, missing));
  }
  auto log = must_open(folder.path());
  CHECK(log->read(one, 1, 10).error().code == errc::quarantined);
  CHECK(all(*log, two) == std::vector<std::string>{"z"});
}

TEST_CASE("a damaged head quarantines its session, which can still be erased") {
  const temporary_folder folder;
  write_two_sessions(folder.path());
  {
    raw_database raw(folder.path());
    auto value = raw.get("heads", one.value);
    value[8] = static_cast<char>(value[8] ^ 1);
    raw.put("heads", one.value, value);
  }
  auto log = must_open(folder.path());
  const auto heads = log->list({}, 10);
  REQUIRE(heads->size() == 2);
  CHECK((*heads)[0].session == one);
  CHECK((*heads)[0].quarantined);
  CHECK(code(append_now(*log, more(one, 4, {record("e")}))) == errc::quarantined);
  CHECK(log->head(one).error().code == errc::quarantined);
  CHECK(code(log->open(one, tenant, node_a, {record("e")}, false)) == errc::quarantined);
  REQUIRE(log->erase(one));
  CHECK(log->open(one, tenant, node_a, {record("new")}, false) == 1);
}

TEST_CASE("a journal of a newer version is refused by what is new in it") {
  const temporary_folder folder;
  write_two_sessions(folder.path());
  SECTION("a format") {
    raw_database(folder.path()).put("default", "format", "2");
    const auto refused = try_open(folder.path());
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == errc::unsupported);
    CHECK(
      refused.error().message == "the journal has format 2; this version of godwit knows formats up to 1");
  }
  SECTION("a part") {
    raw_database(folder.path()).add_family("snapshots");
    const auto refused = try_open(folder.path());
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == errc::unsupported);
    CHECK(refused.error().message
          == "the journal was written by a newer version of godwit: it has a part \"snapshots\"");
  }
  SECTION("a format that is no number") {
    raw_database(folder.path()).put("default", "format", "x");
    CHECK(try_open(folder.path()).error().code == errc::corrupt);
  }
}

TEST_CASE("a journal that another process has open is refused") {
  const temporary_folder folder;
  const auto first = must_open(folder.path());
  const auto second = try_open(folder.path());
  REQUIRE_FALSE(second);
  CHECK(second.error().code == errc::conflict);
}

TEST_CASE("a folder that cannot be made or read gives one error") {
  const temporary_folder folder;
  CHECK(try_open(folder.path() / "no" / "parent").error().code == errc::io);
  std::ofstream(folder.path() / "file") << "x";
  CHECK_FALSE(try_open(folder.path() / "file"));
}

TEST_CASE("a damaged table quarantines the sessions in it, and the others are written on for ever") {
  const temporary_folder folder;
  constexpr std::size_t buffer = std::size_t{64} << 10;
  // Does not compress, so that a table is mostly records.
  std::mt19937 random(5);
  std::string filler(20'000, 'x');
  for (auto& character : filler)
    character = static_cast<char>('0' + random() % 64);
  {
    auto log = must_open(folder.path(), buffer);
    REQUIRE(log->open(one, tenant, node_a, {record("a" + filler)}, false));
    for (sequence_number i = 1; i < 12; ++i)
      REQUIRE(append_now(*log, more(one, i, {record("a" + filler)})));
    REQUIRE(log->open(two, tenant, node_a, {record("z")}, false));
    REQUIRE(log->open(before_one, tenant, node_a, {record("z")}, false));
  }
  // Opening writes what is left in the log to a table.
  must_open(folder.path(), buffer).reset();
  fs::path largest;
  for (const auto& file : files(folder.path(), ".sst"))
    if (largest.empty() || fs::file_size(file) > fs::file_size(largest))
      largest = file;
  REQUIRE(fs::file_size(largest) > 30'000);
  flip(largest, fs::file_size(largest) / 2);

  auto log = must_open(folder.path(), buffer);
  CHECK(log->read(one, 1, 100).error().code == errc::quarantined);
  // Until tables are merged, which meets the damage: RocksDB refuses all writes then, and the journal opens
  // it anew.
  const auto append_to = [&](const session_id& session) {
    for (int attempt = 0; attempt < 1000; ++attempt) {
      const auto head = log->head(session);
      const auto answer = head ? append_now(*log, more(session, head->sequence, {record("y" + filler)}))
                               : result<sequence_number>(fail(head));
      if (answer)
        return *answer;
      REQUIRE(answer.error().code == errc::io);
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    FAIL("the journal does not come back");
    return sequence_number{0};
  };
  // On both sides of the damage, so that new tables overlap the damaged one on whatever level it came to
  // stand.
  const auto append_next = [&] {
    append_to(before_one);
    return append_to(two);
  };
  sequence_number end = 1;
  // Tables are merged in the background, at any time: on a busy machine after many more records.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!log->counters().compaction_off && std::chrono::steady_clock::now() < deadline) {
    if (end > 3000)
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    end = append_next();
  }
  REQUIRE(log->counters().compaction_off);
  for (int i = 0; i < 30; ++i)
    end = append_next();
  CHECK(all(*log, two).size() == end);
  CHECK(log->read(one, 1, 100).error().code == errc::quarantined);
  REQUIRE(log->erase(one));
  CHECK(log->open(one, tenant, node_a, {record("new")}, false) == 1);
}
