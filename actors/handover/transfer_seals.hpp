#pragma once

#include "actors/cache/block_identity.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace godwit {

/// By what a block that came from another node is known.
struct block_seal {
  block_identity name;
  std::uint64_t check_low = 0;
  std::uint64_t check_high = 0;

  bool operator==(const block_seal&) const = default;
};

/// The seals of one transfer's blocks. Both nodes make them by themselves, from the transfer's two numbers
/// and from what the blocks stand for: model, KV shape and layout, tenant, tokens. So a block of another
/// text, model or transfer, one at another place, and one whose pages were damaged or used for something else
/// meanwhile do not check. (The names of a node's own index are of no use here: each node has its own
/// secret.)
class transfer_seals {
 public:
  /// @param tokens the blocks are those that they fill
  transfer_seals(std::uint64_t transfer, std::uint64_t salt, const cache_scope& scope,
    std::string_view tenant, std::span<const token_id> tokens);

  std::uint32_t blocks() const { return static_cast<std::uint32_t>(names_.size()); }

  /// @pre block < blocks()
  block_seal seal(std::uint32_t block, std::span<const std::byte> pages) const;
  /// Whether these are the pages of that block.
  bool checks(std::uint32_t block, const block_seal& said, std::span<const std::byte> pages) const;

 private:
  identity_key key_;
  std::vector<block_identity> names_;
};

} // namespace godwit
