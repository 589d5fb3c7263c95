#pragma once

#include "actors/jinja/fault.hpp"
#include "actors/jinja/limits.hpp"

namespace godwit::jinja {

/// Counts what one rendering costs. Once a limit is reached the budget stays used up: functions that walk
/// through large values stop early then, and the interpreter asks `check()` after every expression.
class budget {
 public:
  explicit budget(const limits& most) : limits_(most), steps_(most.steps) {}

  /// Takes steps of work. @returns false when they are used up
  bool spend(std::uint64_t steps = 1) {
    if (steps > steps_) {
      steps_ = 0;
      return refuse(cause::steps);
    }
    steps_ -= steps;
    return cause_ == cause::none;
  }
  /// The work of touching this many bytes.
  bool spend_bytes(std::size_t bytes) { return spend(bytes / 64); }

  /// Takes memory. Always books it, so that give_back() is right; @returns false when it is more than there
  /// is
  bool take(std::size_t bytes) {
    used_ += bytes;
    return used_ <= limits_.memory ? cause_ == cause::none : refuse(cause::memory);
  }
  void give_back(std::size_t bytes) { used_ -= bytes; }
  /// True if a value of this size may be made; to be asked before making one whose size a template chooses.
  bool has_room(std::size_t bytes) {
    return bytes <= limits_.memory && used_ <= limits_.memory - bytes ? true : refuse(cause::memory);
  }

  /// Reports a value that holds itself or is nested too deeply. @returns false
  bool refuse_nesting() { return refuse(cause::nesting); }

  const limits& most() const { return limits_; }
  bool used_up() const { return cause_ != cause::none; }
  /// The fault of the limit that was reached, if one was.
  outcome<void> check() const;

 private:
  enum class cause : std::uint8_t { none, steps, memory, nesting };

  bool refuse(cause why) {
    if (cause_ == cause::none)
      cause_ = why;
    return false;
  }

  limits limits_;
  std::uint64_t steps_;
  std::size_t used_ = 0;
  cause cause_ = cause::none;
};

} // namespace godwit::jinja
