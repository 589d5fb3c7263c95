#include "messages/check.hpp"

#include <cstdio>
#include <cstdlib>

namespace godwit {

void check_failed(const char* expression, const char* file, int line) {
  std::fprintf(stderr, "godwit: broken invariant: %s at %s:%d\n", expression, file, line);
  std::abort();
}

} // namespace godwit
