#pragma once

#include <kj/string.h>

// What clang misses in Cap'n Proto 0.9's headers under C++20: the swapped form of StringPtr's comparisons.
// The build includes this file before every other one when the compiler is clang.
namespace kj {

inline bool operator==(const char* a, const StringPtr& b) {
  return b == StringPtr(a);
}
inline bool operator!=(const char* a, const StringPtr& b) {
  return b != StringPtr(a);
}

} // namespace kj
