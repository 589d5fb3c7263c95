#pragma once

#include "actors/session/session_records.hpp"
#include "messages/error.hpp"
#include "messages/ids.hpp"
#include "messages/result.hpp"
#include "messages/schemas/generation.capnp.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace godwit {

/// The tokens of one try at a turn, from their arrival until they are committed. Holds no more than the
/// credit that was given.
class token_stream {
 public:
  /// @param next the position of the first token to come
  /// @param credit tokens that may come before more is granted
  token_stream(request_id request, turn_number turn, position_t next, std::uint32_t credit)
    : request_(request), turn_(turn), first_(next), credit_(credit) {}

  request_id request() const { return request_; }
  turn_number turn() const { return turn_; }

  /// Takes a batch of this request.
  /// @param vocabulary how many tokens there are
  /// @returns `internal` if it leaves out tokens, has unknown ones, comes without credit, or behind the end
  result<void> take(schema::TokenBatch::Reader batch, token_id vocabulary);

  /// A worker has it.
  void accept() { accepted_ = true; }
  /// Nobody can send any more of its tokens. @returns whether it has ended with that; while it is not known
  /// whether a worker has taken it, it is only noted
  bool orphan();
  bool orphaned() const { return orphaned_; }

  /// Tokens that are not committed.
  std::span<const sampled_token> pending() const { return pending_; }
  /// All before this position are committed. @returns how many of the pending ones those were
  std::uint32_t committed(position_t position);
  /// The producer may send so many more.
  void granted(std::uint32_t tokens) { credit_ += tokens; }

  /// No token follows those that are pending.
  bool ended() const { return ended_; }
  /// "stop" or "length"; empty while it goes on, and when it has failed.
  const std::string& finish() const { return finish_; }
  /// Why it ended without a finish.
  const error& failure() const { return failure_; }
  /// Of the prompt, taken from the prefix cache.
  std::uint32_t cached() const { return cached_; }
  /// Of these, from host memory and from the cold tier.
  std::uint32_t cached_host() const { return host_; }
  std::uint32_t cached_disk() const { return disk_; }

 private:
  void end(schema::TokenBatch::Reader batch);

  request_id request_;
  turn_number turn_;
  position_t first_; ///< of the first pending token
  std::uint32_t credit_;
  std::vector<sampled_token> pending_;
  bool accepted_ = false;
  bool orphaned_ = false;
  bool ended_ = false;
  std::string finish_;
  error failure_;
  std::uint32_t cached_ = 0;
  std::uint32_t host_ = 0;
  std::uint32_t disk_ = 0;
};

} // namespace godwit
