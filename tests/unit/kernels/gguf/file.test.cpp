#include "kernels/gguf/file.hpp"

#include "kernels/gguf/writer.hpp"

#include <catch2/catch.hpp>

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

#include <unistd.h>

using namespace godwit;
using namespace godwit::gguf;

namespace {

std::vector<std::byte> bytes_of(std::span<const float> numbers) {
  const auto bytes = std::as_bytes(numbers);
  return {bytes.begin(), bytes.end()};
}

/// A file below the system's temporary folder that goes away with the test.
class temporary_file {
 public:
  explicit temporary_file(std::span<const std::byte> bytes)
    : path_(
      std::filesystem::temp_directory_path() / ("godwit_gguf_" + std::to_string(::getpid()) + ".gguf")) {
    std::ofstream out(path_, std::ios::binary);
    out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }
  ~temporary_file() { std::filesystem::remove(path_); }
  temporary_file(const temporary_file&) = delete;
  temporary_file& operator=(const temporary_file&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

} // namespace

TEST_CASE("a hand-written file reads as the format's description says") {
  // Version 3, one tensor, one key "n" of type uint32 and value 7; tensor "w" F32 [2] at offset 0.
  const std::string text = std::string("GGUF\x03\0\0\0", 8) + std::string("\x01\0\0\0\0\0\0\0", 8)
                           + std::string("\x01\0\0\0\0\0\0\0", 8) + std::string("\x01\0\0\0\0\0\0\0n", 9)
                           + std::string("\x04\0\0\0\x07\0\0\0", 8) + std::string("\x01\0\0\0\0\0\0\0w", 9)
                           + std::string("\x01\0\0\0\x02\0\0\0\0\0\0\0", 12)
                           + std::string("\0\0\0\0\0\0\0\0\0\0\0\0", 12) + std::string(22, '\0')
                           + std::string("\0\0\x80\x3f\0\0\x00\xc0", 8);
  REQUIRE((text.size() - 8) % 32 == 0);
  const auto made = file::parse(std::as_bytes(std::span(text)));
  REQUIRE(made.has_value());
  CHECK((*made)->version() == 3);
  CHECK((*made)->unsigned_value("n") == 7U);
  const auto* weights = (*made)->find_tensor("w");
  REQUIRE(weights != nullptr);
  CHECK(weights->rows() == 1);
  CHECK(weights->row_bytes() == 8);
  std::array<float, 2> numbers{};
  REQUIRE(weights->data.size() == sizeof numbers);
  std::memcpy(numbers.data(), weights->data.data(), sizeof numbers);
  CHECK(numbers == std::array{1.0F, -2.0F});
}

TEST_CASE("every kind of value comes back from a file of either version") {
  const auto version = GENERATE(2U, 3U);
  const std::vector<std::string> words{"one", "", "three"};
  const std::vector<std::int32_t> kinds{1, -3};
  const std::vector<std::uint32_t> sizes{9, 0xffffffffU};
  const std::vector<float> scores{0.5F, -1.0F};
  const auto bytes = writer(version)
                       .add("u8", std::uint8_t{200})
                       .add("i8", std::int8_t{-100})
                       .add("u16", std::uint16_t{60'000})
                       .add("i16", std::int16_t{-30'000})
                       .add("u32", std::uint32_t{4'000'000'000})
                       .add("i32", std::int32_t{-2'000'000'000})
                       .add("u64", std::numeric_limits<std::uint64_t>::max())
                       .add("i64", std::numeric_limits<std::int64_t>::min())
                       .add("f32", 1.5F)
                       .add("f64", 0.1)
                       .add("yes", true)
                       .add("text", "Limosa lapponica")
                       .add_array("words", words)
                       .add_array("kinds", kinds)
                       .add_array("sizes", sizes)
                       .add_array("scores", scores)
                       .finish();
  const auto made = file::parse(bytes);
  REQUIRE(made.has_value());
  const auto& model = **made;
  CHECK(model.version() == version);
  CHECK(model.metadata().size() == 16);
  CHECK(model.metadata().front().first == "u8");

  CHECK(model.unsigned_value("u8") == 200U);
  CHECK(model.unsigned_value("u16") == 60'000U);
  CHECK(model.unsigned_value("u32") == 4'000'000'000U);
  CHECK(model.unsigned_value("u64") == std::numeric_limits<std::uint64_t>::max());
  CHECK(std::get<std::int8_t>(*model.find("i8")) == -100);
  CHECK(std::get<std::int16_t>(*model.find("i16")) == -30'000);
  CHECK(std::get<std::int32_t>(*model.find("i32")) == -2'000'000'000);
  CHECK(std::get<std::int64_t>(*model.find("i64")) == std::numeric_limits<std::int64_t>::min());
  CHECK(model.float_value("f32") == 1.5);
  CHECK(model.float_value("f64") == 0.1);
  CHECK(model.bool_value("yes") == true);
  CHECK(model.string_value("text") == "Limosa lapponica");

  const auto strings = model.strings("words");
  REQUIRE(strings.has_value());
  CHECK(std::vector<std::string>(strings->begin(), strings->end()) == words);
  CHECK(model.integers("kinds") == std::vector<std::int64_t>{1, -3});
  CHECK(model.integers("sizes") == std::vector<std::int64_t>{9, 0xffffffff});
  CHECK(model.floats("scores") == scores);
  CHECK(std::get<std::shared_ptr<const array>>(*model.find("words"))->size() == 3);
}

TEST_CASE("a missing or mistyped key is an error that names it") {
  const auto bytes = writer()
                       .add("text", "x")
                       .add("minus", std::int32_t{-1})
                       .add("yes", true)
                       .add("f", 1.0F)
                       .add_array("words", std::vector<std::string>{"a"})
                       .add_array("scores", std::vector<float>{1.0F})
                       .finish();
  const auto model = file::parse(bytes).value();
  CHECK(model->find("absent") == nullptr);
  const auto refused = [](const auto& outcome, const std::string& key) {
    return !outcome && outcome.error().code == errc::corrupt
           && outcome.error().message.find('"' + key + '"') != std::string::npos;
  };
  CHECK(refused(model->unsigned_value("absent"), "absent"));
  CHECK(refused(model->unsigned_value("minus"), "minus"));
  CHECK(refused(model->unsigned_value("yes"), "yes"));
  CHECK(refused(model->unsigned_value("f"), "f"));
  CHECK(refused(model->float_value("absent"), "absent"));
  CHECK(refused(model->float_value("minus"), "minus"));
  CHECK(refused(model->string_value("absent"), "absent"));
  CHECK(refused(model->string_value("f"), "f"));
  CHECK(refused(model->bool_value("absent"), "absent"));
  CHECK(refused(model->bool_value("text"), "text"));
  CHECK(refused(model->strings("absent"), "absent"));
  CHECK(refused(model->strings("scores"), "scores"));
  CHECK(refused(model->strings("text"), "text"));
  CHECK(refused(model->integers("absent"), "absent"));
  CHECK(refused(model->integers("words"), "words"));
  CHECK(refused(model->integers("text"), "text"));
  CHECK(refused(model->floats("absent"), "absent"));
  CHECK(refused(model->floats("words"), "words"));
  CHECK(refused(model->floats("text"), "text"));
}

TEST_CASE("arrays of every item type are read, booleans and doubles too") {
  const auto raw = [](std::uint32_t type, std::initializer_list<unsigned> items) {
    std::vector<std::byte> bytes(12);
    const std::uint64_t count = 2;
    std::memcpy(bytes.data(), &type, sizeof type);
    std::memcpy(bytes.data() + 4, &count, sizeof count);
    for (const auto item : items)
      bytes.push_back(static_cast<std::byte>(item));
    return bytes;
  };
  const auto bytes =
    writer()
      .add_raw("u8", 9, raw(0, {1, 255}))
      .add_raw("i8", 9, raw(1, {1, 255}))
      .add_raw("u16", 9, raw(2, {1, 0, 255, 255}))
      .add_raw("i16", 9, raw(3, {1, 0, 255, 255}))
      .add_raw("bool", 9, raw(7, {1, 0}))
      .add_raw("u64", 9, raw(10, {1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0}))
      .add_raw("big", 9, raw(10, {1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 128}))
      .add_raw("i64", 9, raw(11, {1, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255}))
      .add_raw("f64", 9, raw(12, {0, 0, 0, 0, 0, 0, 0xf0, 0x3f, 0, 0, 0, 0, 0, 0, 0, 0xc0}))
      .finish();
  const auto model = file::parse(bytes).value();
  CHECK(model->integers("u8") == std::vector<std::int64_t>{1, 255});
  CHECK(model->integers("i8") == std::vector<std::int64_t>{1, -1});
  CHECK(model->integers("u16") == std::vector<std::int64_t>{1, 65'535});
  CHECK(model->integers("i16") == std::vector<std::int64_t>{1, -1});
  CHECK(model->integers("u64") == std::vector<std::int64_t>{1, 2});
  CHECK(model->integers("i64") == std::vector<std::int64_t>{1, -1});
  CHECK_FALSE(model->integers("big").has_value());
  CHECK_FALSE(model->integers("bool").has_value());
  CHECK(model->floats("f64") == std::vector<float>{1.0F, -2.0F});
  const auto flags = std::get<std::shared_ptr<const array>>(*model->find("bool"));
  CHECK(std::get<std::vector<bool>>(flags->items) == std::vector<bool>{true, false});
}

TEST_CASE("tensors lie aligned at the place and of the size that their type gives") {
  const auto alignment = GENERATE(8U, 32U, 4096U);
  const std::vector<float> numbers{1, 2, 3, 4, 5, 6};
  const std::vector<std::byte> quantised(std::size_t{3} * 2 * 34, std::byte{7});
  const auto bytes = writer(3, alignment)
                       .add_tensor("a", tensor_type::f32, {3, 2}, bytes_of(numbers))
                       .add_tensor("b", tensor_type::q8_0, {64, 3, 1}, quantised)
                       .finish();
  const auto model = file::parse(bytes).value();
  REQUIRE(model->tensors().size() == 2);
  const auto* a = model->find_tensor("a");
  const auto* b = model->find_tensor("b");
  REQUIRE(a != nullptr);
  REQUIRE(b != nullptr);
  CHECK(a->columns() == 3);
  CHECK(a->rows() == 2);
  CHECK(b->rows() == 3);
  CHECK(b->row_bytes() == 68);
  for (const auto* each : {a, b})
    CHECK((each->data.data() - bytes.data()) % alignment == 0);
  CHECK(std::vector<std::byte>(a->data.begin(), a->data.end()) == bytes_of(numbers));
  CHECK(std::vector<std::byte>(b->data.begin(), b->data.end()) == quantised);
  CHECK(model->find_tensor("c") == nullptr);
}

TEST_CASE("block sizes of all types are those of ggml") {
  const std::vector<std::tuple<std::uint32_t, std::string, std::size_t, std::size_t>> expected{
    {0, "F32", 1, 4}, {1, "F16", 1, 2}, {2, "Q4_0", 32, 18}, {3, "Q4_1", 32, 20}, {6, "Q5_0", 32, 22},
    {7, "Q5_1", 32, 24}, {8, "Q8_0", 32, 34}, {12, "Q4_K", 256, 144}, {13, "Q5_K", 256, 176},
    {14, "Q6_K", 256, 210}, {30, "BF16", 1, 2}};
  for (const auto& [number, name, elements, bytes] : expected) {
    const auto type = to_tensor_type(number);
    REQUIRE(type.has_value());
    CHECK(to_string(*type) == name);
    CHECK(block_elements(*type) == elements);
    CHECK(block_bytes(*type) == bytes);
  }
  for (const auto other : {4U, 5U, 9U, 10U, 11U, 15U, 24U, 29U, 31U, 0xffffffffU})
    CHECK_FALSE(to_tensor_type(other).has_value());
}

TEST_CASE("a mapped file reads the same after its pages were forgotten") {
  const std::vector<float> numbers(10'000, 3.0F);
  const auto bytes = writer().add_tensor("w", tensor_type::f32, {10'000}, bytes_of(numbers)).finish();
  const temporary_file stored(bytes);
  const auto made = file::open(stored.path());
  REQUIRE(made.has_value());
  const auto& weights = (*made)->tensors().front();
  (*made)->forget(weights);
  CHECK(std::vector<std::byte>(weights.data.begin(), weights.data.end()) == bytes_of(numbers));
  CHECK((*made)->size_bytes() == bytes.size());
}

TEST_CASE("what cannot be opened says why without naming the path") {
  const auto refused = [](const std::filesystem::path& path, errc code) {
    const auto made = file::open(path);
    return !made && made.error().code == code && made.error().message.find('/') == std::string::npos;
  };
  CHECK(refused("/nonexistent/model.gguf", errc::not_found));
  CHECK(refused("/", errc::io));
  CHECK(refused("/dev/null", errc::io));
  const temporary_file empty({});
  CHECK(refused(empty.path(), errc::corrupt));
}
