#include "kernels/ops/cpu/read_ahead.hpp"

#include <algorithm>

namespace godwit::ops::cpu {

namespace {

/// As much as a product asks for ahead of its use.
constexpr std::size_t first_bytes = 8192;

} // namespace

void ask_for(const std::byte* from, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += 64) {
    __builtin_prefetch(from + at, 0, 2);
  }
}

void tile_places::set(std::span<const packed_part> parts) {
  places_.clear();
  tiles_ = 0;
  for (const auto& part : parts) {
    places_.push_back({part.bytes().data(), part.tile_bytes(), part.tiles()});
    tiles_ += part.tiles();
  }
  gated_ = parts.size() == 2 && parts[0].tiles() == parts[1].tiles();
}

void tile_places::place::ask(std::size_t tile) const {
  ask_for(start + tile * tile_bytes, std::min(tile_bytes, first_bytes));
}

void tile_places::ask_for_first(const worker& self) const {
  std::size_t tile = first_of_share(gated_ ? tiles_ / 2 : tiles_, self.index(), self.count());
  for (const auto& each : places_) {
    if (gated_) {
      each.ask(tile);
    } else if (tile < each.tiles) {
      each.ask(tile);
      return;
    } else {
      tile -= each.tiles;
    }
  }
}

} // namespace godwit::ops::cpu
