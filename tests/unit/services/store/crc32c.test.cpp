#include "services/store/crc32c.hpp"

#include <catch2/catch.hpp>

#include <random>
#include <string>
#include <string_view>

using namespace godwit;

namespace {

/// Bit by bit, from the definition.
std::uint32_t plain(std::string_view bytes) {
  std::uint32_t crc = ~0U;
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit)
      crc = crc >> 1U ^ ((crc & 1U) != 0 ? 0x82f63b78U : 0U);
  }
  return ~crc;
}

} // namespace

TEST_CASE("the CRCs are those of RFC 3720, appendix B.4") {
  std::string rising(32, '\0');
  std::string falling(32, '\0');
  for (int i = 0; i < 32; ++i) {
    rising[static_cast<std::size_t>(i)] = static_cast<char>(i);
    falling[static_cast<std::size_t>(i)] = static_cast<char>(31 - i);
  }
  CHECK(crc32c(0, std::string(32, '\0')) == 0x8a9136aa);
  CHECK(crc32c(0, std::string(32, '\xff')) == 0x62a8ab43);
  CHECK(crc32c(0, rising) == 0x46dd794e);
  CHECK(crc32c(0, falling) == 0x113fdb5c);
  CHECK(crc32c(0, "123456789") == 0xe3069283); // the check value of the catalogue of CRCs
  CHECK(crc32c(0, "") == 0);
}

TEST_CASE("a CRC may be computed in pieces of any length, from any address") {
  std::string text(300, '\0');
  for (std::size_t i = 0; i < text.size(); ++i)
    text[i] = static_cast<char>(i * 31 + i / 7);
  for (std::size_t from = 0; from < 9; ++from)
    for (std::size_t cut = from; cut <= text.size(); cut += 5) {
      const auto whole = std::string_view(text).substr(from);
      REQUIRE(crc32c(crc32c(0, whole.substr(0, cut - from)), whole.substr(cut - from)) == plain(whole));
    }
}

TEST_CASE("the CRC of a long text is that of its bits, one after the other") {
  std::mt19937_64 random(5);
  std::string text(40'000, '\0');
  for (auto& byte : text)
    byte = static_cast<char>(random());
  for (int round = 0; round < 60; ++round) {
    const auto from = random() % 100;
    const auto size = random() % (text.size() - from);
    const auto part = std::string_view(text).substr(from, size);
    REQUIRE(crc32c(0, part) == plain(part));
    const auto cut = random() % (size + 1);
    REQUIRE(crc32c(crc32c(0, part.substr(0, cut)), part.substr(cut)) == plain(part));
  }
}

TEST_CASE("RocksDB's own calls come here") {
  CHECK(crc32c_serves_rocksdb());
}
