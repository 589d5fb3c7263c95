#pragma once

// The second page of the catalogue: who computes prompts for other nodes, and who brings their blocks. Apart
// from the first one because only a mesh whose prefill and decode stand on different nodes has these actors.

#include "messages/catalogue.hpp"
#include "messages/schemas/handover.capnp.h"

namespace godwit {

/// Computes prompts for other nodes, and gives their blocks out. Offered as `prompts`.
using prompt_desk_actor = caf::typed_actor<
  // Computes a prompt for somebody, and answers when its blocks can be fetched. They are kept until they are
  // released, until nothing was heard of it for the time of the lease, or until it is gone.
  caf::replies_to<letter<schema::PromptOrder>, common_actor>::with<letter<schema::PromptReady>>,
  // Blocks of an order; renews its lease.
  caf::replies_to<letter<schema::PromptFetch>>::with<letter<schema::PromptBlocks>>,
  // Orders that nobody wants any more.
  caf::reacts_to<letter<schema::PromptRelease>>>::extend_with<common_actor>;

/// What a prefill takes that can have prompts computed elsewhere. Offered as `intake`.
using intake_actor = caf::typed_actor<
  // Queues a prompt as prefill_actor does; the node that is named may compute it.
  caf::replies_to<letter<schema::GenerateRequest>, generation_sink_actor, placement_actor,
    std::string>::with<letter<schema::GenerateAccepted>>>;

/// Takes what the cache has found of a prompt, and what other nodes have computed of it.
using prompt_client_actor = cache_client_actor::extend<
  // An answer to a look-up that announces blocks of another node, and then the one with them.
  caf::reacts_to<letter<schema::PromptBrought>>>;

/// Beside a prefill: has prompts computed by other nodes, and brings their blocks to the device here.
using prompt_fetch_actor = caf::typed_actor<
  // Has the node that is named compute a prompt, unless most of it is here; answers with the blocks that can
  // be had there, perhaps none.
  caf::replies_to<letter<schema::GenerateRequest>, std::string>::with<letter<schema::PromptReady>>,
  // A look-up of the cache; what was computed elsewhere follows what the cache has.
  caf::reacts_to<letter<schema::CacheLookup>, prompt_client_actor>,
  // Nobody waits any more for these requests' blocks, neither for the cache's nor for those of other nodes.
  caf::reacts_to<letter<schema::CacheForgo>>>::extend_with<cache_client_actor, common_actor>;

/// What the two that hand prompts over ask of a cache.
using cache_room_actor = caf::typed_actor<
  // The longest known prefix on the device, for somebody.
  caf::reacts_to<letter<schema::CacheHold>, cache_client_actor>,
  // How many blocks came free.
  caf::replies_to<letter<schema::CacheRoom>>::with<letter<schema::CacheEvicted>>>;

} // namespace godwit
