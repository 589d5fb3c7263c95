#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace godwit::link {

// Numbers in frames are little-endian and not aligned.
static_assert(std::endian::native == std::endian::little, "frames are written as they lie in memory");

template <class Number>
void store(std::span<std::byte> out, std::size_t offset, Number value) {
  std::memcpy(out.data() + offset, &value, sizeof value);
}

template <class Number>
Number load(std::span<const std::byte> bytes, std::size_t offset) {
  Number value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

} // namespace godwit::link
