#pragma once

#include "actors/tokenizer/token_text.hpp"
#include "messages/ids.hpp"
#include "messages/schemas/generation.capnp.h"

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

namespace godwit {

/// The log-probabilities of an answer's tokens in OpenAI's shape. A token is listed once the text that it
/// begins is certain; tokens that steer are not part of the text and are left out.
class logprob_list {
 public:
  explicit logprob_list(std::shared_ptr<const token_text> vocabulary) : vocabulary_(std::move(vocabulary)) {}

  void push(schema::SampledToken::Reader token);

  /// Takes the entries of tokens that begin within the first `visible` bytes of the answer.
  /// @returns a list of `{"token","logprob","bytes","top_logprobs"}`
  nlohmann::ordered_json take(std::size_t visible);
  /// Takes all entries.
  nlohmann::ordered_json take_all();

 private:
  struct entry {
    std::size_t begin; ///< byte of the answer
    token_id token;
    float logprob;
    std::vector<std::pair<token_id, float>> top;
  };

  nlohmann::ordered_json describe(token_id token, float logprob) const;
  nlohmann::ordered_json pop();

  std::shared_ptr<const token_text> vocabulary_;
  std::deque<entry> waiting_;
  std::size_t end_ = 0; ///< bytes of all tokens so far
};

} // namespace godwit
