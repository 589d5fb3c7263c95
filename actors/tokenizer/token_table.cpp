#include "actors/tokenizer/token_table.hpp"

#include "actors/tokenizer/byte_alphabet.hpp"
#include "messages/check.hpp"

#include <xxhash.h>

#include <algorithm>
#include <limits>
#include <random>

namespace godwit {

namespace {

constexpr std::string_view tokens_key = "tokenizer.ggml.tokens";
constexpr std::string_view types_key = "tokenizer.ggml.token_type";

/// Names under which models have end tokens beside those that the metadata names.
constexpr auto end_names =
  std::to_array<std::string_view>({"<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|end|>", "<|endoftext|>",
    "<|end_of_text|>", "<|return|>", "<|call|>", "<end_of_turn>", "<end_of_utterance>", "<eos>", "</s>",
    "<EOT>", "_<EOT>", "<｜end▁of▁sentence｜>", "<|END_OF_TURN_TOKEN|>"});

std::uint64_t hash_seed() {
  static const std::uint64_t seed = (std::uint64_t{std::random_device{}()} << 32) | std::random_device{}();
  return seed;
}

/// The numbers of `tokenizer.ggml.token_type` as the GGUF specification has them.
std::optional<token_kind> kind_of_type(std::int64_t type) {
  switch (type) {
  case 1:
    return token_kind::text;
  case 2: // the token for what is unknown: byte-level vocabularies do not use it
  case 3:
    return token_kind::control;
  case 4:
    return token_kind::user_defined;
  case 5:
    return token_kind::unused;
  default: // 6 is a byte token, which byte-level vocabularies do not have
    return std::nullopt;
  }
}

/// Bytes of text that anyone would write: printable ASCII, tab, line ends, and what the UTF-8 of letters in
/// use is made of.
bool is_ordinary(unsigned byte) {
  return byte == '\t' || byte == '\n' || byte == '\r' || (byte >= 0x20 && byte <= 0x7E)
         || (byte >= 0x80 && byte <= 0xBF) || (byte >= 0xC2 && byte <= 0xF0);
}

} // namespace

std::size_t byte_hash::operator()(std::string_view bytes) const noexcept {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), hash_seed());
}

std::size_t byte_hash::operator()(std::uint64_t number) const noexcept {
  return XXH3_64bits_withSeed(&number, sizeof number, hash_seed());
}

result<std::optional<token_id>> find_token_id(const gguf::file& file, std::string_view key, token_id size) {
  if (file.find(key) == nullptr)
    return std::nullopt;
  const auto id = file.unsigned_value(key);
  if (!id)
    return fail(id);
  if (*id >= size)
    return fail(errc::corrupt, "the model file's \"" + std::string(key) + "\" is no token of its vocabulary");
  return static_cast<token_id>(*id);
}

result<std::shared_ptr<const token_table>> token_table::load(const gguf::file& file) {
  auto made = std::make_shared<token_table>();
  if (const auto done = made->add_tokens(file); !done)
    return fail(done);
  if (const auto done = made->mark_ends(file); !done)
    return fail(done);
  if (const auto done = made->index(); !done)
    return fail(done);
  return made;
}

std::string_view token_table::bytes(token_id id) const {
  GODWIT_CHECK(id < size());
  const auto from = id == 0 ? 0 : ends_[id - 1];
  return std::string_view(storage_).substr(from, ends_[id] - from);
}

bool token_table::is_control(token_id id) const {
  GODWIT_CHECK(id < size());
  return kinds_[id] == token_kind::control || kinds_[id] == token_kind::unused;
}

bool token_table::is_end(token_id id) const {
  GODWIT_CHECK(id < size());
  return end_[id];
}

std::optional<token_id> token_table::find(std::string_view bytes) const {
  const auto found = by_bytes_.find(bytes);
  return found != by_bytes_.end() ? std::optional(found->second) : std::nullopt;
}

result<void> token_table::add_tokens(const gguf::file& file) {
  const auto texts = file.strings(tokens_key);
  if (!texts)
    return fail(texts);
  const auto types = file.integers(types_key);
  if (!types)
    return fail(types);
  if (texts->empty() || texts->size() > std::numeric_limits<std::int32_t>::max())
    return fail(errc::corrupt, "the model file's \"tokenizer.ggml.tokens\" has no tokens, or too many");
  if (types->size() != texts->size())
    return fail(errc::corrupt, "the model file has " + std::to_string(types->size())
                                 + " entries in \"tokenizer.ggml.token_type\", but "
                                 + std::to_string(texts->size()) + " in \"tokenizer.ggml.tokens\"");
  for (std::size_t id = 0; id < texts->size(); ++id) {
    const auto kind = kind_of_type((*types)[id]);
    if (!kind)
      return fail(errc::corrupt, "the model file's \"tokenizer.ggml.token_type\" gives token "
                                   + std::to_string(id)
                                   + " a type that a byte-level vocabulary does not have");
    const auto text = (*texts)[id];
    // Text outside the alphabet stands for itself.
    const auto decoded = *kind == token_kind::text ? alphabet_to_bytes(text) : std::nullopt;
    storage_ += decoded ? std::string_view(*decoded) : text;
    ends_.push_back(storage_.size());
    kinds_.push_back(*kind);
    in_alphabet_.push_back(decoded.has_value());
  }
  return {};
}

result<void> token_table::mark_ends(const gguf::file& file) {
  end_.assign(kinds_.size(), false);
  for (token_id id = 0; id < size(); ++id)
    end_[id] =
      kinds_[id] == token_kind::control && std::ranges::find(end_names, bytes(id)) != end_names.end();
  for (const auto* key :
    {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"}) {
    const auto id = find_token_id(file, key, size());
    if (!id)
      return fail(id);
    if (!*id)
      continue;
    // Some files give it the type of text; no text may end an answer, and its name is not part of one.
    end_[**id] = true;
    kinds_[**id] = token_kind::control;
  }
  return {};
}

result<void> token_table::index() {
  by_bytes_.reserve(kinds_.size());
  for (token_id id = 0; id < size(); ++id)
    if (kinds_[id] == token_kind::text && in_alphabet_[id])
      by_bytes_.try_emplace(bytes(id), id);
  for (unsigned byte = 0; byte < of_byte_.size(); ++byte) {
    const auto text = static_cast<char>(byte);
    of_byte_[byte] = find(std::string_view(&text, 1));
    if (!of_byte_[byte] && is_ordinary(byte))
      return fail(errc::corrupt,
        "the model file's \"tokenizer.ggml.tokens\" has no token for the byte " + std::to_string(byte));
  }
  return {};
}

} // namespace godwit
