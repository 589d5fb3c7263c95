#pragma once

#include "messages/letter.hpp"
#include "messages/schemas/trace.capnp.h"

#include <caf/fwd.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace godwit {

/// The letters that come to one actor, for a while: what they are, how large, when, and not what they say.
/// Any thread may call.
class letter_trace {
 public:
  /// @param full told once, on the thread of whoever sends, when there is room for no more
  letter_trace(std::string actor, std::size_t most, std::function<void()> full);

  void note(const caf::mailbox_element& what);
  letter<schema::Trace> report() const;

 private:
  struct seen {
    std::chrono::microseconds at{0};
    const char* kind = "letter";
    std::string types;
    std::size_t bytes = 0;
    std::string from;
  };

  std::string actor_;
  std::size_t most_;
  std::function<void()> full_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  mutable std::mutex mutex_;
  std::vector<seen> seen_;
};

/// An actor that can be traced. While it is not, a letter costs it one look at a flag.
class traceable {
 public:
  virtual ~traceable() = default;

  /// Notes what comes from now on. @returns false if another trace is under way
  bool begin_trace(std::shared_ptr<letter_trace> into);
  void end_trace();

 protected:
  void note(const caf::mailbox_element& what) {
    if (on_.load(std::memory_order_relaxed))
      note_in_trace(what);
  }

 private:
  void note_in_trace(const caf::mailbox_element& what);

  std::atomic<bool> on_{false};
  std::mutex mutex_;
  std::shared_ptr<letter_trace> trace_;
};

} // namespace godwit
