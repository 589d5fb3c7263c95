#pragma once

#include <cstddef>

#include <malloc.h>

// What AddressSanitizer's allocator has given out; absent without it.
extern "C" [[gnu::weak]] std::size_t __sanitizer_get_current_allocated_bytes();

namespace godwit::test {

/// Whether allocated_bytes() is that to the byte: glibc counts what threads keep to use again as given out.
inline bool allocated_bytes_are_exact() {
  return __sanitizer_get_current_allocated_bytes != nullptr;
}

/// Memory that was asked for and not given back.
inline std::size_t allocated_bytes() {
  if (__sanitizer_get_current_allocated_bytes != nullptr)
    return __sanitizer_get_current_allocated_bytes();
  const auto info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

} // namespace godwit::test
