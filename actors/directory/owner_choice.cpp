#include "actors/directory/owner_choice.hpp"

#include <cstdint>
#include <string_view>

namespace godwit {

namespace {

/// FNV-1a over 64 bits.
std::uint64_t fnv(std::uint64_t state, std::string_view text) {
  for (const char c : text)
    state = (state ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return state;
}

/// FNV's high bits depend little on the last characters, in which names differ: the finaliser of splitmix64
/// spreads them.
std::uint64_t weight(const session_id& session, const node_name& node) {
  // The zero between them keeps "ab" and "c" apart from "a" and "bc".
  auto state = fnv(fnv(0xcbf29ce484222325U, session.value), std::string_view("\0", 1));
  state = fnv(state, node.value);
  state = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9U;
  state = (state ^ (state >> 27)) * 0x94d049bb133111ebU;
  return state ^ (state >> 31);
}

} // namespace

const node_name* choose_owner(const session_id& session, const std::vector<node_name>& nodes) {
  const node_name* best = nullptr;
  std::uint64_t most = 0;
  for (const auto& node : nodes) {
    const auto mine = weight(session, node);
    if (best != nullptr && (mine < most || (mine == most && *best < node)))
      continue;
    best = &node;
    most = mine;
  }
  return best;
}

} // namespace godwit
