#include "actors/handover/transfer_seals.hpp"

#include "actors/cache/page_hashing.hpp"
#include "messages/check.hpp"

#include <array>

namespace godwit {
namespace {

identity_key key_of(std::uint64_t transfer, std::uint64_t salt) {
  const std::array<std::uint64_t, 2> seed{transfer, salt};
  return identity_key::derive(std::as_bytes(std::span(seed)));
}

} // namespace

transfer_seals::transfer_seals(std::uint64_t transfer, std::uint64_t salt, const cache_scope& scope,
  std::string_view tenant, std::span<const token_id> tokens)
  : key_(key_of(transfer, salt)), names_(tokens.size() / page_tokens) {
  const block_hasher hasher(key_, scope);
  hasher.chain(hasher.root(tenant), tokens.first(names_.size() * page_tokens), names_);
}

block_seal transfer_seals::seal(std::uint32_t block, std::span<const std::byte> pages) const {
  GODWIT_CHECK(block < names_.size());
  const auto& name = names_[block];
  const std::array<std::uint64_t, 4> head{name.low, name.high, block, pages.size()};
  XXH3_state_t state;
  XXH3_128bits_reset_withSecret(&state, key_.bytes().data(), identity_key::size);
  XXH3_128bits_update(&state, head.data(), sizeof head);
  XXH3_128bits_update(&state, pages.data(), pages.size());
  const auto sum = XXH3_128bits_digest(&state);
  return {name, sum.low64, sum.high64};
}

bool transfer_seals::checks(
  std::uint32_t block, const block_seal& said, std::span<const std::byte> pages) const {
  return block < names_.size() && said == seal(block, pages);
}

} // namespace godwit
