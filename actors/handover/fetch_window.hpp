#pragma once

#include <cstdint>
#include <map>
#include <optional>

namespace godwit {

/// Blocks that stand one behind the other.
struct block_range {
  std::uint32_t first = 0;
  std::uint32_t count = 0;

  std::uint32_t end() const { return first + count; }
  bool operator==(const block_range&) const = default;
};

/// Which blocks to ask another node for: so many at a time, so many questions open. A question is the credit
/// for its answer, so that never more is under way than was asked for.
class fetch_window {
 public:
  /// @param per_request blocks of one question, at least 1
  /// @param most_open questions without an answer
  fetch_window(block_range wanted, std::uint32_t per_request, std::uint32_t most_open)
    : wanted_(wanted), per_request_(per_request), most_open_(most_open), next_(wanted.first) {}

  /// The next question, if there may be one now.
  std::optional<block_range> next();
  /// The answer to a question.
  /// @param good blocks of it, from its first on, that came and check; fewer than asked for end the questions
  /// @returns false if there is no such question
  bool came(block_range asked, std::uint32_t good);
  /// There is no answer to a question.
  bool failed(block_range asked) { return came(asked, 0); }

  /// Nothing is open and nothing is to be asked.
  bool over() const { return open_.empty() && (stopped_ || next_ == wanted_.end()); }
  /// Blocks that are there, from the first on without a gap.
  std::uint32_t good() const;
  /// Questions without an answer.
  std::size_t open() const { return open_.size(); }

 private:
  block_range wanted_;
  std::uint32_t per_request_;
  std::uint32_t most_open_;
  std::uint32_t next_;
  bool stopped_ = false;
  std::map<std::uint32_t, std::uint32_t> open_; ///< by the first block
  std::map<std::uint32_t, std::uint32_t> good_;
};

} // namespace godwit
