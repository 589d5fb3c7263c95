#pragma once

#include "actors/session/generation_sink.hpp"
#include "messages/catalogue.hpp"
#include "services/api/chat_request.hpp"
#include "services/api/completion.hpp"
#include "services/api/letters.hpp"
#include "services/gateway/atoms.hpp"
#include "services/gateway/call.hpp"
#include "services/gateway/generation_tries.hpp"
#include "services/gateway/stream_writer.hpp"

#include <caf/actor_clock.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace godwit {

/// What a chat completion's actor answers.
using chat_actor = generation_sink_actor::extend<
  // The end of a write to the client.
  caf::reacts_to<written_atom, bool>,
  // The client has left.
  caf::reacts_to<left_atom>,
  // Nobody can send tokens of a generation any more.
  caf::reacts_to<orphan_atom, request_id>,
  // Time to begin lost generations again.
  caf::reacts_to<again_atom>,
  // Time has passed.
  caf::reacts_to<tick_atom>,
  // The gateway goes.
  caf::reacts_to<stop_atom>>;

/// One chat completion, from its body to the last byte of its answer. In order: the body is checked, the
/// session that it names is looked up, the messages are rendered, each choice is placed with the router, and
/// tokens become the answer. A choice whose worker or router is lost is placed again behind the tokens that
/// came. Until all choices are placed and the first has a token, any failure is an ordinary refusal;
/// afterwards it is an event in the stream.
class chat_call {
 public:
  chat_call(chat_actor::pointer self, call request) : self_(self), call_(std::move(request)) {}

  void start();
  void take(schema::TokenBatch::Reader batch);
  void written(bool there);
  void left();
  void orphaned(request_id request);
  void again();
  void tick();
  void stop();

  /// How often tick() should come; under load it comes later.
  static std::chrono::milliseconds interval(const gateway_options& options);

 private:
  struct choice {
    generation_tries tries;
    generation_sinks sinks; ///< of the try under way
  };

  void render();
  void place(const letter<schema::RenderedChat>& prompt);
  /// Starts the next try of a choice.
  void begin(choice& which);
  /// The choice whose try under way has this id; null: none that still runs.
  choice* find(request_id request);
  /// A try has failed: there is another one, or the call fails.
  void lost(choice& which, const error& why);
  void pump();
  void fail(const error& failure);
  /// Ends all generations of the call.
  void cancel(schema::EndCause cause);
  void cancel(request_id request, schema::EndCause cause);
  std::string answer_id() const;
  std::size_t index_of(const choice& which) const;
  generation_tries::time now() const;

  chat_actor::pointer self_;
  call call_;
  chat_request request_;
  generation_plan plan_;
  std::vector<choice> choices_; ///< as many as were asked for, once the prompt is there
  std::optional<completion> completion_;
  std::optional<stream_writer> writer_;
  bool failed_ = false;
  std::chrono::milliseconds quiet_{0}; ///< since the last batch
  caf::actor_clock::time_point last_tick_;
};

/// Starts the actor of one chat completion.
void spawn_chat_call(caf::actor_system& system, call request);

} // namespace godwit
