#pragma once

#include "actors/model_card.hpp"
#include "actors/session/journal.hpp"
#include "actors/session/journal_clerks.hpp"
#include "actors/session/prompt_plan.hpp"
#include "actors/session/retry_pause.hpp"
#include "actors/session/session_limits.hpp"
#include "actors/session/session_machine.hpp"
#include "actors/session/session_rules.hpp"
#include "actors/session/time_source.hpp"
#include "actors/session/token_stream.hpp"
#include "messages/letter.hpp"
#include "messages/result.hpp"
#include "messages/schemas/generation.capnp.h"
#include "messages/schemas/session.capnp.h"
#include "messages/trace_context.hpp"

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace godwit {

/// What a session's core asks of its surroundings. Answers come back by the core's methods, later or at once.
class session_ports {
 public:
  virtual ~session_ports() = default;
  /// Write; answered by appended().
  virtual void append(append_request request) = 0;
  /// Ask the journal; what the question returns is called with the session's other work, later or at once.
  virtual void consult(journal_question question) = 0;
  /// Claim the session from an epoch; `done` is called as that.
  virtual void claim(epoch_t expected, journal_record claimed, journal::claimed_head done) = 0;
  /// Make a prompt; answered by prepared().
  virtual void prepare(prompt_task task) = 0;
  /// Start a generation; answered by generating(), then tokens().
  virtual void generate(letter<schema::GenerateRequest> request) = 0;
  virtual void grant(request_id request, std::uint32_t tokens) = 0;
  virtual void abandon(request_id request, schema::EndCause cause) = 0;
  /// The small state behind some record, every few hundred of them: a place that events can be made again
  /// from.
  virtual void passed(const event_maker& order) = 0;
  /// Records are committed and applied; these are their events, perhaps none.
  virtual void committed(const std::vector<session_event>& events) = 0;
  /// Call tick() no later than in so long.
  virtual void wake_in(std::chrono::milliseconds delay) = 0;
  /// The journal refuses this owner for good.
  virtual void lost(const error& why) = 0;
  /// Something went wrong that is being dealt with.
  virtual void report(const error& what) = 0;
};

struct session_core_config {
  std::shared_ptr<journal> records;
  model_card model;
  session_owner owner;
  std::shared_ptr<const time_source> time;
  std::function<request_id()> next_request;
  session_limits limits;
};

/// A live session without an actor: takes calls one after the other, decides each against the committed
/// state, writes, and lets what follows happen only when it is written. At most one append or one question to
/// the journal is under way; what comes meanwhile waits, in bounded queues.
class session_core {
 public:
  template <class Schema>
  using answer = std::function<void(result<letter<Schema>>)>;

  session_core(session_id session, session_core_config config, session_ports& ports);

  using finished = std::function<void(const result<void>&)>;

  /// Replays the journal, before anything else. Calls back with the journal's errors, `corrupt`,
  /// `unsupported`; not at all if the session was stopped meanwhile, or lost.
  /// @param epoch the session is to be claimed from this one only; empty: from the one it is in
  void revive(std::optional<epoch_t> epoch, finished done);
  /// Claims the session now and not when something is to be written. Calls back as revive() does; after
  /// `stale_epoch` the session is lost
  void claim(finished done);
  /// Begins to work: a turn that was running goes on.
  void start() { go_on(); }

  // Calls. Each is answered once, when its outcome is in the journal.
  /// @param trace for which the message's turn is run as well, while this is its owner
  void post(letter<schema::PostMessage> message, answer<schema::MessageAccepted> done, kept_trace trace = {});
  void cancel(turn_number turn, schema::EndCause cause, answer<schema::TurnState> done);
  void close(std::string cause, answer<schema::SessionInfo> done);
  /// Takes no more messages and starts no more turns; calls back when the running one has ended.
  void drain(std::function<void()> done);
  /// Gives the generation up without ending the turn: the next owner goes on with it.
  void stop();
  /// Ends as if the journal had refused this owner.
  void fence(const error& why);

  // Answers of the ports.
  void appended(result<sequence_number> outcome);
  void prepared(std::uint64_t ticket, result<prepared_prompt> outcome);
  void generating(request_id request, result<void> outcome);
  /// Nobody can send tokens of this generation any more.
  void orphaned(request_id request);
  void tokens(schema::TokenBatch::Reader batch);
  void tick();

  const session_machine& machine() const { return machine_; }
  /// Nothing runs, is written, or waits.
  bool quiet() const;
  /// Turns that run here now, 0 or 1.
  std::uint32_t active() const;
  bool draining() const { return draining_; }
  /// For which the generation of now, or the running turn, is.
  kept_trace trace() const;

 private:
  struct post_call {
    letter<schema::PostMessage> message;
    answer<schema::MessageAccepted> done;
    kept_trace trace;
    std::optional<prepared_prompt> prompt;
  };
  struct cancel_call {
    turn_number turn;
    schema::EndCause cause;
    answer<schema::TurnState> done;
  };
  struct close_call {
    std::string cause;
    answer<schema::SessionInfo> done;
  };
  using call = std::variant<post_call, cancel_call, close_call>;

  /// An append under way.
  struct pending_write {
    journal_records records;
    schema::EndCause cause; ///< for the generation, should the records end its turn
    std::function<void(const result<void>&)> done;
  };
  struct pending_prompt {
    std::uint64_t ticket;
    turn_number turn; ///< 0: for the first call in the queue
  };

  std::int64_t now() const { return config_.time->steady_ms(); }
  std::int64_t wall() const { return config_.time->wall_ms(); }

  // Work: session_core.cpp.
  void enqueue(call next);
  void go_on();
  bool step();
  bool decide();
  bool decide(post_call& post);
  bool decide(cancel_call& cancel);
  bool decide(close_call& close);
  void finish_call() { calls_.pop_front(); }
  /// A turn is for a trace, unless it has one.
  void trace_turn(turn_number turn, const kept_trace& trace);
  bool own_for_call();
  void refuse_call(const error& why);
  void refuse_calls(const error& why);
  void expire();
  void schedule();
  void settle_drain();

  // Writing: session_commit.cpp.
  template <class Answer>
  void ask(std::function<Answer(journal&)> question, std::function<void(const Answer&)> then);
  void ask_head(std::function<void(const result<journal_head>&)> then);
  void own(const finished& then);
  bool is_own_claim(const journal_head& head) const;
  /// Loses the session if that is what a failure means. @returns whether it does
  bool lost_by(const error& why);
  void read_tail(const finished& then);
  void write(journal_records records, schema::EndCause cause, std::function<void(const result<void>&)> done);
  void settle(schema::EndCause cause);
  bool reconcile();
  void reconciled(epoch_t epoch, const result<void>& read);
  void lose(const error& why);

  // The running turn: session_turn.cpp.
  bool drive_turn();
  bool prompt_turn(const session_turn& turn);
  bool commit_tokens();
  void start_stream();
  void stream_failed(const error& why, bool begun);
  void try_failed(const error& why, bool begun);
  void end_failed(const error& why);
  void check_stall();
  const answer_text& running_text();
  std::string held_text();

  session_core_config config_;
  session_ports& ports_;
  session_machine machine_;
  bool revived_ = false; ///< the journal was read: what comes now is new
  bool served_ = false;  ///< this node has the session's model
  bool owned_ = false;   ///< the journal takes our records
  epoch_t epoch_ = 0;
  std::optional<error> lost_;
  bool working_ = false; ///< inside go_on()

  std::deque<call> calls_;
  std::map<turn_number, kept_trace> traces_; ///< of turns that have not ended
  std::optional<pending_write> writing_;
  bool unsure_ = false; ///< an append may or may not have been written
  bool asking_ = false; ///< the journal was asked whose the session is, or what it has
  std::optional<pending_prompt> preparing_;
  std::uint64_t tickets_ = 0;
  retry_pause pause_;      ///< of the running turn
  retry_pause sync_pause_; ///< of asking the journal what it has
  retry_pause expiry_pause_;
  bool expiring_ = false;

  // Of the running turn; settle() clears them when another one runs.
  turn_number turn_ = 0;
  std::optional<token_stream> stream_;
  std::optional<answer_text> text_;
  std::optional<prepared_prompt> prompt_;
  std::optional<error> failure_; ///< the turn is to end with this
  error last_failure_;
  unsigned failures_ = 0; ///< since its last committed token, in this process
  std::int64_t progress_ = 0;
  std::optional<std::int64_t> busy_since_;

  bool draining_ = false;
  std::vector<std::function<void()>> drained_;
};

} // namespace godwit
