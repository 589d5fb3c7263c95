#include "services/store/data_directory.hpp"

#include "tests/support/temporary_folder.hpp"

#include <catch2/catch.hpp>

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <fstream>

using namespace godwit;

namespace {

const node_name node_a("a");
const node_name node_b("b");

/// Opens in a child process that is not root, since root may write everywhere. @returns the code of the
/// refusal, 0 if there was none
int open_as_nobody(const std::filesystem::path& path) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (::geteuid() == 0 && (::setgid(65534) != 0 || ::setuid(65534) != 0))
      ::_exit(255);
    const auto made = data_directory::open(path, node_a);
    ::_exit(made ? 0 : static_cast<int>(made.error().code));
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  return WEXITSTATUS(status);
}

} // namespace

TEST_CASE("a data directory is made with its parents, for its owner only") {
  const temporary_folder folder;
  const auto path = folder.path() / "x" / "y";
  const auto made = data_directory::open(path, node_a);
  REQUIRE(made);
  CHECK(made->path() == path);
  struct stat info {};
  REQUIRE(::stat(path.c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0700);
  std::ifstream lock(path / "lock");
  std::string line;
  std::getline(lock, line);
  CHECK(line == "node a, process " + std::to_string(::getpid()));
}

TEST_CASE("a data directory serves one node at a time") {
  const temporary_folder folder;
  {
    const auto first = data_directory::open(folder.path(), node_a);
    REQUIRE(first);
    const auto second = data_directory::open(folder.path(), node_b);
    REQUIRE_FALSE(second);
    CHECK(second.error().code == errc::conflict);
    CHECK(second.error().message
          == "the data directory " + folder.path().string() + " is in use by another node (node a, process "
               + std::to_string(::getpid()) + ")");
  }
  CHECK(data_directory::open(folder.path(), node_b));
}

TEST_CASE("a node that was killed has given its directory up") {
  const temporary_folder folder;
  std::array<int, 2> ready{};
  REQUIRE(::pipe(ready.data()) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto held = data_directory::open(folder.path(), node_a);
    const char sign = held ? '1' : '0';
    if (::write(ready[1], &sign, 1) != 1)
      ::_exit(1);
    for (;;)
      ::pause();
  }
  char sign = 0;
  REQUIRE(::read(ready[0], &sign, 1) == 1);
  REQUIRE(sign == '1');
  CHECK(data_directory::open(folder.path(), node_b).error().code == errc::conflict);
  ::kill(child, SIGKILL);
  REQUIRE(::waitpid(child, nullptr, 0) == child);
  CHECK(data_directory::open(folder.path(), node_b));
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST_CASE("what is not a directory is refused with one sentence") {
  const temporary_folder folder;
  const auto file = folder.path() / "file";
  std::ofstream(file) << "x";
  for (const auto& path : {file, file / "below"}) {
    const auto made = data_directory::open(path, node_a);
    REQUIRE_FALSE(made);
    CHECK(made.error().code == errc::invalid_argument);
    CHECK(made.error().message == "the data directory " + path.string() + " is not a directory");
    CHECK(made.error().param == "data");
  }
}

TEST_CASE("a directory that cannot be written is refused, with or without a lock file") {
  const temporary_folder folder;
  std::filesystem::permissions(folder.path(), std::filesystem::perms(0555));
  CHECK(open_as_nobody(folder.path()) == static_cast<int>(errc::permission));
  CHECK(open_as_nobody(folder.path() / "below") == static_cast<int>(errc::permission));
  std::filesystem::permissions(folder.path(), std::filesystem::perms(0755));
  std::ofstream(folder.path() / "lock") << "";
  std::filesystem::permissions(folder.path() / "lock", std::filesystem::perms(0666));
  std::filesystem::permissions(folder.path(), std::filesystem::perms(0555));
  CHECK(open_as_nobody(folder.path()) == static_cast<int>(errc::permission));
  std::filesystem::permissions(folder.path(), std::filesystem::perms(0755));
}

TEST_CASE("a directory goes with the object that holds it") {
  const temporary_folder folder;
  auto first = data_directory::open(folder.path(), node_a);
  REQUIRE(first);
  auto moved = std::move(*first);
  CHECK_FALSE(data_directory::open(folder.path(), node_b));
  moved = std::move(*data_directory::open(folder.path() / "other", node_a));
  first = fail(errc::internal, "");
  CHECK(moved.path() == folder.path() / "other");
}
