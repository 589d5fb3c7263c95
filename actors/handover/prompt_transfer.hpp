#pragma once

#include "actors/handover/fetch_window.hpp"
#include "actors/handover/transfer_seals.hpp"
#include "kernels/memory/kv_layout.hpp"
#include "messages/ids.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace godwit {

struct transfer_limits {
  std::uint32_t min_tokens = 512;            ///< a prompt of which fewer are to be computed is computed here
  std::chrono::milliseconds compute{60'000}; ///< for the other node to compute the prompt, its queue included
  std::chrono::milliseconds fetch{5'000};    ///< for the answer to one question for blocks
  std::chrono::milliseconds bring{30'000};   ///< for all blocks of a prompt
  std::chrono::milliseconds lease{15'000};   ///< the other node keeps blocks so long after it heard from here
  std::uint64_t request_bytes = std::uint64_t{4} << 20; ///< of one question's answer, rounded up to a block
  std::uint32_t requests = 2;                           ///< questions of a prompt without an answer
};

/// A prompt that another node computes for this one: from the question whether that is worth while to the
/// last block. An event at a time when it has no place is refused with `false`, and changes nothing. Whoever
/// has it keeps the time and sends what is to be sent; dropping it at any time is right, if blocks() go back.
class prompt_transfer {
 public:
  enum class stage : std::uint8_t {
    probing,  ///< the tiers here are asked what they have
    ordered,  ///< the other node computes
    ready,    ///< its blocks can be fetched; the request waits for its turn
    looking,  ///< it is the request's turn: the cache here is asked
    room,     ///< blocks of the pool are wanted
    fetching, ///< and are being filled
    over,
  };

  /// @param tokens of the whole request
  prompt_transfer(
    std::uint64_t transfer, std::uint64_t salt, std::string tenant, std::vector<token_id> tokens)
    : transfer_(transfer), salt_(salt), tenant_(std::move(tenant)), tokens_(std::move(tokens)) {}

  std::uint64_t transfer() const { return transfer_; }
  std::uint64_t salt() const { return salt_; }
  const std::string& tenant() const { return tenant_; }
  stage at() const { return at_; }
  /// Full blocks that the prompt has. Its last token is in none of them: its logits are wanted here.
  std::uint32_t full_blocks() const { return static_cast<std::uint32_t>((tokens_.size() - 1) / page_tokens); }
  /// What to order: the full blocks and one token more, so that a look-up there finds all of them.
  std::span<const token_id> order() const {
    return std::span(tokens_).first(std::size_t{full_blocks()} * page_tokens + 1);
  }

  /// What the tiers here have of it. @returns whether the rest is worth an order
  bool probed(std::uint32_t known_tokens, const transfer_limits& limits);
  /// The order was carried out.
  /// @param cached tokens that the other node had already
  /// @returns false also for numbers that make no sense, or when there is nothing to fetch
  bool computed(std::uint32_t blocks, std::uint32_t cached);
  /// It is the request's turn; again, if the last one ended for lack of room.
  bool look();
  /// What the cache has brought to the device. @returns blocks that are to be fetched behind those; 0: it is
  /// over
  std::uint32_t found(std::uint32_t local_blocks);
  /// The device has no room now; it is looked up again.
  bool no_room();
  /// There are blocks to fill, as many as found() said.
  bool begin(std::vector<block_id> blocks, std::uint32_t per_request, std::uint32_t requests);

  /// The next question for the other node.
  std::optional<block_range> next() { return window_ ? window_->next() : std::nullopt; }
  bool came(block_range asked, std::uint32_t good) { return window_ && window_->came(asked, good); }
  bool finished() const { return window_ && window_->over(); }
  /// Questions without an answer.
  std::size_t open() const { return window_ ? window_->open() : 0; }

  /// Blocks of the pool, in the order of the prompt: the first of them is block first().
  std::span<const block_id> blocks() const { return blocks_; }
  block_id block(std::uint32_t of_prompt) const { return blocks_[of_prompt - local_]; }
  std::uint32_t first() const { return local_; }
  /// The other node's blocks that there are to fetch: none is at this place or behind.
  std::uint32_t ready_blocks() const { return ready_; }
  /// Of blocks(), those that are filled.
  std::uint32_t good() const { return window_ ? window_->good() : 0; }
  /// Of all blocks that are here then, those that were computed for this very request, and not found by
  /// anybody.
  std::uint32_t fresh() const;
  /// Tokens of blocks [first, first + count).
  std::span<const token_id> tokens_of(block_range range) const {
    return std::span(tokens_).subspan(
      std::size_t{range.first} * page_tokens, std::size_t{range.count} * page_tokens);
  }
  std::span<const token_id> tokens() const { return tokens_; }

 private:
  std::uint64_t transfer_;
  std::uint64_t salt_;
  std::string tenant_;
  std::vector<token_id> tokens_;
  stage at_ = stage::probing;
  std::uint32_t ready_ = 0;  ///< blocks that the other node has
  std::uint32_t cached_ = 0; ///< of these, those that it had found
  std::uint32_t local_ = 0;  ///< blocks that the cache here had
  std::vector<block_id> blocks_;
  std::optional<fetch_window> window_;
};

} // namespace godwit
