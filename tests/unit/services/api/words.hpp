#pragma once

#include "actors/tokenizer/token_text.hpp"
#include "messages/letter.hpp"
#include "messages/schemas/generation.capnp.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace godwit::test {

/// A vocabulary small enough to write down; its last token ends an answer.
class words final : public token_text {
 public:
  explicit words(std::vector<std::string> texts) : texts_(std::move(texts)) {
    texts_.emplace_back("<|end|>");
  }

  token_id size() const override { return static_cast<token_id>(texts_.size()); }
  std::string_view bytes(token_id id) const override { return texts_.at(id); }
  bool is_control(token_id id) const override { return is_end(id); }
  bool is_end(token_id id) const override { return id + 1 == size(); }

 private:
  std::vector<std::string> texts_;
};

struct told {
  token_id token;
  float logprob = 0;
  std::vector<std::pair<token_id, float>> top = {};
};

struct batch_parts {
  request_id request = 0;
  std::vector<told> tokens = {};
  schema::FinishReason finish = schema::FinishReason::NONE;
  std::uint32_t prompt = 0;
  std::uint32_t cached = 0;
  errc code = {};
  std::string message = {};
  std::uint32_t position = 0; ///< of the first token
};

inline letter<schema::TokenBatch> batch(const batch_parts& parts) {
  return letter<schema::TokenBatch>::make([&](auto b) {
    b.setRequest(parts.request);
    b.setPosition(parts.position);
    auto tokens = b.initTokens(static_cast<unsigned>(parts.tokens.size()));
    for (unsigned i = 0; i < tokens.size(); ++i) {
      tokens[i].setToken(parts.tokens[i].token);
      tokens[i].setLogprob(parts.tokens[i].logprob);
      auto top = tokens[i].initTop(static_cast<unsigned>(parts.tokens[i].top.size()));
      for (unsigned j = 0; j < top.size(); ++j) {
        top[j].setToken(parts.tokens[i].top[j].first);
        top[j].setLogprob(parts.tokens[i].top[j].second);
      }
    }
    b.setFinish(parts.finish);
    b.setPromptTokens(parts.prompt);
    b.setCachedTokens(parts.cached);
    b.setErrorCode(static_cast<std::uint8_t>(parts.code));
    b.setErrorMessage(parts.message.c_str());
  });
}

} // namespace godwit::test
