#include "actors/cache/block_identity.hpp"

#include "messages/check.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstring>
#include <random>
#include <type_traits>
#include <vector>

namespace godwit {
namespace {

/// What a hash stands for: goes first into its bytes, so that a root is never taken for a block.
enum class kind : std::uint8_t { scope = 1, root = 2, block = 3 };

/// Fields one after the other, each behind its length in 8 little-endian bytes.
class field_writer {
 public:
  // Eight bytes, so that all fields of a block of text stand at multiples of eight: a block is hashed right
  // after its parent, and the processor hands a word that was just written over only if it is read as it was
  // written.
  explicit field_writer(kind which) { number(static_cast<std::uint64_t>(which)); }

  void field(const void* data, std::size_t size) {
    const std::uint64_t length = size;
    append(&length, sizeof length);
    append(data, size);
  }
  void text(std::string_view value) { field(value.data(), value.size()); }
  template <class Number>
  void number(Number value) {
    static_assert(std::is_unsigned_v<Number>);
    field(&value, sizeof value);
  }
  void identity(const block_identity& value) {
    const std::uint64_t words[] = {value.low, value.high};
    field(words, sizeof words);
  }

  std::span<const std::byte> bytes() const { return {bytes_.data(), size_}; }

 private:
  void append(const void* data, std::size_t size) {
    if (size == 0)
      return;
    if (size_ + size > bytes_.size())
      bytes_.resize(2 * (size_ + size));
    std::memcpy(bytes_.data() + size_, data, size);
    size_ += size;
  }

  std::vector<std::byte> bytes_ = std::vector<std::byte>(256);
  std::size_t size_ = 0;
};

} // namespace

identity_key identity_key::derive(std::span<const std::byte> seed) {
  identity_key key;
  GODWIT_CHECK(
    XXH3_generateSecret(key.secret_.data(), key.secret_.size(), seed.data(), seed.size()) == XXH_OK);
  return key;
}

identity_key identity_key::random() {
  std::random_device source;
  std::array<std::uint32_t, 16> seed{};
  for (auto& word : seed)
    word = source();
  return derive(std::as_bytes(std::span(seed)));
}

block_hasher::block_hasher(identity_key key, const cache_scope& scope) : key_(key) {
  field_writer fields(kind::scope);
  fields.text(scope.fingerprint);
  fields.number(scope.shape.layers);
  fields.number(scope.shape.kv_heads);
  fields.number(scope.shape.head_dim);
  fields.number(static_cast<std::uint32_t>(scope.shape.type));
  fields.number(scope.layout_version);
  fields.number(scope.block_tokens);
  fields.text(scope.adapter);
  fields.text(scope.profile);
  scope_ = hash(fields.bytes());
}

block_identity block_hasher::root(std::string_view tenant) const {
  field_writer fields(kind::root);
  fields.identity(scope_);
  fields.text(tenant);
  return hash(fields.bytes());
}

block_identity block_hasher::next(
  const block_identity& parent, std::span<const token_id> tokens, std::string_view media) const {
  if (tokens.size() == page_tokens && media.empty())
    return next_text(parent, tokens);
  field_writer fields(kind::block);
  fields.identity(parent);
  fields.field(tokens.data(), tokens.size_bytes());
  fields.text(media);
  return hash(fields.bytes());
}

/// The common case of next(): the same bytes, each at a place that is known beforehand.
block_identity block_hasher::next_text(const block_identity& parent, std::span<const token_id> tokens) const {
  struct {
    std::uint64_t kind_length = sizeof(std::uint64_t);
    std::uint64_t which = static_cast<std::uint64_t>(kind::block);
    std::uint64_t parent_length = 2 * sizeof(std::uint64_t);
    std::uint64_t parent[2];
    std::uint64_t tokens_length = page_tokens * sizeof(token_id);
    token_id tokens[page_tokens];
    std::uint64_t media_length = 0;
  } bytes;
  static_assert(sizeof bytes == 120);
  bytes.parent[0] = parent.low;
  bytes.parent[1] = parent.high;
  std::memcpy(bytes.tokens, tokens.data(), sizeof bytes.tokens);
  return hash(std::as_bytes(std::span(&bytes, 1)));
}

block_identity block_hasher::hash(std::span<const std::byte> bytes) const {
  const auto secret = key_.bytes();
  const auto value = XXH3_128bits_withSecret(bytes.data(), bytes.size(), secret.data(), secret.size());
  return {value.low64, value.high64};
}

} // namespace godwit
