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
