#pragma once

// XXH3 for those who hash whole pages: with the widest vectors that the processor has, of which the library
// chooses. Not beside XXH_INLINE_ALL, which is for short texts.

#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>
#if defined(__x86_64__)
#include <xxh_x86dispatch.h>
#endif
