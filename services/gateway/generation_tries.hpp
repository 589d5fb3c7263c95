#pragma once

#include "messages/error.hpp"
#include "messages/ids.hpp"
#include "messages/result.hpp"
#include "messages/schemas/generation.capnp.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace godwit {

/// How far a completion goes on when its worker is lost.
struct try_limits {
  unsigned attempts = 3;                      ///< that fail in a row without a new token
  std::chrono::milliseconds patience{15'000}; ///< for another worker, from a loss on
  std::chrono::milliseconds first_pause{20};  ///< before the next try; doubles up to the longest
  std::chrono::milliseconds longest_pause{1'000};
};

/// One choice of a completion over its tries: when the worker or the router of one is lost, the next one
/// begins with the prompt and the tokens so far. The next token follows from those, so what comes is what
/// would have come, and no token comes twice. Times count from any beginning; nothing here has a clock.
class generation_tries {
 public:
  using time = std::chrono::milliseconds;

  /// @param prompt tokens of it: the position of the first token to come
  /// @param most tokens that may come
  generation_tries(position_t prompt, std::uint32_t most, try_limits limits)
    : prompt_(prompt), most_(most), limits_(limits), pause_(limits.first_pause) {}

  /// A try begins under a new id.
  void begin(request_id request);
  /// The id of the try under way; 0: there is none.
  request_id request() const { return request_; }
  /// When the next try is to begin, if one is to.
  std::optional<time> next() const { return next_; }

  /// A worker has taken the try. @returns whether nobody is left that could send its tokens, so that it has
  /// failed
  bool accept();
  /// Nobody can send tokens of the try any more. @returns whether it has failed with that; while it is not
  /// known if a worker took it, its answer is on the way
  bool orphan();
  /// Some try was taken by a worker: the request has its place.
  bool placed() const { return placed_; }

  /// Takes a batch of the try under way, which may come before the router's answer. The tokens of one that
  /// ends in failure do not count.
  /// @param vocabulary how many tokens there are
  /// @returns `internal` when tokens are missing, too many or unknown
  result<void> take(schema::TokenBatch::Reader batch, token_id vocabulary);
  /// Tokens so far.
  std::span<const token_id> tokens() const { return tokens_; }
  std::uint32_t remaining() const { return most_ - static_cast<std::uint32_t>(tokens_.size()); }

  /// The try under way has failed. @returns whether there will be another one, at next()
  bool failed(errc why, time now);

 private:
  position_t prompt_;
  std::uint32_t most_;
  try_limits limits_;
  std::vector<token_id> tokens_;
  request_id request_ = 0;
  bool accepted_ = false; ///< the try under way
  bool orphaned_ = false;
  bool placed_ = false;
  unsigned failures_ = 0;     ///< of tries that a worker may have begun, since the last token
  std::optional<time> since_; ///< no token since this loss
  std::optional<time> next_;
  time pause_;
};

} // namespace godwit
