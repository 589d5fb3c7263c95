#pragma once

// Every actor of the mesh and what it answers: the one file to read to learn who talks to whom. A handler's
// comment stands above its signature. Requests have a finite time-out at the sender; a failure is a
// caf::error made by to_caf_error().

#include "messages/actor_types.hpp"

#include <caf/replies_to.hpp>
#include <caf/typed_actor.hpp>

#include <string>

namespace godwit {

/// What every actor answers beside its own protocol.
using common_actor = caf::typed_actor<
  // How it is, and its gauges.
  caf::replies_to<status_atom>::with<letter<schema::ActorStatus>>,
  // Takes no new work from now on; answers when nothing runs any more.
  caf::replies_to<drain_atom>::with<letter<schema::Drained>>,
  // Ends at once.
  caf::reacts_to<stop_atom>>;

/// Vocabulary and chat template of one model.
using tokenizer_actor = caf::typed_actor<
  // Text to ids.
  caf::replies_to<letter<schema::EncodeRequest>>::with<letter<schema::TokenIds>>,
  // Ids to text.
  caf::replies_to<letter<schema::DecodeRequest>>::with<letter<schema::DecodedText>>,
  // Messages to the model's prompt.
  caf::replies_to<letter<schema::RenderRequest>>::with<letter<schema::RenderedChat>>>::
  extend_with<common_actor>;

/// The consumer of one or more generations: a session, or a chat completion.
using generation_sink_actor = caf::typed_actor<
  // The next tokens of a generation, or its end.
  caf::reacts_to<letter<schema::TokenBatch>>>;

/// Places generations on workers and remembers where they are.
using router_actor = caf::typed_actor<
  // Starts a generation; its tokens go to the sink.
  caf::replies_to<letter<schema::GenerateRequest>,
    generation_sink_actor>::with<letter<schema::GenerateAccepted>>,
  // The consumer can take more tokens of a generation.
  caf::reacts_to<letter<schema::CreditGrant>>,
  // Ends generations; each still sends one last batch.
  caf::reacts_to<letter<schema::CancelRequest>>,
  // Why a request was placed where it is.
  caf::replies_to<letter<schema::RouteExplainRequest>>::with<letter<schema::GenerateAccepted>>>::
  extend_with<common_actor>;

/// Learns how the requests that it placed get on.
using placement_actor = caf::typed_actor<
  // Prompts that are done, requests that have ended.
  caf::reacts_to<letter<schema::WorkerReport>>>;

/// Takes blocks that the cache found.
using cache_client_actor = caf::typed_actor<
  // The longest known prefix on the device, perhaps none; then, if so announced, what was brought there.
  caf::reacts_to<letter<schema::CacheFound>>>;

/// What sessions ask of the cache.
using cache_tiers_actor = caf::typed_actor<
  // What each tier has of a text.
  caf::replies_to<letter<schema::CacheProbe>>::with<letter<schema::CacheHoldings>>,
  // Moves a text to the lowest tier; answers when its pages are free, with what each tier has then.
  caf::replies_to<letter<schema::CacheSuspend>>::with<letter<schema::CacheHoldings>>,
  // Keeps a prefix for a while, within the quota of its tenant.
  caf::replies_to<letter<schema::CachePin>>::with<letter<schema::CachePinned>>,
  // Ends a pin before its time.
  caf::reacts_to<letter<schema::CacheUnpin>>>;

/// Which full blocks of which tokens are in the page pool, and in the tiers below it.
using cache_actor = caf::typed_actor<
  // Finds the longest known prefix for somebody.
  caf::reacts_to<letter<schema::CacheLookup>, cache_client_actor>,
  // Remembers computed blocks.
  caf::reacts_to<letter<schema::CacheInsert>>,
  // Takes back what was found and not needed.
  caf::reacts_to<letter<schema::CacheRelease>>,
  // Stops bringing what nobody waits for any more.
  caf::reacts_to<letter<schema::CacheForgo>>,
  // Gives up blocks that nobody uses.
  caf::replies_to<letter<schema::CacheEvict>>::with<letter<schema::CacheEvicted>>>::
  extend_with<cache_tiers_actor, common_actor>;

/// Decides what runs in a step.
using step_client_actor = caf::typed_actor<
  // What became of the rows; answered with the next submission.
  caf::reacts_to<letter<schema::StepResult>>,
  // Pages came free: starved rows may be offered again.
  caf::reacts_to<letter<schema::BlocksFreed>>>;

/// The model's weights and the pages of its sequences; runs one step at a time.
using device_actor = caf::typed_actor<
  // Who decides: prefill, then decode.
  caf::reacts_to<join_atom, step_client_actor, step_client_actor>,
  // What a role wants to run next.
  caf::reacts_to<letter<schema::StepSubmission>>,
  // Sequences that nobody needs any more.
  caf::reacts_to<letter<schema::CloseSequences>>>::extend_with<common_actor>;

/// Prompts in progress: the front of a worker.
using prefill_actor = caf::typed_actor<
  // Queues a prompt; its tokens will go to the sink, reports to whoever placed it.
  caf::replies_to<letter<schema::GenerateRequest>, generation_sink_actor,
    placement_actor>::with<letter<schema::GenerateAccepted>>,
  // Passed on to decode.
  caf::reacts_to<letter<schema::CreditGrant>>,
  // Stops prompts, and passes it on to decode, which sends the last batches.
  caf::reacts_to<letter<schema::CancelRequest>>,
  // A sequence lost its pages: computes them again.
  caf::reacts_to<letter<schema::Recompute>>,
  // Requests that are over.
  caf::reacts_to<letter<schema::StreamsEnded>>>::extend_with<step_client_actor, cache_client_actor,
  common_actor>;

/// Streams of tokens, from the acceptance of a request to its last batch.
using decode_actor = caf::typed_actor<
  // Who computes prompts.
  caf::reacts_to<join_atom, prefill_actor>,
  // A request was accepted: its first token will come with a step's result.
  caf::reacts_to<letter<schema::GenerateRequest>, generation_sink_actor, placement_actor>,
  // The consumer can take more tokens.
  caf::reacts_to<letter<schema::CreditGrant>>,
  // Ends streams, each with one last batch.
  caf::reacts_to<letter<schema::CancelRequest>>>::extend_with<step_client_actor, common_actor>;

/// Where a session's events go: a gateway's stream.
using event_sink_actor = caf::typed_actor<
  // The next events in order, or the end of the subscription.
  caf::reacts_to<letter<schema::EventBatch>>>;

/// One live session.
using session_actor = caf::typed_actor<
  // The session as it is.
  caf::replies_to<info_atom>::with<letter<schema::SessionInfo>>,
  // Messages so far.
  caf::replies_to<transcript_atom>::with<letter<schema::Transcript>>,
  // Takes a message; answers when it is in the journal. The turn runs whoever listens.
  caf::replies_to<letter<schema::PostMessage>>::with<letter<schema::MessageAccepted>>,
  // Events from a place on, past ones and those to come.
  caf::replies_to<letter<schema::SubscribeRequest>, event_sink_actor>::with<letter<schema::Subscribed>>,
  // The subscriber can take more events.
  caf::reacts_to<letter<schema::EventCredit>>,
  // The subscriber is gone.
  caf::reacts_to<letter<schema::Unsubscribe>>,
  // Stops the running turn; what was released stays.
  caf::replies_to<letter<schema::CancelTurn>>::with<letter<schema::TurnState>>,
  // A new session with the same past.
  caf::replies_to<letter<schema::ForkRequest>>::with<letter<schema::SessionInfo>>,
  // Moves its KV to the lowest tier and frees memory; the next message goes on from there.
  caf::replies_to<suspend_atom>::with<letter<schema::SessionInfo>>,
  // Keeps what the cache has of it on the device for so many seconds, in place of an earlier pin; tenant and
  // tokens are the session's own.
  caf::replies_to<letter<schema::CachePin>>::with<letter<schema::CachePinned>>,
  // Ends the session's pin, if it has one; answers with what is pinned then: nothing.
  caf::replies_to<letter<schema::CacheUnpin>>::with<letter<schema::CachePinned>>,
  // Ends the session for good: its turns, its streams. The journal stays until the directory erases it.
  caf::replies_to<letter<schema::CloseSession>>::with<letter<schema::SessionInfo>>,
  // Whether the actor ends now because nothing runs and nobody listens. The journal stays.
  caf::replies_to<passivate_atom>::with<bool>,
  // Tokens of the turn that this session asked the router for.
  caf::reacts_to<letter<schema::TokenBatch>>>::extend_with<common_actor>;

/// Which session lives where.
using directory_actor = caf::typed_actor<
  // Opens a session.
  caf::replies_to<letter<schema::SessionSettings>>::with<letter<schema::SessionInfo>>,
  // The actor of a session, revived from its journal if need be.
  caf::replies_to<letter<schema::LocateRequest>>::with<session_actor>,
  // A tenant's sessions, in the order of their ids.
  caf::replies_to<letter<schema::ListRequest>>::with<letter<schema::SessionList>>,
  // Closes a session and erases its journal.
  caf::replies_to<erase_atom,
    letter<schema::LocateRequest>>::with<letter<schema::SessionInfo>>>::extend_with<common_actor>;

/// The roles of this process.
using node_actor = caf::typed_actor<
  // The node with all of its actors.
  caf::replies_to<info_atom>::with<letter<schema::NodeStatus>>,
  // An actor belongs to the node from now on, in place of an earlier one of that name. Draining goes from the
  // latest name to the first.
  caf::reacts_to<join_atom, std::string, common_actor>,
  // A part cannot be kept running: its name, and why. The node is not ready any more.
  caf::reacts_to<escalate_atom, std::string, std::string>>::extend_with<common_actor>;

/// Keeps actors running, and says so when it cannot. Its status has a gauge of restarts for each child.
using supervisor_actor = common_actor;

} // namespace godwit
