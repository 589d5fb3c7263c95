#include "kernels/gguf/file.hpp"
#include "kernels/gguf/writer.hpp"

#include <catch2/catch.hpp>

#include <cstring>
#include <random>
#include <string>

using namespace godwit;
using namespace godwit::gguf;

namespace {

/// Bytes put one after the other.
class raw {
 public:
  template <class T>
  raw& number(T value) {
    const auto bytes = std::as_bytes(std::span(&value, 1));
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return *this;
  }
  raw& text(std::string_view value) {
    number(static_cast<std::uint64_t>(value.size()));
    return letters(value);
  }
  raw& letters(std::string_view value) {
    const auto bytes = std::as_bytes(std::span(value));
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return *this;
  }
  raw& zeros(std::size_t count) {
    bytes_.resize(bytes_.size() + count);
    return *this;
  }
  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

raw header(std::uint64_t tensors, std::uint64_t keys, std::uint32_t version = 3) {
  raw made;
  made.letters("GGUF").number(version).number(tensors).number(keys);
  return made;
}

/// A file of one tensor "w", given as it stands in the table, and `data` bytes after the padding.
std::vector<std::byte> one_tensor(
  std::vector<std::uint64_t> shape, std::uint32_t type, std::uint64_t offset, std::size_t data) {
  auto made = header(1, 0);
  made.text("w").number(static_cast<std::uint32_t>(shape.size()));
  for (const auto extent : shape)
    made.number(extent);
  made.number(type).number(offset);
  made.zeros((32 - made.bytes().size() % 32) % 32 + data);
  return made.bytes();
}

/// The message that refuses the bytes; "" if they are taken.
std::string refusal(std::span<const std::byte> bytes, errc code = errc::corrupt) {
  const auto made = file::parse(bytes);
  if (made)
    return "";
  CHECK(made.error().code == code);
  CHECK(made.error().message.find('\n') == std::string::npos);
  CHECK(made.error().message.size() < 300);
  return made.error().message;
}

using Catch::Matchers::Contains;

constexpr auto huge = std::uint64_t{1} << 60;

} // namespace

TEST_CASE("bytes that are no GGUF file are refused") {
  CHECK_THAT(refusal({}), Contains("not a GGUF file"));
  CHECK_THAT(refusal(raw().letters("GGU").bytes()), Contains("not a GGUF file"));
  CHECK_THAT(refusal(raw().letters("GGML").zeros(100).bytes()), Contains("not a GGUF file"));
}

TEST_CASE("other versions and the other byte order are named") {
  CHECK_THAT(refusal(header(0, 0, 1).bytes(), errc::unsupported), Contains("version 1;"));
  CHECK_THAT(refusal(header(0, 0, 4).bytes(), errc::unsupported), Contains("version 4;"));
  CHECK_THAT(refusal(header(0, 0, 0).bytes(), errc::unsupported), Contains("version 0;"));
  CHECK_THAT(refusal(header(0, 0, 0x03000000U).bytes(), errc::unsupported), Contains("big-endian"));
}

TEST_CASE("absurd counts are refused before memory is taken") {
  CHECK_THAT(refusal(header(huge, 0).bytes()), Contains("claims") && Contains("tensors"));
  CHECK_THAT(refusal(header(65'537, 0).bytes()), Contains("65537 tensors"));
  CHECK_THAT(refusal(header(0, huge).bytes()), Contains("metadata keys"));
  CHECK_THAT(refusal(header(0, 65'537).bytes()), Contains("65537 metadata keys"));
  CHECK_THAT(refusal(header(0, 65'536).bytes()), Contains("ends within metadata key 0"));

  const auto array_of = [](std::uint32_t type, std::uint64_t count) {
    return header(0, 1).text("k").number(std::uint32_t{9}).number(type).number(count).zeros(64).bytes();
  };
  CHECK_THAT(refusal(array_of(8, huge)), Contains("claims an array"));
  CHECK_THAT(refusal(array_of(0, (1U << 24) + 1)), Contains("claims an array"));
  for (const auto type : {0U, 1U, 2U, 3U, 4U, 5U, 6U, 7U, 8U, 10U, 11U, 12U})
    CHECK_THAT(refusal(array_of(type, 65)), Contains("ends within metadata key \"k\""));
}

TEST_CASE("strings longer than allowed or than the file are refused") {
  CHECK_THAT(refusal(header(0, 1).number(huge).bytes()), Contains("string of"));
  CHECK_THAT(refusal(header(0, 1).number(std::uint64_t{65'536}).bytes()), Contains("more than 65535"));
  CHECK_THAT(
    refusal(header(0, 1).number(std::uint64_t{10}).letters("short").bytes()), Contains("ends within"));
  const auto value_of = [](std::uint64_t size) {
    return header(0, 1).text("k").number(std::uint32_t{8}).number(size).zeros(8).bytes();
  };
  CHECK_THAT(refusal(value_of(9)), Contains("ends within metadata key \"k\""));
  CHECK_THAT(refusal(value_of((16U << 20) + 1)), Contains("more than 16777216"));
  CHECK(refusal(value_of(8)) == "");
  CHECK_THAT(refusal(header(1, 0).number(std::uint64_t{256}).zeros(300).bytes()), Contains("more than 255"));
}

TEST_CASE("names must be there, printable and different") {
  CHECK_THAT(
    refusal(header(0, 1).text("").number(std::uint32_t{0}).zeros(1).bytes()), Contains("metadata key 0"));
  CHECK_THAT(
    refusal(header(0, 1).text("a\nb").number(std::uint32_t{0}).zeros(1).bytes()), Contains("unprintable"));
  CHECK_THAT(refusal(header(1, 0).text("").zeros(64).bytes()), Contains("name for tensor 0"));
  CHECK_THAT(refusal(header(1, 0).text("\x7f").zeros(64).bytes()), Contains("unprintable"));
  CHECK_THAT(refusal(writer().add("b", true).add("a", 1.0F).add("b", 2.0F).finish()),
    Contains("metadata key \"b\" twice"));
  const std::vector<std::byte> zero(4);
  CHECK_THAT(refusal(writer()
                       .add_tensor("v", tensor_type::f32, {1}, zero)
                       .add_tensor("w", tensor_type::f32, {1}, zero)
                       .add_tensor("v", tensor_type::f32, {1}, zero)
                       .finish()),
    Contains("tensor \"v\" twice"));
}

TEST_CASE("messages show long names only in part") {
  const std::string name(5000, 'x');
  CHECK(refusal(writer().add(name, true).add(name, true).finish()).size() < 150);
}

TEST_CASE("unknown and nested value types are refused") {
  CHECK_THAT(refusal(header(0, 1).text("k").number(std::uint32_t{13}).zeros(64).bytes()),
    Contains("unknown value type 13"));
  const auto array_of = [](std::uint32_t type) {
    return header(0, 1)
      .text("k")
      .number(std::uint32_t{9})
      .number(type)
      .number(std::uint64_t{1})
      .zeros(64)
      .bytes();
  };
  CHECK_THAT(refusal(array_of(9)), Contains("array of arrays"));
  CHECK_THAT(refusal(array_of(13)), Contains("unknown item type 13"));
}

TEST_CASE("booleans are 0 or 1") {
  CHECK_THAT(refusal(header(0, 1).text("k").number(std::uint32_t{7}).number(std::uint8_t{2}).bytes()),
    Contains("neither 0 nor 1"));
  CHECK_THAT(refusal(header(0, 1)
                       .text("k")
                       .number(std::uint32_t{9})
                       .number(std::uint32_t{7})
                       .number(std::uint64_t{1})
                       .number(std::uint8_t{255})
                       .bytes()),
    Contains("neither 0 nor 1"));
}

TEST_CASE("an alignment must be a power of two in range") {
  for (const auto wrong : {0U, 1U, 4U, 24U, 131'072U})
    CHECK_THAT(refusal(writer().add("general.alignment", wrong).finish()), Contains("alignment"));
  CHECK_THAT(refusal(writer().add("general.alignment", "32").finish()), Contains("general.alignment"));
  CHECK(refusal(writer().add("general.alignment", 64U).finish()) == "");
}

TEST_CASE("tensor shapes are checked before they are multiplied") {
  CHECK(refusal(one_tensor({4, 2}, 0, 0, 32)) == "");
  CHECK_THAT(refusal(one_tensor({}, 0, 0, 32)), Contains("0 dimensions"));
  CHECK_THAT(refusal(one_tensor({1, 1, 1, 1, 1}, 0, 0, 32)), Contains("5 dimensions"));
  CHECK_THAT(refusal(one_tensor({4, 0}, 0, 0, 32)), Contains("dimension of 0"));
  CHECK_THAT(refusal(one_tensor({huge, huge}, 0, 0, 32)), Contains("overflow"));
  CHECK_THAT(
    refusal(one_tensor({std::uint64_t{1} << 32, std::uint64_t{1} << 32}, 0, 0, 32)), Contains("overflow"));
  CHECK_THAT(refusal(one_tensor({std::uint64_t{1} << 62}, 0, 0, 32)), Contains("overflow"));
  CHECK_THAT(refusal(one_tensor({std::uint64_t{1} << 61}, 0, 0, 32)), Contains("ends within"));
  CHECK_THAT(refusal(one_tensor({16}, 2, 0, 32)), Contains("not whole Q4_0 blocks"));
  CHECK_THAT(refusal(one_tensor({128}, 12, 0, 256)), Contains("not whole Q4_K blocks"));
}

TEST_CASE("tensors of other types are unsupported, by number") {
  for (const auto type : {4U, 9U, 24U, 0x80000000U})
    CHECK_THAT(refusal(one_tensor({32}, type, 0, 256), errc::unsupported),
      Contains("type number " + std::to_string(type)));
}

TEST_CASE("tensor data must lie in the file, aligned, and apart") {
  CHECK_THAT(refusal(one_tensor({8}, 0, 1, 64)), Contains("unaligned"));
  CHECK_THAT(refusal(one_tensor({8}, 0, 64, 64)), Contains("ends within the data of tensor \"w\""));
  CHECK_THAT(refusal(one_tensor({8}, 0, 96, 64)), Contains("ends within the data"));
  CHECK_THAT(refusal(one_tensor({8}, 0, ~std::uint64_t{31}, 64)), Contains("ends within the data"));
  CHECK_THAT(refusal(one_tensor({9}, 0, 32, 64)), Contains("ends within the data"));
  CHECK(refusal(one_tensor({8}, 0, 32, 64)) == "");

  auto twins = header(2, 0);
  for (const auto* name : {"v", "w"})
    twins.text(name).number(1U).number(std::uint64_t{8}).number(0U).number(std::uint64_t{0});
  twins.zeros((32 - twins.bytes().size() % 32) % 32 + 64);
  CHECK_THAT(refusal(twins.bytes()), Contains("same place"));

  // The table ends where the padding should begin.
  auto bare = header(1, 0);
  bare.text("w").number(1U).number(std::uint64_t{8}).number(0U).number(std::uint64_t{0});
  REQUIRE(bare.bytes().size() % 32 != 0);
  CHECK_THAT(refusal(bare.bytes()), Contains("padding"));
}

TEST_CASE("a small file cut at any byte is refused") {
  const std::vector<std::byte> data(64);
  const auto bytes = writer(3, 64)
                       .add("a", std::uint32_t{1})
                       .add("b", "text")
                       .add("c", true)
                       .add_array("d", std::vector<std::string>{"x", "yz"})
                       .add_array("e", std::vector<float>{1, 2})
                       .add_tensor("v", tensor_type::q4_1, {32}, std::span(data).first(20))
                       .add_tensor("w", tensor_type::f32, {16}, data)
                       .finish();
  REQUIRE(refusal(bytes) == "");
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    // An exact copy, so that the address sanitizer sees a read past the end.
    const std::vector<std::byte> cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
    INFO("cut at " << size);
    CHECK(refusal(cut) != "");
  }
}

TEST_CASE("damaged files never do harm") {
  const std::vector<std::byte> data(64);
  const auto good = writer()
                      .add("a", std::uint32_t{1})
                      .add_array("d", std::vector<std::string>{"x", "yz"})
                      .add_array("e", std::vector<std::int32_t>{1, 2})
                      .add_tensor("v", tensor_type::q4_1, {32}, std::span(data).first(20))
                      .add_tensor("w", tensor_type::f32, {4, 4}, data)
                      .finish();
  std::mt19937 random(7);
  for (int round = 0; round < 5'000; ++round) {
    auto bytes = good;
    for (auto changes = 1 + random() % 4; changes > 0; --changes)
      bytes[random() % bytes.size()] = static_cast<std::byte>(random() % 3 == 0 ? 0xff : random() & 0xffU);
    const auto made = file::parse(bytes);
    if (!made) {
      CHECK_FALSE(made.error().message.empty());
      continue;
    }
    // What was taken lies within the bytes and has the size that its shape gives.
    for (const auto& each : (*made)->tensors()) {
      CHECK(each.data.size() == each.rows() * each.row_bytes());
      CHECK(each.data.data() >= bytes.data());
      CHECK(each.data.data() + each.data.size() <= bytes.data() + bytes.size());
    }
  }
}
