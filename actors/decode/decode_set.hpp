#pragma once

#include "actors/device/step.hpp"
#include "actors/tokenizer/token_text.hpp"
#include "messages/error.hpp"
#include "messages/ids.hpp"
#include "messages/letter.hpp"
#include "messages/schemas/generation.capnp.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace godwit {

/// The next tokens of a stream, or its end.
struct token_batch {
  request_id request = 0;
  position_t position = 0; ///< of the first token, or of the one that would come next
  std::vector<sampled> tokens;
  schema::FinishReason finish = schema::FinishReason::NONE;
  error failure; ///< if finish is failed
  std::uint32_t prompt_tokens = 0;
  std::uint32_t cached_tokens = 0;
  std::uint32_t cached_host = 0; ///< of these, from host memory
  std::uint32_t cached_disk = 0; ///< and from the cold tier
  bool usage = false;            ///< the numbers above are to be told
};

/// A sequence whose pages are to be computed again.
struct lost_sequence {
  request_id request = 0;
  std::vector<token_id> tokens; ///< all so far
};

/// What is to be done after an event, in the order of the members.
struct decode_actions {
  std::vector<sequence_key> close; ///< on the device
  std::vector<token_batch> batches;
  std::vector<request_id> prefilled; ///< got their first token
  std::vector<lost_sequence> lost;
  std::vector<request_id> ended; ///< their last batch is among `batches`
};

/// The streams of a worker, from acceptance to the last batch. A stream that may not send runs no step: its
/// pages wait, or are given up if others need them and computed again when it may go on.
class decode_set {
 public:
  /// @param longest tokens at which a sequence is complete
  decode_set(std::shared_ptr<const token_text> vocabulary, std::uint32_t longest)
    : vocabulary_(std::move(vocabulary)), longest_(longest) {}

  /// A request was accepted; prefill works on it.
  decode_actions announce(const letter<schema::GenerateRequest>& ask);
  /// The consumer can take more tokens.
  decode_actions grant(request_id request, std::uint32_t tokens);
  /// Ends streams for an outside reason.
  decode_actions cancel(std::span<const request_id> requests, schema::EndCause cause);
  /// Ends all streams with the same failure.
  decode_actions fail_all(const error& failure);
  decode_actions take(const step_result& result);
  /// Pages came free: starved streams may be offered again.
  void unblock();

  /// The streams that can go on, one token each.
  std::vector<row_offer> rows() const;

  std::size_t size() const { return streams_.size(); }
  std::uint64_t released_tokens() const { return released_tokens_; }

 private:
  enum class stage : std::uint8_t {
    prompting, ///< prefill computes it
    running,   ///< its sequence is on the device
    parked,    ///< its pages are lost, and it may not send
    complete,  ///< its last token waits for credit
  };
  struct stream {
    letter<schema::GenerateRequest> ask;
    std::vector<token_id> generated;
    std::vector<token_id> stops;
    std::uint64_t credit = 0;
    std::optional<sampled> held; ///< the last generated token, if it was not sent
    stage at = stage::prompting;
    schema::FinishReason finish = schema::FinishReason::NONE; ///< if complete
    found_tokens cached;
    bool counted = false; ///< its first token was reported
    bool told = false;    ///< a batch has carried the usage
    bool blocked = false; ///< starved

    std::uint32_t length() const {
      return ask.read().getTokens().size() + static_cast<std::uint32_t>(generated.size());
    }
  };
  using streams = std::map<request_id, stream>;

  schema::FinishReason finish_after(const stream& which, token_id token) const;
  void add_token(streams::iterator item, const row_result& row, decode_actions& out);
  void send_held(streams::iterator item, decode_actions& out);
  void lose(streams::iterator item, decode_actions& out);
  void finish(streams::iterator item, schema::FinishReason why, error failure, decode_actions& out);
  token_batch batch_of(streams::iterator item) const;

  std::shared_ptr<const token_text> vocabulary_;
  std::uint32_t longest_;
  streams streams_;
  std::uint64_t released_tokens_ = 0;
};

} // namespace godwit
