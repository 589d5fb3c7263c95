#include "services/coldstore/inventory.hpp"

#include "services/coldstore/cold_database.hpp"
#include "services/coldstore/key_file.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/unit/services/coldstore/texts.hpp"

#include <catch2/catch.hpp>

#include <sys/mount.h>

#include <atomic>
#include <fstream>
#include <iterator>

using namespace godwit;
using namespace godwit::test;
namespace fs = std::filesystem;

namespace {

std::string content(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// 20 blocks of acme, 30 of bolt, in files that they share.
void write_two_tenants(const fs::path& folder) {
  const auto store = open_cold_store(small_store(folder));
  REQUIRE(store);
  const text one(1, 20, "acme");
  const text two(2, 30, "bolt");
  for (std::size_t i = 0; i < 20; i += 5) {
    auto blocks = one.blocks(i, i + 5);
    for (const auto& block : two.blocks(i, i + 5))
      blocks.push_back(block);
    REQUIRE((*store)->write(blocks));
  }
  REQUIRE((*store)->write(two.blocks(20)));
}

/// Whether the pages of a block lie anywhere in the folder.
bool on_disk(const fs::path& folder, const std::vector<std::byte>& pages) {
  const std::string piece(reinterpret_cast<const char*>(pages.data()), 64);
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.is_regular_file() && content(entry.path()).find(piece) != std::string::npos)
      return true;
  return false;
}

} // namespace

TEST_CASE("the inventory tells tenants and models apart") {
  const temporary_folder folder;
  write_two_tenants(folder.path());
  {
    auto options = small_store(folder.path());
    options.scope.fingerprint = "another model";
    const auto store = open_cold_store(options);
    REQUIRE((*store)->write(text(3, 7, "acme", options).blocks()));
  }
  const auto found = list_cold(folder.path());
  REQUIRE(found);
  CHECK(found->all.blocks == 57);
  CHECK(found->all.bytes == 57 * small_record);
  REQUIRE(found->tenants.size() == 2);
  CHECK(found->tenants.at("acme").blocks == 27);
  CHECK(found->tenants.at("bolt").blocks == 30);
  CHECK(found->tenants.at("bolt").bytes == 30 * small_record);
  REQUIRE(found->models.size() == 2);
  CHECK(found->models.begin()->first.size() == 32);
  CHECK(found->models.begin()->second.blocks + found->models.rbegin()->second.blocks == 57);
  CHECK(found->disk_bytes >= 57 * small_record);
  CHECK(found->damaged == 0);
}

TEST_CASE("verifying finds the damaged block and deletes it") {
  const temporary_folder folder;
  write_two_tenants(folder.path());
  CHECK(verify_cold(folder.path())->good.blocks == 50);
  const text one(1, 20, "acme");
  const std::string piece(reinterpret_cast<const char*>(one.pages[3].data()), 64);
  bool changed = false;
  for (const auto& entry : fs::directory_iterator(folder.path())) {
    auto bytes = content(entry.path());
    const auto at = bytes.find(piece);
    if (entry.path().extension() != ".blob" || at == std::string::npos)
      continue;
    bytes[at] = static_cast<char>(bytes[at] ^ 4);
    std::ofstream(entry.path(), std::ios::binary) << bytes;
    changed = true;
  }
  REQUIRE(changed);
  const auto verdict = verify_cold(folder.path());
  REQUIRE(verdict);
  CHECK(verdict->damaged == 1);
  CHECK(verdict->good.blocks == 49);
  CHECK(verdict->good.bytes == 49 * small_record);
  CHECK(verify_cold(folder.path())->damaged == 0);
  const auto store = open_cold_store(small_store(folder.path()));
  CHECK((*store)->known(one.names) == 3);
}

TEST_CASE("clearing one tenant leaves nothing of it on disk, and all of the other") {
  const temporary_folder folder;
  write_two_tenants(folder.path());
  const text one(1, 20, "acme");
  const text two(2, 30, "bolt");
  REQUIRE(on_disk(folder.path(), one.pages[7]));
  const auto gone = clear_cold(folder.path(), "acme");
  REQUIRE(gone);
  CHECK(gone->blocks == 20);
  CHECK(gone->bytes == 20 * small_record);
  for (const auto& pages : one.pages)
    CHECK_FALSE(on_disk(folder.path(), pages));
  const auto store = open_cold_store(small_store(folder.path()));
  CHECK((*store)->known(one.names) == 0);
  CHECK(read_right(**store, two) == 30);
  CHECK(clear_cold(folder.path(), "nobody").error().code == errc::conflict);
}

TEST_CASE("clearing a tenant again finishes what a run that died had begun") {
  const bool merged = GENERATE(false, true);
  const bool verify = GENERATE(false, true);
  const temporary_folder folder;
  write_two_tenants(folder.path());
  const text one(1, 20, "acme");
  {
    const auto database = cold_database::open(small_store(folder.path()));
    REQUIRE(database);
    const auto notes = (*database)->read_notes();
    REQUIRE(notes);
    rocksdb::WriteBatch batch;
    for (const auto& note : notes->good)
      if (note.tenant == "acme")
        cold_database::drop(batch, note.place, note.identity);
    REQUIRE((*database)->write(batch).ok());
    std::atomic<bool> never{false};
    if (merged)
      REQUIRE((*database)->merge(0, never).ok());
  }
  REQUIRE(on_disk(folder.path(), one.pages[7]));
  if (verify)
    CHECK(verify_cold(folder.path())->good.blocks == 30);
  else
    CHECK(clear_cold(folder.path(), "acme")->blocks == 0);
  for (const auto& pages : one.pages)
    CHECK_FALSE(on_disk(folder.path(), pages));
  CHECK(list_cold(folder.path())->all.blocks == 30);
}

TEST_CASE("clearing all leaves the key, and a store that works") {
  const temporary_folder folder;
  write_two_tenants(folder.path());
  const auto key = content(folder.path() / "identity-key");
  CHECK(clear_cold(folder.path(), {})->blocks == 50);
  CHECK(content(folder.path() / "identity-key") == key);
  CHECK(std::distance(fs::directory_iterator(folder.path()), {}) <= 2);
  CHECK(list_cold(folder.path())->all.blocks == 0);
  write_two_tenants(folder.path());
  CHECK(clear_cold(folder.path(), "nobody")->blocks == 0);
  CHECK(list_cold(folder.path())->all.blocks == 50);
}

TEST_CASE("while a node has the store, every command is refused by one sentence") {
  const temporary_folder folder;
  const auto store = open_cold_store(small_store(folder.path()));
  REQUIRE(store);
  const auto sentence =
    "a node is using the cold store in " + folder.path().string() + "; stop it and try again";
  CHECK(list_cold(folder.path()).error().message == sentence);
  CHECK(verify_cold(folder.path()).error().message == sentence);
  CHECK(clear_cold(folder.path(), {}).error().message == sentence);
  CHECK(clear_cold(folder.path(), "acme").error().message == sentence);
}

TEST_CASE("where there is no cold store, nothing is made or deleted") {
  const temporary_folder folder;
  std::ofstream(folder.path() / "CURRENT") << "something else";
  CHECK(list_cold(folder.path()).error().code == errc::not_found);
  CHECK(verify_cold(folder.path()).error().code == errc::not_found);
  CHECK(clear_cold(folder.path(), {}).error().code == errc::not_found);
  CHECK(clear_cold(folder.path() / "none", {}).error().code == errc::not_found);
  CHECK(std::distance(fs::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("a store that is damaged beyond records can be cleared") {
  const temporary_folder folder;
  write_two_tenants(folder.path());
  for (const auto& entry : fs::directory_iterator(folder.path()))
    if (entry.path().filename().string().starts_with("MANIFEST")) {
      auto bytes = content(entry.path());
      bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
      std::ofstream(entry.path(), std::ios::binary) << bytes;
    }
  CHECK(list_cold(folder.path()).error().code == errc::corrupt);
  CHECK(clear_cold(folder.path(), "acme").error().code == errc::corrupt);
  const auto gone = clear_cold(folder.path(), {});
  REQUIRE(gone);
  CHECK_FALSE(gone->counted);
  CHECK(list_cold(folder.path())->all.blocks == 0);
}

TEST_CASE("a store of a newer format is not emptied, since it is not damaged") {
  const temporary_folder folder;
  write_two_tenants(folder.path());
  {
    const auto database = cold_database::open(small_store(folder.path()));
    REQUIRE(database);
    rocksdb::WriteBatch batch;
    REQUIRE(batch.Put("format", "99").ok());
    REQUIRE((*database)->write(batch).ok());
  }
  CHECK(clear_cold(folder.path(), {}).error().code == errc::unsupported);
  CHECK(on_disk(folder.path(), text(1, 20, "acme").pages[7]));
}

TEST_CASE("a read-only disk is called that, and not a store in use") {
  const temporary_folder folder;
  const auto place = folder.path() / "disk";
  fs::create_directory(place);
  if (::mount("tmpfs", place.c_str(), "tmpfs", 0, "size=8m") != 0) {
    WARN("no file system can be mounted here; not tested");
    return;
  }
  write_two_tenants(place / "cold");
  CHECK(::mount("tmpfs", place.c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, "size=8m") == 0);
  for (const auto& tenant : {std::optional<std::string>(), std::optional<std::string>("acme")}) {
    const auto refused = clear_cold(place / "cold", tenant);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == errc::permission);
  }
  ::umount2(place.c_str(), MNT_DETACH);
}
