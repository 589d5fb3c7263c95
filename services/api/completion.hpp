#pragma once

#include "actors/generation/answer_text.hpp"
#include "actors/tokenizer/token_text.hpp"
#include "messages/error.hpp"
#include "messages/schemas/generation.capnp.h"
#include "services/api/logprob_list.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace godwit {

/// What a chat completion's answer says about itself, and how it is to be given.
struct completion_settings {
  std::string id; ///< "chatcmpl-…"
  std::int64_t created = 0;
  std::string model;
  std::string fingerprint; ///< the field system_fingerprint
  std::uint32_t choices = 1;
  std::vector<std::string> stop;
  bool logprobs = false;
  bool stream = false;
  bool include_usage = false;
  std::shared_ptr<const token_text> vocabulary;
};

/// One chat completion as a function of the token batches of its choices: OpenAI's shapes, streamed or whole.
/// Stop strings are found here, since the engine knows only tokens.
class completion {
 public:
  explicit completion(completion_settings settings);

  struct taken {
    std::string bytes;        ///< what the stream sends now; empty without `stream`
    std::uint32_t tokens = 0; ///< that the batch had: the credit it cost
    bool stop_string = false; ///< the choice ended by a stop string: the engine need not go on
    /// The generation has failed. Nothing of the batch counts: another generation of the choice may go on
    /// behind what came before.
    std::optional<error> failure;
  };

  /// Takes the next batch of a choice. What comes after a choice has ended is left out.
  taken take(std::size_t choice, schema::TokenBatch::Reader batch);

  /// True when every choice has ended.
  bool done() const;
  bool ended(std::size_t choice) const { return !choices_[choice].finish_reason.empty(); }

  /// The end of a finished stream: the chunk with the usage if asked for, and `[DONE]`.
  std::string closing() const;
  /// The whole answer of a finished completion without `stream`.
  std::string body();

 private:
  struct choice_state {
    answer_text text;
    logprob_list logprobs;
    std::string content;       ///< of the whole answer; unused when streaming
    std::size_t visible = 0;   ///< bytes of the text that became certain
    std::string finish_reason; ///< empty until it ends
    std::uint64_t tokens = 0;
    bool told = false; ///< what was cached is known
    std::uint32_t cached = 0;
    std::uint32_t cached_host = 0; ///< of these
    std::uint32_t cached_disk = 0;
    bool begun = false;
  };

  void note_usage(choice_state& choice, schema::TokenBatch::Reader batch);
  /// The chunks of a stream for new text of a choice.
  std::string chunks(std::size_t index, const std::string& text);
  nlohmann::ordered_json usage() const;

  completion_settings settings_;
  std::vector<choice_state> choices_;
  std::uint32_t prompt_tokens_ = 0;
};

} // namespace godwit
