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

/// One byte at a time: for processors without the instruction, and for ends.
std::uint32_t by_table(std::uint32_t crc, const char* data, std::size_t size) {
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
  for (std::size_t i = 0; i < size; ++i)
    crc = crc >> 8U ^ table[(crc ^ static_cast<unsigned char>(data[i])) & 255U];
  return crc;
}

#if defined(__x86_64__)
/// Eight bytes an instruction, one after the other: about 8 GB/s, above any disk.
__attribute__((target("sse4.2"))) std::uint32_t by_instruction(
  std::uint32_t crc, const char* data, std::size_t size) {
  std::uint64_t wide = crc;
  for (; size >= 8; data += 8, size -= 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, data, 8);
    wide = _mm_crc32_u64(wide, word);
  }
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
