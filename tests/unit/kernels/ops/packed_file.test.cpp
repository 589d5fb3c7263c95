#include "kernels/ops/cpu/packed_file.hpp"

#include "tests/support/quantize.hpp"
#include "tests/support/temporary_folder.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <fstream>
#include <iterator>

using namespace godwit;
using namespace godwit::ops::cpu;
using gguf::tensor_type;

namespace {

const std::string model(32, 'a');

packed_part some_part(tensor_type type, std::size_t outputs, std::uint32_t seed) {
  const auto bytes = random_blocks(type, outputs * 256, seed);
  const gguf::tensor tensor{.name = "w", .type = type, .shape = {256, outputs}, .data = bytes};
  packed_part part{packed_part::format_for(type), outputs, 256};
  for (std::size_t tile = 0; tile < part.tiles(); ++tile) {
    part.pack(tensor, tile);
  }
  return part;
}

void add(packed_file& to, std::string_view name, const packed_part& part) {
  to.add(name, part.format(), part.outputs(), part.inputs(), part.bytes());
}

std::span<const std::byte> find(const packed_file& in, std::string_view name, const packed_part& part) {
  return in.find(name, part.format(), part.outputs(), part.inputs());
}

std::vector<char> read_all(const std::filesystem::path& path) {
  std::ifstream file{path, std::ios::binary};
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_all(const std::filesystem::path& path, const std::vector<char>& bytes) {
  std::ofstream{path, std::ios::binary}.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

struct kept {
  temporary_folder folder;
  std::filesystem::path path = folder.path() / "model.packed";
  team threads{2};
  packed_part first = some_part(tensor_type::q4_1, 40, 1);
  packed_part second = some_part(tensor_type::q6_k, 33, 2);

  void write() {
    packed_file made{path, model, threads};
    add(made, "first", first);
    add(made, "second", second);
    REQUIRE(made.write(threads));
  }
};

} // namespace

TEST_CASE("packed weights are found again as they were, by name, format and shape") {
  kept made;
  {
    packed_file none{made.path, model, made.threads};
    CHECK_FALSE(none.usable());
    CHECK(none.why().empty());
    CHECK(none.write(made.threads));
    CHECK_FALSE(std::filesystem::exists(made.path));
  }
  made.write();
  const packed_file again{made.path, model, made.threads};
  CHECK(again.why().empty());
  REQUIRE(again.usable());
  CHECK(std::ranges::equal(find(again, "first", made.first), made.first.bytes()));
  CHECK(std::ranges::equal(find(again, "second", made.second), made.second.bytes()));
  CHECK(find(again, "third", made.first).empty());
  CHECK(find(again, "first", made.second).empty());
  CHECK(again.find("first", weight_format::q4_min, 41, 256).empty());
  // A part over them gives the same weights.
  const packed_part view{weight_format::q4_min, 40, 256, find(again, "first", made.first)};
  std::vector<float> expected(256);
  std::vector<float> row(256);
  made.first.unpack(39, expected);
  view.unpack(39, row);
  CHECK(row == expected);
  // Nothing else was left in the folder.
  CHECK(std::distance(std::filesystem::directory_iterator{made.folder.path()}, {}) == 1);
}

TEST_CASE("a file of another model, of another version or of something else is not used and says why") {
  kept made;
  made.write();
  const packed_file foreign{made.path, std::string(32, 'b'), made.threads};
  CHECK_FALSE(foreign.usable());
  CHECK(foreign.why() == "it belongs to another model");
  CHECK(find(foreign, "first", made.first).empty());
  auto bytes = read_all(made.path);
  bytes[8] = static_cast<char>(bytes[8] + 1);
  write_all(made.path, bytes);
  CHECK(packed_file{made.path, model, made.threads}.why() == "it is of another version");
  write_all(made.path, std::vector<char>(200, 'x'));
  CHECK(packed_file{made.path, model, made.threads}.why() == "it is something else");
  std::filesystem::remove(made.path);
  std::filesystem::create_directory(made.path);
  CHECK_FALSE(packed_file{made.path, model, made.threads}.why().empty());
  CHECK_FALSE(packed_file{made.path, model, made.threads}.usable());
}

TEST_CASE("a damaged file is never used, wherever the damage is, and can be made anew") {
  kept made;
  made.write();
  const auto good = read_all(made.path);
  const std::size_t end = good.size();
  std::vector<std::size_t> places{0, 9, 12, 20, 48, 56, 64, 70, 90, 110, 140, end - 1};
  for (std::size_t at = 0; at < end; at += 997) {
    places.push_back(at);
  }
  std::size_t unnoticed = 0;
  for (const auto at : places) {
    auto bytes = good;
    bytes[at] = static_cast<char>(bytes[at] ^ 0x10);
    write_all(made.path, bytes);
    const packed_file damaged{made.path, model, made.threads};
    // Only bytes between weights belong to nothing.
    unnoticed += damaged.usable() ? 1U : 0U;
    if (damaged.usable()) {
      CHECK(std::ranges::equal(find(damaged, "first", made.first), made.first.bytes()));
      CHECK(std::ranges::equal(find(damaged, "second", made.second), made.second.bytes()));
    } else {
      CHECK_FALSE(damaged.why().empty());
    }
  }
  CHECK(unnoticed < places.size() / 4);
  for (const std::size_t length :
    {std::size_t{0}, std::size_t{10}, std::size_t{63}, std::size_t{100}, end / 2, end - 1}) {
    write_all(made.path, {good.begin(), good.begin() + static_cast<std::ptrdiff_t>(length)});
    CHECK_FALSE(packed_file{made.path, model, made.threads}.usable());
  }
  made.write();
  CHECK(read_all(made.path) == good);
}

TEST_CASE("a folder that takes no files is told, and nothing is lost") {
  kept made;
  made.path = made.folder.path() / "missing" / "model.packed";
  packed_file nowhere{made.path, model, made.threads};
  add(nowhere, "first", made.first);
  const auto written = nowhere.write(made.threads);
  REQUIRE_FALSE(written);
  CHECK(written.error().code == errc::io);
}
