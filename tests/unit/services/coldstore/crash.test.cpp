// kill -9 at every point of the write path, and at any moment: what was written is there, counters are true,
// no page is wrong, and the next write is fine.

#include "services/coldstore/cold_index.hpp"
#include "tests/support/asked_number.hpp"
#include "tests/support/temporary_folder.hpp"

#include "tests/unit/services/coldstore/crash_plan.hpp"

#include <catch2/catch.hpp>

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <thread>

using namespace godwit;
using namespace godwit::test;
namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t roomy = 1 << 30;

struct ending {
  std::size_t steps = 0; ///< that were written, as it said
  bool killed = false;
  int exit = 0;
};

/// @param life after which it is killed from outside; zero: never
ending run(const fs::path& folder, std::uint64_t limit, int point, int count, std::size_t steps,
  std::chrono::microseconds life = {}) {
  std::array<int, 2> ends{};
  REQUIRE(::pipe(ends.data()) == 0);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  ::posix_spawn_file_actions_addclose(&actions, ends[0]);
  std::vector<std::string> words{GODWIT_COLD_CRASH_WRITER, folder.string(), std::to_string(limit),
    std::to_string(point), std::to_string(count), std::to_string(steps)};
  std::vector<char*> arguments;
  for (auto& word : words)
    arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t child = 0;
  REQUIRE(::posix_spawn(&child, words[0].c_str(), &actions, nullptr, arguments.data(), environ) == 0);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  std::thread killer;
  if (life.count() != 0)
    killer = std::thread([&] {
      std::this_thread::sleep_for(life);
      ::kill(child, SIGKILL);
    });
  std::string said;
  std::array<char, 4096> part{};
  for (ssize_t length = 1; length > 0;) {
    length = ::read(ends[0], part.data(), part.size());
    said.append(part.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
  }
  ::close(ends[0]);
  // Not waited for before the killer is done, so that the number stays this process's.
  if (killer.joinable())
    killer.join();
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  ending out;
  out.steps = static_cast<std::size_t>(std::count(said.begin(), said.end(), '\n'));
  out.killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  out.exit = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
  if (!out.killed)
    REQUIRE(out.exit == 0);
  return out;
}

std::vector<text> all_texts() {
  std::vector<text> made;
  for (std::uint32_t i = 0; i < crash_texts; ++i)
    made.push_back(crash_text(i));
  return made;
}

/// How many blocks of each text are there after so many steps, by a store in memory that starts empty.
std::vector<std::size_t> expected_after(
  std::size_t steps, std::uint64_t limit, const std::vector<text>& all) {
  cold_index index(limit);
  for (const auto& [number, until] : crash_steps(steps)) {
    index.plan(all[number].blocks(0, until));
    index.confirm();
  }
  std::vector<std::size_t> known;
  for (const auto& one : all)
    known.push_back(index.known(one.names));
  return known;
}

std::vector<std::size_t> known_in(const cold_store& store, const std::vector<text>& all) {
  std::vector<std::size_t> known;
  for (const auto& one : all)
    known.push_back(store.known(one.names));
  return known;
}

std::unique_ptr<cold_store> must_open(const fs::path& folder, std::uint64_t limit) {
  auto made = open_cold_store(small_store(folder, limit));
  if (!made)
    FAIL(made.error().message);
  return std::move(*made);
}

/// What must hold of a store whatever happened before.
void check_sound(cold_store& store, std::uint64_t limit, const std::vector<text>& all) {
  const auto stats = store.stats();
  CHECK(stats.blocks == known_of(store, all));
  CHECK(stats.bytes == stats.blocks * small_record);
  CHECK(stats.bytes <= limit);
  CHECK(stats.damaged == 0);
  CHECK_FALSE(stats.degraded);
  for (const auto& one : all)
    CHECK(read_right(store, one) == store.known(one.names));
}

void check_next_write(const fs::path& folder, std::uint64_t limit) {
  const text next(1000, 20);
  {
    const auto store = must_open(folder, limit);
    REQUIRE(store->write(next.blocks()));
    CHECK(read_right(*store, next) == 20);
  }
  CHECK(read_right(*must_open(folder, limit), next) == 20);
}

} // namespace

TEST_CASE("killed at each point of a write, a store has all that was written before, and the write whole or "
          "not at all") {
  const auto all = all_texts();
  using enum cold_point;
  const auto point = GENERATE(planned, logged, blob_written, table_written, committed);
  // With room for all, and while each write evicts.
  const auto limit = GENERATE(roomy, 150 * small_record);
  for (const int count : {1, 2, 5, 17, 25}) {
    INFO("point " << static_cast<int>(point) << " count " << count << " limit " << limit);
    const temporary_folder folder;
    const auto end = run(folder.path(), limit, static_cast<int>(point), count, 120);
    REQUIRE(end.killed);
    auto store = must_open(folder.path(), limit);
    const auto known = known_in(*store, all);
    const auto before = expected_after(end.steps, limit, all);
    const auto after = expected_after(end.steps + 1, limit, all);
    CHECK((known == before || known == after));
    // A file that nobody names yet is not there.
    if (point == planned)
      CHECK(known == before);
    if (point == committed)
      CHECK(known == after);
    check_sound(*store, limit, all);
    store.reset();
    check_next_write(folder.path(), limit);
  }
}

TEST_CASE("killed while tables are merged and pages moved, a store has all that was written before") {
  const auto all = all_texts();
  using enum cold_point;
  const auto point = GENERATE(tidying, blob_moved, table_merged, tidied);
  const std::uint64_t limit = 150 * small_record;
  for (const int count : {1, 2, 3}) {
    INFO("point " << static_cast<int>(point) << " count " << count);
    const temporary_folder folder;
    const auto end = run(folder.path(), limit, static_cast<int>(point), count, 1200);
    REQUIRE(end.killed);
    auto store = must_open(folder.path(), limit);
    const auto known = known_in(*store, all);
    CHECK(
      (known == expected_after(end.steps, limit, all) || known == expected_after(end.steps + 1, limit, all)));
    check_sound(*store, limit, all);
    store.reset();
    check_next_write(folder.path(), limit);
  }
}

TEST_CASE("killed while a damaged block is deleted, a store has the others") {
  const auto all = all_texts();
  const temporary_folder folder;
  REQUIRE(run(folder.path(), roomy, -1, 0, 60).steps == 60);
  // Somewhere in pages.
  for (const auto& entry : fs::directory_iterator(folder.path()))
    if (entry.path().extension() == ".blob") {
      std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
      file.seekg(5000);
      const auto byte = static_cast<char>(file.get() ^ 1);
      file.seekp(5000);
      file.put(byte);
      break;
    }
  REQUIRE(run(folder.path(), roomy, static_cast<int>(cold_point::dropping), 1, 0).killed);
  const auto expected = expected_after(60, roomy, all);
  auto store = must_open(folder.path(), roomy);
  CHECK(known_in(*store, all) == expected);
  std::uint64_t missing = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto count = read_right(*store, all[i]);
    REQUIRE(count <= expected[i]);
    missing += count < expected[i] ? 1U : 0U;
  }
  CHECK(missing == 1);
  CHECK(store->stats().damaged == 1);
  for (std::size_t i = 0; i < all.size(); ++i) {
    REQUIRE(store->write(all[i].blocks(0, expected[i])));
    CHECK(read_right(*store, all[i]) == expected[i]);
  }
}

TEST_CASE("killed at any moment, again and again, a store is sound") {
  auto all = all_texts();
  const temporary_folder folder;
  std::mt19937 random(5);
  const auto rounds = static_cast<int>(asked_number("GODWIT_TEST_CRASHES", 12));
  const std::uint64_t limit = 200 * small_record;
  for (int round = 0; round < rounds; ++round) {
    run(folder.path(), limit, -1, 0, 5000, std::chrono::microseconds(1000 + random() % 900'000));
    const auto store = must_open(folder.path(), limit);
    check_sound(*store, limit, all);
    all.emplace_back(2000 + static_cast<std::uint32_t>(round), 10);
    REQUIRE(store->write(all.back().blocks()));
    CHECK(read_right(*store, all.back()) == 10);
    CHECK(store->stats().blocks == known_of(*store, all));
  }
}
