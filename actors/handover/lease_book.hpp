#pragma once

#include "actors/handover/fetch_window.hpp"
#include "kernels/memory/kv_layout.hpp"
#include "messages/ids.hpp"
#include "messages/result.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace godwit {

struct lease_limits {
  std::size_t orders = 256;                  ///< that are computed, wait for it, or are kept
  std::uint32_t blocks = 0;                  ///< that may be kept
  std::chrono::milliseconds longest{60'000}; ///< lease
};

/// What other nodes have ordered, and the blocks that are kept for them. A lease begins when its blocks are
/// there, is renewed whenever somebody asks for some, and ends by release, by its time, or with its order.
/// Blocks are never given away: whoever takes one out of the book lets its reference go.
class lease_book {
 public:
  using moment = std::chrono::steady_clock::time_point;

  /// What is left to be done when an order is over.
  struct remains {
    request_id running = 0;       ///< its generation goes on: cancel it; 0: it is over
    std::vector<block_id> blocks; ///< to be released
    std::uint64_t transfer = 0;
  };

  explicit lease_book(lease_limits limits) : limits_(limits) {}

  /// Takes an order. @returns the number of its own generation; `conflict` for a transfer that is known,
  /// `overloaded` when there are too many
  result<request_id> open(std::uint64_t transfer, std::string tenant, std::vector<token_id> tokens,
    std::chrono::milliseconds lease);
  /// The transfer of a generation; 0: it is unknown.
  std::uint64_t transfer_of(request_id running) const;
  /// The generation is over; its blocks are being looked up. @returns false if it is not wanted any more
  bool computed(request_id running);
  const std::string& tenant(std::uint64_t transfer) const { return orders_.at(transfer).tenant; }
  std::span<const token_id> tokens(std::uint64_t transfer) const { return orders_.at(transfer).tokens; }

  /// Blocks that were found for an order, from the first on.
  /// @returns those that are not kept, because nobody wants them any more or there are too many: the caller's
  /// to release
  std::vector<block_id> keep(std::uint64_t transfer, std::vector<block_id> blocks, moment now);
  /// Blocks of an order, and renews its lease.
  /// @returns `not_found` when it is not there or not computed yet, `invalid_argument` for blocks that it has
  /// not
  result<std::span<const block_id>> fetch(std::uint64_t transfer, block_range range, moment now);

  /// Ends an order. An unknown one is no mistake.
  remains release(std::uint64_t transfer);
  /// Ends the leases whose time is over.
  std::vector<remains> expire(moment now);

  bool known(std::uint64_t transfer) const { return orders_.contains(transfer); }
  std::size_t size() const { return orders_.size(); }
  /// Blocks that are kept.
  std::uint32_t kept() const { return kept_; }
  /// When the first lease ends; moment::max(): there is none.
  moment next() const;

 private:
  struct order {
    request_id running = 0;
    std::string tenant;
    std::vector<token_id> tokens;
    std::chrono::milliseconds lease{0};
    std::vector<block_id> blocks;
    moment until = moment::max();
    bool staged = false;
  };

  lease_limits limits_;
  std::map<std::uint64_t, order> orders_;
  std::map<request_id, std::uint64_t> running_;
  request_id last_ = 0;
  std::uint32_t kept_ = 0;
};

} // namespace godwit
