#include "actors/tokenizer/digest.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <string_view>

namespace godwit {

namespace {

/// Changes with the code where equal metadata would lead to other tokens.
constexpr std::string_view version = "byte-level BPE, version 1";
constexpr std::string_view piece_version = "pieces, version 1";

class fields {
 public:
  fields() : state_(XXH3_createState(), XXH3_freeState) {
    if (!state_)
      throw std::bad_alloc();
    XXH3_128bits_reset(state_.get());
  }

  void add(std::uint64_t number) {
    std::array<std::uint8_t, 8> bytes{};
    for (auto& byte : bytes) {
      byte = static_cast<std::uint8_t>(number);
      number >>= 8;
    }
    XXH3_128bits_update(state_.get(), bytes.data(), bytes.size());
  }

  void add(std::string_view text) {
    add(text.size());
    XXH3_128bits_update(state_.get(), text.data(), text.size());
  }

  void add(std::span<const std::string_view> texts) {
    add(texts.size());
    for (const auto text : texts)
      add(text);
  }

  std::string hexadecimal() const {
    const auto hash = XXH3_128bits_digest(state_.get());
    return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
  }

 private:
  std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state_;
};

/// What both kinds of vocabularies have.
void add_vocabulary(fields& all, const gguf::file& file) {
  for (const auto* key : {"tokenizer.ggml.tokens", "tokenizer.ggml.merges"})
    all.add(file.strings(key).value_or(std::span<const std::string_view>()));
  const auto types = file.integers("tokenizer.ggml.token_type").value_or(std::vector<std::int64_t>());
  all.add(types.size());
  for (const auto type : types)
    all.add(static_cast<std::uint64_t>(type));
  // What is not in the file counts as something that no file can say.
  for (const auto* key : {"tokenizer.ggml.bos_token_id", "tokenizer.ggml.eos_token_id",
         "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"})
    all.add(file.unsigned_value(key).value_or(~std::uint64_t{0}));
  for (const auto* key : {"tokenizer.ggml.add_bos_token", "tokenizer.ggml.add_space_prefix"}) {
    const auto flag = file.bool_value(key);
    all.add(flag ? std::uint64_t{*flag} : std::uint64_t{2});
  }
}

} // namespace

std::string piece_tokenizer_digest(const gguf::file& file) {
  fields all;
  all.add(piece_version);
  const auto scores = file.floats("tokenizer.ggml.scores").value_or(std::vector<float>());
  all.add(scores.size());
  for (const auto score : scores)
    all.add(std::uint64_t{std::bit_cast<std::uint32_t>(score)});
  add_vocabulary(all, file);
  return all.hexadecimal();
}

std::string tokenizer_digest(const gguf::file& file, const pre_tokenizer_rules& rules) {
  fields all;
  all.add(version);
  all.add(rules.patterns);
  all.add(std::uint64_t{rules.whole_words});
  all.add(std::uint64_t{rules.begins});
  add_vocabulary(all, file);
  return all.hexadecimal();
}

} // namespace godwit
