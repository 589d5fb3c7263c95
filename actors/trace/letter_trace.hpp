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

/// The letters that come to one actor and those that it sends, for a while: what they are, how large, when,
/// and not what they say. Any thread may call.
class letter_trace {
 public:
  /// @param full told once, on the thread of whoever sends, when there is room for no more
  letter_trace(std::string actor, std::size_t most, std::function<void()> full);

  /// One that comes to the actor.
  void note_came(const caf::mailbox_element& what);
  /// One that the actor sends.
  void note_sent(const caf::mailbox_element& what, std::string to);
  letter<schema::Trace> report() const;

 private:
  struct seen {
    std::chrono::microseconds at{0};
    const char* kind = "letter";
    std::string types;
    std::size_t bytes = 0;
    std::string from;
    std::string to;
  };
  void add(const caf::mailbox_element& what, std::string from, std::string to);

  std::string actor_;
  std::size_t most_;
  std::function<void()> full_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  mutable std::mutex mutex_;
  std::vector<seen> seen_;
};

/// Something with a mailbox at which letters are seen: those that come to it while it is traced, and those of
/// others that are. While nobody in the process is traced, a letter costs it one look at a flag.
class letter_watch {
 public:
  virtual ~letter_watch() = default;

 protected:
  void note(const caf::mailbox_element& what) const {
    if (traces_running.load(std::memory_order_relaxed) != 0)
      note_in_traces(what);
  }
  /// Who this is to the actor system, and to a reader.
  virtual const caf::actor_control_block* watched() const = 0;
  virtual std::string watched_name() const = 0;

  static std::atomic<std::size_t> traces_running; ///< of all actors of the process

 private:
  void note_in_traces(const caf::mailbox_element& what) const;
};

/// An actor that can be traced.
class traceable : public letter_watch {
 public:
  /// Notes what comes and what is sent from now on. The actor is held until the end by whoever began.
  /// @returns false if another trace of it is under way
  bool begin_trace(std::shared_ptr<letter_trace> into);
  void end_trace();
};

} // namespace godwit
