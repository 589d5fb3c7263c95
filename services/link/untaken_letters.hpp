#pragma once

#include <caf/mailbox_element.hpp>
#include <caf/message.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace godwit::link {

/// Letters of one node that actors here were handed and have not taken yet. A letter takes one place, and one
/// more for each KiB of it. Its place is free again when the actor is done with it, or has ended; that may be
/// after this object's life. One thread hands letters out; for each the actor's thread has one atomic
/// operation, that one none.
class untaken_letters {
 public:
  static constexpr std::size_t bytes_a_place = 1024;

  /// @param most when so many places are taken there is none; the last letter may be larger
  explicit untaken_letters(std::int64_t most);
  ~untaken_letters();
  untaken_letters(const untaken_letters&) = delete;
  untaken_letters& operator=(const untaken_letters&) = delete;

  bool full();
  /// Places that are taken now; any thread.
  std::int64_t places() const;

  /// A letter as an actor's mailbox takes it, without a sender. @param bytes of all that it holds
  caf::mailbox_element_ptr hand_out(caf::message content, std::size_t bytes);

 private:
  class letter;

  /// Shared with the letters: minus the places that are free again. Whoever hands out no more adds all that
  /// it has handed out; from then on it falls to 0, and who brings it there deletes it.
  using balance = std::atomic<std::int64_t>;

  const std::int64_t most_;
  balance* freed_;
  std::atomic<std::int64_t> handed_{0};
  std::int64_t seen_ = 0; ///< of `freed_`, which only falls
};

} // namespace godwit::link
