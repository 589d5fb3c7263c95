#include "actors/handover/lease_book.hpp"

#include <algorithm>
#include <utility>

namespace godwit {

result<request_id> lease_book::open(
  std::uint64_t transfer, std::string tenant, std::vector<token_id> tokens, std::chrono::milliseconds lease) {
  if (transfer == 0 || known(transfer))
    return fail(errc::conflict, "an order of this number is known", "transfer");
  if (orders_.size() >= limits_.orders)
    return fail(errc::overloaded, "this node computes too many prompts of others: try again later");
  order fresh;
  fresh.running = ++last_;
  fresh.tenant = std::move(tenant);
  fresh.tokens = std::move(tokens);
  fresh.lease = std::clamp(lease, std::chrono::milliseconds(1), limits_.longest);
  running_.emplace(fresh.running, transfer);
  orders_.emplace(transfer, std::move(fresh));
  return last_;
}

std::uint64_t lease_book::transfer_of(request_id running) const {
  const auto found = running_.find(running);
  return found == running_.end() ? 0 : found->second;
}

bool lease_book::computed(request_id running) {
  const auto found = running_.find(running);
  if (found == running_.end())
    return false;
  orders_.at(found->second).running = 0;
  running_.erase(found);
  return true;
}

std::vector<block_id> lease_book::keep(std::uint64_t transfer, std::vector<block_id> blocks, moment now) {
  const auto found = orders_.find(transfer);
  if (found == orders_.end() || found->second.staged)
    return blocks;
  auto& which = found->second;
  const auto room = static_cast<std::size_t>(limits_.blocks - std::min(limits_.blocks, kept_));
  const auto taken = std::min(room, blocks.size());
  const auto end = blocks.begin() + static_cast<std::ptrdiff_t>(taken);
  which.blocks.assign(blocks.begin(), end);
  blocks.erase(blocks.begin(), end);
  which.staged = true;
  which.until = now + which.lease;
  kept_ += static_cast<std::uint32_t>(taken);
  return blocks;
}

result<std::span<const block_id>> lease_book::fetch(std::uint64_t transfer, block_range range, moment now) {
  const auto found = orders_.find(transfer);
  if (found == orders_.end() || !found->second.staged || found->second.until <= now)
    return fail(errc::not_found, "no blocks are kept under this number", "transfer");
  auto& which = found->second;
  const auto have = which.blocks.size();
  if (range.first > have || range.count > have - range.first)
    return fail(errc::invalid_argument, "this order has fewer blocks", "count");
  which.until = now + which.lease;
  return std::span(std::as_const(which.blocks)).subspan(range.first, range.count);
}

lease_book::remains lease_book::release(std::uint64_t transfer) {
  auto found = orders_.extract(transfer);
  if (found.empty())
    return {};
  auto& which = found.mapped();
  running_.erase(which.running);
  kept_ -= static_cast<std::uint32_t>(which.blocks.size());
  return {which.running, std::move(which.blocks), transfer};
}

std::vector<lease_book::remains> lease_book::expire(moment now) {
  std::vector<std::uint64_t> over;
  for (const auto& [transfer, which] : orders_)
    if (which.staged && which.until <= now)
      over.push_back(transfer);
  std::vector<remains> out;
  for (const auto transfer : over)
    out.push_back(release(transfer));
  return out;
}

lease_book::moment lease_book::next() const {
  auto first = moment::max();
  for (const auto& [transfer, which] : orders_)
    first = std::min(first, which.until);
  return first;
}

} // namespace godwit
