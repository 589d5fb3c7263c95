#pragma once

#include "kernels/memory/kv_layout.hpp"
#include "messages/ids.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace godwit {

/// 128 bits that stand for a block of KV: what is in it and everything before it.
struct block_identity {
  std::uint64_t low = 0;
  std::uint64_t high = 0;

  bool operator==(const block_identity&) const = default;
};

/// What must be equal for two blocks with equal tokens to be the same block.
struct cache_scope {
  std::string fingerprint; ///< of the model: weights, quantisation, kernels
  kv_shape shape;
  std::uint32_t layout_version = kv_layout_version;
  std::uint32_t block_tokens = page_tokens;
  std::string adapter; ///< empty: none
  std::string profile; ///< of a lossy compression; empty: exact
};

/// The secret of a node's identities: who does not know it cannot make two blocks collide.
class identity_key {
 public:
  /// From any bytes; equal bytes give equal keys.
  static identity_key derive(std::span<const std::byte> seed);
  /// A key that nobody knows.
  static identity_key random();

  std::span<const std::byte> bytes() const { return secret_; }

  static constexpr std::size_t size = 192;

 private:
  std::array<std::byte, size> secret_{};
};

/// Computes identities: XXH3-128 under a secret, over fields whose lengths are hashed too, so that no two
/// lists of fields give the same bytes. A block's identity covers its parent's, hence all tokens before it.
class block_hasher {
 public:
  block_hasher(identity_key key, const cache_scope& scope);

  /// The identity that stands for "nothing before": where the chain of a tenant starts. The same text under
  /// two tenants never meets.
  block_identity root(std::string_view tenant) const;

  /// The block that follows `parent`.
  /// @param media digest of what stands at placeholder tokens in this block (images, audio); empty: none
  block_identity next(
    block_identity parent, std::span<const token_id> tokens, std::string_view media = {}) const;

  /// The names of blocks of text that follow each other.
  /// @param names as many as `tokens` fill
  void chain(block_identity parent, std::span<const token_id> tokens, std::span<block_identity> names) const;

  /// False if its blocks are approximations: they have a profile.
  bool exact() const { return exact_; }

 private:
  block_identity hash(std::span<const std::byte> bytes) const;

  identity_key key_;
  block_identity scope_;
  bool exact_;
};

} // namespace godwit

template <>
struct std::hash<godwit::block_identity> {
  /// The bits are as good as random already.
  std::size_t operator()(const godwit::block_identity& identity) const noexcept {
    return static_cast<std::size_t>(identity.low);
  }
};
