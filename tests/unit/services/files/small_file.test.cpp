#include "services/files/small_file.hpp"

#include "tests/support/temporary_folder.hpp"

#include <catch2/catch.hpp>

#include <fstream>

using namespace godwit;

TEST_CASE("a small file is read whole, and an empty one too") {
  const temporary_folder folder;
  const auto path = folder.path() / "f";
  const std::string bytes("a\0b\r\n", 5);
  std::ofstream(path, std::ios::binary) << bytes;
  CHECK(read_small_file(path, "list") == bytes);
  std::ofstream(path, std::ios::binary | std::ios::trunc).close();
  CHECK(read_small_file(path, "list") == "");
}

TEST_CASE("a file that is not there, that is a folder, or that is too long is named with its kind") {
  const temporary_folder folder;
  const auto missing = read_small_file(folder.path() / "none", "list of nodes");
  REQUIRE_FALSE(missing);
  CHECK(missing.error().code == errc::not_found);
  CHECK(missing.error().message
        == "cannot read list of nodes " + (folder.path() / "none").string() + ": No such file or directory");
  CHECK(read_small_file(folder.path(), "list").error().code == errc::io);
  const auto path = folder.path() / "f";
  std::ofstream(path, std::ios::binary) << std::string(most_small_file_bytes, 'x');
  CHECK(read_small_file(path, "list")->size() == most_small_file_bytes);
  std::ofstream(path, std::ios::binary | std::ios::app) << 'x';
  const auto large = read_small_file(path, "list");
  REQUIRE_FALSE(large);
  CHECK(large.error().code == errc::invalid_argument);
  CHECK(large.error().message == "list " + path.string() + " is over 1 MiB long");
}
