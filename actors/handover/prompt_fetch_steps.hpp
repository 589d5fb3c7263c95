#pragma once

// The steps of what brings prompts, for its own sources: an entry is ordered, its blocks are fetched, and
// whatever fails on the way ends it. All run on the actor's thread.

#include "actors/handover/prompt_fetch.hpp"

#include <chrono>
#include <cstdint>
#include <string>

namespace godwit::fetching {

using self_pointer = prompt_fetch_behaviour::stateful_pointer<prompt_fetch_state>;
using entry = prompt_fetch_state::entry;
using stage = prompt_transfer::stage;
using ready = letter<schema::PromptReady>;
using found = letter<schema::CacheFound>;

/// The cache only looks into its index.
inline constexpr auto cache_patience = std::chrono::seconds(2);

// --- entries: prompt_entries.cpp ---

/// The entry of a request, if it is still about that transfer.
entry* find(self_pointer self, request_id request, std::uint64_t transfer);
/// The gauge of entries is theirs again.
void count(self_pointer self);
/// Tells whoever asked for the prompt how many blocks can be had, once.
void answer(entry& which, std::uint32_t blocks);
/// Counts why the rest of a prompt is computed here, once.
void blame(self_pointer self, entry& which, errc code);
/// Lets go of all that an entry has, here and on the other node.
void drop(self_pointer self, request_id request);
/// Goes on without the other node.
void give_up(self_pointer self, request_id request, errc code);
/// What the cache has found goes on to whoever asked.
/// @param waiting blocks that are there if only there were room
void pass_on(self_pointer self, const found& mail, std::uint32_t waiting);

// --- orders: prompt_orders.cpp ---

/// Has a prompt computed by a node, unless most of it is here.
caf::result<ready> take(
  self_pointer self, const letter<schema::GenerateRequest>& mail, const std::string& source);
/// Tells the other nodes that what they keep is still wanted.
void renew(self_pointer self);

// --- blocks: prompt_blocks.cpp ---

/// Makes room for blocks that are missing here, and fetches them.
void make_room(self_pointer self, request_id request, entry& which, std::uint32_t missing);

} // namespace godwit::fetching
