#pragma once

#include "actors/tokenizer/chat_template.hpp"
#include "actors/tokenizer/tokenizer.hpp"
#include "messages/letter.hpp"
#include "messages/schemas/status.capnp.h"
#include "messages/schemas/tokenizer.capnp.h"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace godwit {

/// What one request may hold. A prompt beyond the context is refused elsewhere, once its length is known;
/// this keeps the work for finding it out small.
struct tokenizer_limits {
  std::size_t text_bytes = std::size_t{8} << 20; ///< of a text to encode, and of a rendered chat
  std::size_t ids = std::size_t{4} << 20;        ///< to decode
  std::size_t messages = 65'536;
};

/// Answers letters about one model's vocabulary and chat template, and counts them. No actor in it. Every
/// request is answered with `draining` once drain() was called.
class tokenizer_state {
 public:
  tokenizer_state() = default;
  tokenizer_state(std::shared_ptr<const tokenizer> words, std::shared_ptr<const chat_template> chat,
    tokenizer_limits most = {});

  /// @returns `too_large`
  result<letter<schema::TokenIds>> encode(schema::EncodeRequest::Reader request);
  /// @returns `invalid_argument` for an id that the vocabulary does not have; `too_large`
  result<letter<schema::DecodedText>> decode(schema::DecodeRequest::Reader request);
  /// @returns what chat_template::render() does, and `invalid_argument` for a message whose JSON is none;
  /// `too_large`
  result<letter<schema::RenderedChat>> render(schema::RenderRequest::Reader request);

  /// Takes no new work from now on. Every answer is given at once, so nothing is left over.
  void drain() { draining_ = true; }
  letter<schema::ActorStatus> status() const;

 private:
  template <class Answer>
  auto counted(Answer answer) -> decltype(answer());
  std::vector<token_id> encode_counted(std::string_view text, bool special);

  std::shared_ptr<const tokenizer> words_;
  std::shared_ptr<const chat_template> chat_;
  tokenizer_limits most_;
  bool draining_ = false;
  std::uint64_t requests_ = 0;
  std::uint64_t failures_ = 0;
  std::uint64_t encoded_ = 0; ///< tokens
  std::uint64_t decoded_ = 0; ///< tokens
};

} // namespace godwit
