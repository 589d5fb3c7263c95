// kill -9 at any moment: what was acknowledged is there, in order, and nothing is half.

#include "tests/unit/services/journal/engines.hpp"

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <random>
#include <sstream>
#include <thread>

using namespace godwit;
using namespace godwit::test;

namespace {

/// Runs the writer for a while, kills it. @returns what it said
std::string run_and_kill(
  const std::filesystem::path& folder, std::size_t sessions, std::chrono::microseconds life) {
  std::array<int, 2> ends{};
  REQUIRE(::pipe(ends.data()) == 0);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  ::posix_spawn_file_actions_addclose(&actions, ends[0]);
  auto name = folder.string();
  auto count = std::to_string(sessions);
  std::string program = GODWIT_CRASH_WRITER;
  std::array<char*, 4> arguments{program.data(), name.data(), count.data(), nullptr};
  pid_t child = 0;
  REQUIRE(::posix_spawn(&child, program.c_str(), &actions, nullptr, arguments.data(), environ) == 0);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);

  std::string said;
  std::thread reader([&] {
    std::array<char, 4096> part{};
    for (;;) {
      const auto length = ::read(ends[0], part.data(), part.size());
      if (length <= 0)
        return;
      said.append(part.data(), static_cast<std::size_t>(length));
    }
  });
  std::this_thread::sleep_for(life);
  ::kill(child, SIGKILL);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  reader.join();
  ::close(ends[0]);
  // Not that it failed by itself.
  REQUIRE(WIFSIGNALED(status));
  return said;
}

} // namespace

TEST_CASE("a process that is killed at any moment has lost nothing that it acknowledged") {
  const temporary_folder folder;
  const auto path = folder.path() / "journal";
  constexpr std::size_t sessions = 4;
  std::mt19937 random(21);
  std::array<sequence_number, sessions> acknowledged{};
  for (int round = 0; round < 25; ++round) {
    // From while it opens to after many tables.
    std::istringstream said(
      run_and_kill(path, sessions, std::chrono::microseconds(1000 + random() % 400'000)));
    std::size_t number = 0;
    sequence_number sequence = 0;
    while (said >> number >> sequence)
      acknowledged.at(number) = std::max(acknowledged.at(number), sequence);

    rocks_journal_options options;
    options.folder = path;
    const auto log = rocks_journal::create(options);
    REQUIRE(log);
    for (std::size_t i = 0; i < sessions; ++i) {
      const auto head = (*log)->head(session(i));
      if (!head) {
        REQUIRE(head.error().code == errc::not_found);
        REQUIRE(acknowledged[i] == 0);
        continue;
      }
      REQUIRE(head->sequence >= acknowledged[i]);
      const auto records = (*log)->read(session(i), 1, 1'000'000);
      REQUIRE(records);
      REQUIRE(records->size() == head->sequence);
      for (sequence_number at = 1; at <= records->size(); ++at)
        REQUIRE(text((*records)[at - 1]) == std::to_string(at) + std::string(at * 37 % 1500, '.'));
      // Appends are whole: from an end at s the next one is s + s % 5 + 1.
      sequence_number end = 1;
      while (end < head->sequence)
        end += end % 5 + 1;
      REQUIRE(end == head->sequence);
    }
  }
  for (const auto count : acknowledged)
    CHECK(count > 100);
}
