#pragma once

namespace godwit {

/// Reports a broken invariant and ends the process: a state we do not understand must not reach a journal.
[[noreturn]] void check_failed(const char* expression, const char* file, int line);

} // namespace godwit

/// A check for mistakes of ours; it stays on in release builds.
#define GODWIT_CHECK(expression)                                                                             \
  (static_cast<bool>(expression) ? static_cast<void>(0)                                                      \
                                 : ::godwit::check_failed(#expression, __FILE__, __LINE__))
