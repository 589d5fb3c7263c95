#include "services/coldstore/key_file.hpp"

#include "tests/support/temporary_folder.hpp"

#include <catch2/catch.hpp>

#include <fstream>
#include <iterator>

using namespace godwit;
namespace fs = std::filesystem;

namespace {

std::string key_in(const fs::path& folder) {
  const auto key = cold_identity_key(folder);
  REQUIRE(key);
  return {reinterpret_cast<const char*>(key->bytes().data()), key->bytes().size()};
}

std::string content(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

} // namespace

TEST_CASE("the key is made once, is nobody else's to read, and is another one in another folder") {
  const temporary_folder folder;
  const auto store = folder.path() / "cold";
  CHECK_FALSE(is_cold_store(store));
  const auto key = key_in(store);
  CHECK(is_cold_store(store));
  CHECK(key_in(store) == key);
  CHECK(fs::status(store / "identity-key").permissions() == (fs::perms::owner_read | fs::perms::owner_write));
  CHECK(fs::status(store).permissions() == fs::perms::owner_all);
  CHECK(key_in(folder.path() / "other") != key);
  // Nothing of the making stays.
  CHECK(std::distance(fs::directory_iterator(store), fs::directory_iterator()) == 1);
}

TEST_CASE("a key that others may read is closed to them") {
  const temporary_folder folder;
  const auto key = key_in(folder.path());
  fs::permissions(folder.path() / "identity-key", fs::perms(0644));
  CHECK(key_in(folder.path()) == key);
  CHECK(fs::status(folder.path() / "identity-key").permissions() == fs::perms(0600));
}

TEST_CASE("a key with any bit changed, or of another length, is replaced by one that stays") {
  const temporary_folder folder;
  const auto file = folder.path() / "identity-key";
  const auto key = key_in(folder.path());
  const auto whole = content(file);
  REQUIRE(whole.size() == 80);
  for (std::size_t bit = 0; bit < whole.size() * 8; bit += 13) {
    auto changed = whole;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << bit % 8));
    std::ofstream(file, std::ios::binary) << changed;
    const auto other = key_in(folder.path());
    REQUIRE(other != key);
    REQUIRE(key_in(folder.path()) == other);
  }
  for (const std::size_t size : {std::size_t{0}, std::size_t{79}}) {
    std::ofstream(file, std::ios::binary) << whole.substr(0, size);
    CHECK(key_in(folder.path()) != key);
  }
  std::ofstream(file, std::ios::binary) << whole;
  CHECK(key_in(folder.path()) == key);
}

TEST_CASE("a folder that is something else is refused") {
  const temporary_folder folder;
  std::ofstream(folder.path() / "CURRENT") << "MANIFEST-000001\n";
  CHECK(cold_identity_key(folder.path()).error().code == errc::invalid_argument);
  CHECK_FALSE(fs::exists(folder.path() / "identity-key"));
  std::ofstream(folder.path() / "file") << "x";
  CHECK(cold_identity_key(folder.path() / "file").error().code == errc::invalid_argument);
  CHECK(cold_identity_key(folder.path() / "no" / "parent").error().code == errc::io);
  CHECK(cold_identity_key("/proc/cold").error().code != errc::internal);
}
