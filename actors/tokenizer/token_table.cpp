#include "actors/tokenizer/token_table.hpp"

#include "actors/tokenizer/byte_alphabet.hpp"
#include "messages/check.hpp"

#include <xxhash.h>

#include <algorithm>
#include <charconv>
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
std::optional<token_kind> kind_of_type(std::int64_t type, bool has_bytes) {
  switch (type) {
  case 1:
    return token_kind::text;
  case 2: // the token for what is unknown: every byte is known
  case 3:
    return token_kind::control;
  case 4:
    return token_kind::user_defined;
  case 5:
    return token_kind::unused;
  case 6:
    return has_bytes ? std::optional(token_kind::byte) : std::nullopt;
  default:
    return std::nullopt;
  }
}

/// A piece with its spaces as spaces.
std::string piece_text(std::string_view piece) {
  constexpr std::string_view space = "\xE2\x96\x81";
  std::string text;
  for (auto at = piece.find(space); at != std::string_view::npos; at = piece.find(space)) {
    text.append(piece.substr(0, at)).push_back(' ');
    piece.remove_prefix(at + space.size());
  }
  return text.append(piece);
}

/// The byte of "<0x0A>".
std::optional<char> piece_byte(std::string_view piece) {
  unsigned byte = 0;
  if (piece.size() != 6 || !piece.starts_with("<0x") || piece[5] != '>')
    return std::nullopt;
  const auto [end, failed] = std::from_chars(piece.data() + 3, piece.data() + 5, byte, 16);
  return failed == std::errc() && end == piece.data() + 5 ? std::optional(static_cast<char>(byte))
                                                          : std::nullopt;
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

result<bool> find_flag(const gguf::file& file, std::string_view key, bool otherwise) {
  return file.find(key) == nullptr ? result<bool>(otherwise) : file.bool_value(key);
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
  return load(file, writing::byte_level);
}

result<std::shared_ptr<const token_table>> token_table::load_pieces(const gguf::file& file) {
  return load(file, writing::pieces);
}

result<std::shared_ptr<const token_table>> token_table::load(const gguf::file& file, writing how) {
  auto made = std::make_shared<token_table>();
  if (const auto done = made->add_tokens(file, how); !done)
    return fail(done);
  if (const auto done = made->mark_ends(file); !done)
    return fail(done);
  made->index_texts();
  if (const auto done = made->index_bytes(how); !done)
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

result<void> token_table::add_tokens(const gguf::file& file, writing how) {
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
    const auto kind = kind_of_type((*types)[id], how == writing::pieces);
    if (!kind)
      return fail(errc::corrupt, "the model file's \"tokenizer.ggml.token_type\" gives token "
                                   + std::to_string(id) + " a type that its vocabulary does not have");
    if (const auto done = add_token((*texts)[id], *kind, how); !done)
      return fail(done);
  }
  return {};
}

result<void> token_table::add_token(std::string_view text, token_kind kind, writing how) {
  // What is not written in the alphabet stands for itself, and so do the names of other kinds.
  std::optional<std::string> decoded;
  if (kind == token_kind::text)
    decoded = how == writing::pieces ? std::optional(piece_text(text)) : alphabet_to_bytes(text);
  makes_text_.push_back(decoded.has_value());
  if (kind == token_kind::byte) {
    const auto byte = piece_byte(text);
    if (!byte)
      return fail(errc::corrupt, "the model file's \"tokenizer.ggml.tokens\" has at " + std::to_string(size())
                                   + " a byte token that is not written like <0x0A>");
    decoded = std::string(1, *byte);
  }
  storage_ += decoded ? std::string_view(*decoded) : text;
  ends_.push_back(storage_.size());
  kinds_.push_back(kind);
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

void token_table::index_texts() {
  by_bytes_.reserve(kinds_.size());
  for (token_id id = 0; id < size(); ++id)
    if (kinds_[id] == token_kind::text && makes_text_[id]) {
      by_bytes_.try_emplace(bytes(id), id);
      longest_text_ = std::max(longest_text_, bytes(id).size());
    }
}

result<void> token_table::index_bytes(writing how) {
  for (token_id id = 0; id < size(); ++id)
    if (kinds_[id] == token_kind::byte)
      if (auto& of = of_byte_[static_cast<std::uint8_t>(bytes(id)[0])]; !of)
        of = id;
  for (unsigned byte = 0; byte < of_byte_.size(); ++byte) {
    const auto text = static_cast<char>(byte);
    if (how == writing::byte_level)
      of_byte_[byte] = find(std::string_view(&text, 1));
    if (!of_byte_[byte] && (how == writing::pieces || is_ordinary(byte)))
      return fail(errc::corrupt,
        "the model file's \"tokenizer.ggml.tokens\" has no token for the byte " + std::to_string(byte));
  }
  return {};
}

} // namespace godwit
