#pragma once

#include "actors/tokenizer/token_text.hpp"
#include "kernels/models/model.hpp"
#include "kernels/sampling/sampler.hpp"
#include "messages/check.hpp"

#include <cstring>
#include <functional>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace godwit::test {

/// A model whose logits are a pure function of the tokens so far, which it reads back from the pages of all
/// layers and heads: a wrong page anywhere gives wrong tokens.
class fake_model final : public model {
 public:
  /// What the model saw, for the test that gave the model away.
  struct log {
    std::size_t steps = 0;
    std::size_t tokens = 0;
    std::vector<std::vector<std::size_t>> chunks; ///< [step][chunk], tokens
    std::function<void()> before_step;            ///< may throw
  };

  static model_shape small_shape() {
    model_shape shape;
    shape.architecture = "fake";
    shape.context = 512;
    shape.vocabulary = 97;
    shape.embedding = 8;
    shape.heads = 2;
    shape.kv = {2, 2, 8, kv_type::f16};
    return shape;
  }

  explicit fake_model(model_shape shape = small_shape(), std::shared_ptr<log> seen = std::make_shared<log>(),
    std::uint32_t rows = 256)
    : shape_(std::move(shape)), log_(std::move(seen)), rows_(rows) {}

  const model_shape& shape() const override { return shape_; }
  const std::string& fingerprint() const override { return fingerprint_; }
  std::uint32_t max_rows() const override { return rows_; }

  /// In another order than asked, by three threads in turn.
  std::uint32_t threads() const override { return 3; }
  void share_out(std::size_t items, const std::function<void(std::size_t, std::uint32_t)>& job) override {
    for (std::size_t item = items; item-- > 0;)
      job(item, static_cast<std::uint32_t>(item % 3));
  }

  void forward(std::span<const chunk> chunks, std::span<float> logits, const hidden_taps& taps) override {
    GODWIT_CHECK(taps.layers.empty());
    if (log_->before_step)
      log_->before_step();
    std::set<const sequence*> distinct;
    std::vector<std::size_t> sizes;
    for (const auto& part : chunks) {
      GODWIT_CHECK(distinct.insert(part.target).second && !part.tokens.empty());
      for (std::size_t i = 0; i < part.tokens.size(); ++i)
        write(*part.target, part.target->length() + static_cast<position_t>(i), part.tokens[i]);
      part.target->advance(static_cast<std::uint32_t>(part.tokens.size()));
      sizes.push_back(part.tokens.size());
      log_->tokens += part.tokens.size();
      if (part.logits == logits_wanted::last) {
        logits_of(read_back(*part.target), logits.first(shape_.vocabulary));
        logits = logits.subspan(shape_.vocabulary);
      }
    }
    GODWIT_CHECK(logits.empty());
    ++log_->steps;
    log_->chunks.push_back(std::move(sizes));
  }

  /// The definition: logits after some tokens.
  static void logits_of(std::span<const token_id> tokens, std::span<float> logits) {
    std::uint64_t state = 14695981039346656037U;
    for (std::size_t i = 0; i < tokens.size(); ++i)
      state = (state ^ (tokens[i] + 1 + (i << 20))) * 1099511628211U;
    for (std::size_t v = 0; v < logits.size(); ++v) {
      auto bits = (state ^ (v + 1)) * 0x9E3779B97F4A7C15U;
      bits = (bits ^ (bits >> 29)) * 0xBF58476D1CE4E5B9U;
      logits[v] = static_cast<float>(bits >> 40) * 0x1p-21F; // 0 to 8
    }
  }

 private:
  std::uint32_t* cell(sequence& kv, std::uint32_t layer, std::uint32_t head, position_t position) const {
    const auto slot = kv.slot_from(layer, head, position);
    const auto page = kv.pages(layer, head)[slot / page_tokens];
    return reinterpret_cast<std::uint32_t*>(kv.pool().data(page)) + slot % page_tokens;
  }

  void write(sequence& kv, position_t position, token_id token) const {
    for (std::uint32_t layer = 0; layer < shape_.kv.layers; ++layer)
      for (std::uint32_t head = 0; head < shape_.kv.kv_heads; ++head)
        *cell(kv, layer, head, position) = token + 1000 * (layer * shape_.kv.kv_heads + head);
  }

  /// The tokens as the pages tell them: any page that disagrees with the others spoils the token. What no
  /// head has kept is 0.
  std::vector<token_id> read_back(sequence& kv) const {
    std::vector<token_id> tokens(kv.length());
    for (std::uint32_t layer = 0; layer < shape_.kv.layers; ++layer)
      for (std::uint32_t head = 0; head < shape_.kv.kv_heads; ++head)
        for (std::uint32_t slot = 0; slot < kv.kept(layer, head); ++slot) {
          const position_t p = kv.ragged() ? kv.positions(layer, head)[slot] : slot;
          const auto told = *cell(kv, layer, head, p) - 1000 * (layer * shape_.kv.kv_heads + head);
          tokens[p] = layer + head == 0 ? told : tokens[p] * 31 * (tokens[p] != told) + told;
        }
    return tokens;
  }

  model_shape shape_;
  std::shared_ptr<log> log_;
  std::uint32_t rows_;
  std::string fingerprint_ = "00000000000000000000000000000fa4";
};

/// A vocabulary without text in which token 0 ends an answer.
class fake_text final : public token_text {
 public:
  explicit fake_text(token_id size = 97) : size_(size) {}
  token_id size() const override { return size_; }
  std::string_view bytes(token_id) const override { return "x"; }
  bool is_control(token_id id) const override { return id == 0; }
  bool is_end(token_id id) const override { return id == 0; }

 private:
  token_id size_;
};

/// The answer that any schedule has to give: the definition, applied token by token.
/// @param longest tokens at which a sequence is complete
inline std::vector<token_id> answer_alone(std::vector<token_id> tokens, std::uint32_t prompt_length,
  const sampling_settings& sampling, std::uint32_t max_tokens, std::uint32_t longest,
  bool ignore_end = false) {
  std::vector<float> logits(fake_model::small_shape().vocabulary);
  std::vector<token_id> answer;
  sampler_scratch scratch;
  while (answer.size() < max_tokens && tokens.size() < longest) {
    fake_model::logits_of(tokens, logits);
    const auto next =
      sample(logits, sampling, static_cast<position_t>(tokens.size()), tokens, prompt_length, scratch).token;
    tokens.push_back(next);
    answer.push_back(next);
    if (next == 0 && !ignore_end)
      break;
  }
  return answer;
}

} // namespace godwit::test
