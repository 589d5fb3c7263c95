#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace godwit {

/// The bytes of one stream between its producers and the socket: one write is under way at a time, and what
/// comes meanwhile waits and leaves with the next. Producers earn credit back when the socket has taken what
/// they sent, so that a slow reader holds them up instead of filling the memory.
class outbox {
 public:
  /// @param producers how many there are; each has an index below it
  explicit outbox(std::size_t producers) : waiting_(producers), writing_(producers), earned_(producers) {}

  /// Takes bytes, perhaps none, that cost a producer so many units of its credit.
  void add(std::string_view bytes, std::size_t producer = 0, std::uint32_t units = 0);

  /// The bytes to write now: nothing while a write is under way or nothing waits. The caller reports the end
  /// of the write with written().
  std::optional<std::string> next();

  /// The socket has taken the bytes.
  void written();

  /// The credit that a producer may be granted again, since the last call.
  std::uint32_t earned(std::size_t producer);

  /// Units of a producer that the socket has not taken.
  std::uint32_t owed(std::size_t producer) const { return waiting_.at(producer) + writing_.at(producer); }

  bool writing() const { return under_way_; }
  /// Nothing waits and nothing is being written.
  bool idle() const { return !under_way_ && bytes_.empty(); }

 private:
  std::string bytes_;
  bool under_way_ = false;
  std::vector<std::uint32_t> waiting_; ///< units of the bytes that wait
  std::vector<std::uint32_t> writing_; ///< units of the bytes that are being written
  std::vector<std::uint32_t> earned_;
};

} // namespace godwit
