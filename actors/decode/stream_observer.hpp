#pragma once

#include <chrono>

namespace godwit {

/// Is told of the pace of streams, for histograms. Called by the decode actor: do little.
class stream_observer {
 public:
  virtual ~stream_observer() = default;
  /// From a request's acceptance to its first token.
  virtual void first_token(std::chrono::nanoseconds took) = 0;
  /// From one token of a stream to the next, waits for the consumer's credit included.
  virtual void next_token(std::chrono::nanoseconds took) = 0;
};

} // namespace godwit
