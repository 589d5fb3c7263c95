#include "services/store/crc32c.hpp"

#include <dlfcn.h>

#include <array>
#include <cstddef>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace godwit {

namespace {

/// What each byte does to a register of zeros.
const std::array<std::uint32_t, 256>& bytes_table() {
  static const auto table = [] {
    std::array<std::uint32_t, 256> made{};
    for (std::uint32_t i = 0; i < made.size(); ++i) {
      std::uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit)
        value = value >> 1U ^ ((value & 1U) != 0 ? 0x82f63b78U : 0U); // Castagnoli's polynomial, reversed
      made[i] = value;
    }
    return made;
  }();
  return table;
}

/// One byte at a time: for processors without the instruction, and for ends.
std::uint32_t by_table(std::uint32_t crc, const char* data, std::size_t size) {
  const auto& table = bytes_table();
  for (std::size_t i = 0; i < size; ++i)
    crc = crc >> 8U ^ table[(crc ^ static_cast<unsigned char>(data[i])) & 255U];
  return crc;
}

#if defined(__x86_64__)
/// The instruction takes three cycles, and one may begin in each: so three parts of this size go side by
/// side.
constexpr std::size_t lane_bytes = 2048;

/// What so many zero bytes make of a register: linear in its bits, hence the sum of what they make of each of
/// its four bytes.
std::uint32_t behind_a_lane(std::uint32_t crc) {
  using one_byte = std::array<std::uint32_t, 256>;
  static const auto made = [] {
    constexpr std::array<char, lane_bytes> zeros{};
    std::array<one_byte, 4> all{};
    for (std::uint32_t bit = 0; bit < 32; ++bit) {
      const auto moved = by_table(1U << bit, zeros.data(), zeros.size());
      auto& part = all[bit / 8];
      for (std::uint32_t value = 0; value < part.size(); ++value)
        if ((value >> bit % 8 & 1U) != 0)
          part[value] ^= moved;
    }
    return all;
  }();
  return made[0][crc & 255U] ^ made[1][crc >> 8U & 255U] ^ made[2][crc >> 16U & 255U] ^ made[3][crc >> 24U];
}

std::uint64_t word_at(const char* data) {
  std::uint64_t word = 0;
  std::memcpy(&word, data, 8);
  return word;
}

__attribute__((target("sse4.2"))) std::uint32_t by_instruction(
  std::uint32_t crc, const char* data, std::size_t size) {
  for (; size >= 3 * lane_bytes; data += 3 * lane_bytes, size -= 3 * lane_bytes) {
    std::uint64_t first = crc;
    std::uint64_t second = 0;
    std::uint64_t third = 0;
    for (std::size_t i = 0; i < lane_bytes; i += 8) {
      first = _mm_crc32_u64(first, word_at(data + i));
      second = _mm_crc32_u64(second, word_at(data + lane_bytes + i));
      third = _mm_crc32_u64(third, word_at(data + 2 * lane_bytes + i));
    }
    crc = behind_a_lane(static_cast<std::uint32_t>(first)) ^ static_cast<std::uint32_t>(second);
    crc = behind_a_lane(crc) ^ static_cast<std::uint32_t>(third);
  }
  std::uint64_t wide = crc;
  for (; size >= 8; data += 8, size -= 8)
    wide = _mm_crc32_u64(wide, word_at(data));
  return by_table(static_cast<std::uint32_t>(wide), data, size);
}
#endif

std::uint32_t extend(std::uint32_t before, const char* data, std::size_t size) {
#if defined(__x86_64__)
  static const bool has_instruction = __builtin_cpu_supports("sse4.2") != 0;
  if (has_instruction)
    return ~by_instruction(~before, data, size);
#endif
  return ~by_table(~before, data, size);
}

} // namespace

std::uint32_t crc32c(std::uint32_t before, std::string_view bytes) {
  return extend(before, bytes.data(), bytes.size());
}

} // namespace godwit

// RocksDB 7's function of this name, which every caller inside the library reaches through the table of the
// dynamic linker.
namespace rocksdb::crc32c {

std::uint32_t Extend(std::uint32_t before, const char* data, std::size_t size);

__attribute__((visibility("default"))) std::uint32_t Extend(
  std::uint32_t before, const char* data, std::size_t size) {
  return godwit::extend(before, data, size);
}

} // namespace rocksdb::crc32c

namespace godwit {

bool crc32c_serves_rocksdb() {
  void* found = ::dlsym(RTLD_DEFAULT, "_ZN7rocksdb6crc32c6ExtendEjPKcm");
  return found == reinterpret_cast<void*>(&rocksdb::crc32c::Extend);
}

} // namespace godwit
