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

/// What a hash stands for: the last byte of what is hashed, so that a root is never taken for a block.
enum class kind : std::uint8_t { scope = 1, root = 2, block = 3 };

/// Layout of what is hashed; part of every identity.
constexpr std::uint32_t identity_version = 2;

/// The last 8 bytes of what is hashed: what it is, and two lengths.
constexpr std::uint64_t closing(kind which, std::uint64_t tokens = 0, std::uint64_t media = 0) {
  return std::uint64_t{static_cast<std::uint8_t>(which)} << 56U | media << 24U | tokens;
}

/// Fields one after the other, each behind its length in 8 little-endian bytes.
class field_writer {
 public:
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
  /// The same without a length.
  void append(const void* data, std::size_t size) {
    if (size == 0)
      return;
    if (size_ + size > bytes_.size())
      bytes_.resize(2 * (size_ + size));
    std::memcpy(bytes_.data() + size_, data, size);
    size_ += size;
  }

  std::span<const std::byte> finish(std::uint64_t last) {
    append(&last, sizeof last);
    return {bytes_.data(), size_};
  }

 private:
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

block_hasher::block_hasher(identity_key key, const cache_scope& scope)
  : key_(key), exact_(scope.profile.empty()) {
  field_writer fields;
  fields.number(identity_version);
  fields.text(scope.fingerprint);
  fields.number(scope.shape.layers);
  fields.number(scope.shape.kv_heads);
  fields.number(scope.shape.head_dim);
  fields.number(static_cast<std::uint32_t>(scope.shape.type));
  fields.number(scope.layout_version);
  fields.number(scope.block_tokens);
  fields.text(scope.adapter);
  fields.text(scope.profile);
  scope_ = hash(fields.finish(closing(kind::scope)));
}

block_identity block_hasher::root(std::string_view tenant) const {
  field_writer fields;
  fields.identity(scope_);
  fields.text(tenant);
  return hash(fields.finish(closing(kind::root)));
}

block_identity block_hasher::next(
  block_identity parent, std::span<const token_id> tokens, std::string_view media) const {
  if (tokens.size() == page_tokens && media.empty()) {
    block_identity name;
    chain(parent, tokens, {&name, 1});
    return name;
  }
  GODWIT_CHECK(tokens.size() < 1U << 24U && media.size() <= ~std::uint32_t{0});
  field_writer fields;
  const std::uint64_t words[] = {parent.low, parent.high};
  fields.append(words, sizeof words);
  fields.append(tokens.data(), tokens.size_bytes());
  fields.append(media.data(), media.size());
  return hash(fields.finish(closing(kind::block, tokens.size(), media.size())));
}

/// Blocks of text, the common case: the same bytes as in next(), each at a place that is known beforehand. A
/// look-up is a chain of these, so that what counts is the time from a parent to its child: XXH3 takes in its
/// first 16 bytes last, all else is computed while the parent is still on its way, which stays in registers
/// as everything is inlined.
[[gnu::flatten]] void block_hasher::chain(
  block_identity parent, std::span<const token_id> tokens, std::span<block_identity> names) const {
  GODWIT_CHECK(tokens.size() == names.size() * page_tokens);
  struct {
    std::uint64_t parent[2];
    token_id tokens[page_tokens];
    std::uint64_t last = closing(kind::block, page_tokens);
  } bytes;
  static_assert(sizeof bytes == 88);
  const auto* const secret = key_.bytes().data();
  const auto* from = tokens.data();
  for (auto& name : names) {
    bytes.parent[0] = parent.low;
    bytes.parent[1] = parent.high;
    std::memcpy(bytes.tokens, from, sizeof bytes.tokens);
    from += page_tokens;
    const auto value = XXH3_128bits_withSecret(&bytes, sizeof bytes, secret, identity_key::size);
    name = parent = {value.low64, value.high64};
  }
}

block_identity block_hasher::hash(std::span<const std::byte> bytes) const {
  const auto secret = key_.bytes();
  const auto value = XXH3_128bits_withSecret(bytes.data(), bytes.size(), secret.data(), secret.size());
  return {value.low64, value.high64};
}

} // namespace godwit
