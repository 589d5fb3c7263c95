#include "actors/session/session_core.hpp"

#include "actors/session/session_views.hpp"
#include "messages/text.hpp"

#include <algorithm>
#include <utility>

namespace godwit {

session_core::session_core(session_id session, session_core_config config, session_ports& ports)
  : config_(std::move(config)), ports_(ports), machine_(std::move(session)),
    pause_(config_.limits.first_pause, config_.limits.longest_pause),
    sync_pause_(config_.limits.first_pause, config_.limits.longest_pause),
    expiry_pause_(config_.limits.first_pause, config_.limits.longest_pause) {
  auto& limits = config_.limits;
  for (auto* least_one : {&limits.tokens_per_record, &limits.read_page})
    *least_one = std::max<std::size_t>(*least_one, 1);
  limits.token_credit = std::max(limits.token_credit, 1U);
  limits.attempts = std::max(limits.attempts, 1U);
}

void session_core::post(
  letter<schema::PostMessage> message, answer<schema::MessageAccepted> done, kept_trace trace) {
  enqueue(post_call{std::move(message), std::move(done), std::move(trace), std::nullopt});
}

void session_core::cancel(turn_number turn, schema::EndCause cause, answer<schema::TurnState> done) {
  enqueue(cancel_call{turn, cause, std::move(done)});
}

void session_core::close(std::string cause, answer<schema::SessionInfo> done) {
  enqueue(close_call{std::move(cause), std::move(done)});
}

void session_core::drain(std::function<void()> done) {
  draining_ = true;
  drained_.push_back(std::move(done));
  go_on();
}

void session_core::stop() {
  if (stream_ && !stream_->ended())
    ports_.abandon(stream_->request(), schema::EndCause::DRAINING);
  stream_.reset();
  lost_ = error{errc::draining, "the session is leaving this node", {}, {}};
  preparing_.reset();
  // Whether what is being written gets there is not known any more: its key tells the next time.
  if (auto written = std::exchange(writing_, std::nullopt))
    written->done(tl::unexpected<error>(*lost_));
  refuse_calls(*lost_);
}

void session_core::refuse_calls(const error& why) {
  for (auto& waiting : std::exchange(calls_, {}))
    std::visit([&](auto& one) { one.done(tl::unexpected<error>(why)); }, waiting);
  for (auto& done : std::exchange(drained_, {}))
    done();
}

bool session_core::quiet() const {
  const bool idle = machine_.running() == 0 || !served_;
  return lost_ || (idle && !writing_ && !unsure_ && !asking_ && !preparing_ && calls_.empty());
}

kept_trace session_core::trace() const {
  const auto found = traces_.find(stream_ ? stream_->turn() : machine_.running());
  return found == traces_.end() ? nullptr : found->second;
}

std::uint32_t session_core::active() const {
  const auto* turn = machine_.find(machine_.running());
  return !lost_ && served_ && turn != nullptr && (turn->prompted || preparing_ || !draining_) ? 1 : 0;
}

void session_core::enqueue(call next) {
  const auto refuse = [&](const error& why) {
    std::visit([&](auto& one) { one.done(tl::unexpected<error>(why)); }, next);
  };
  if (lost_)
    return refuse(*lost_);
  if (calls_.size() >= config_.limits.waiting_commands)
    return refuse({errc::overloaded, "too many calls wait for this session", {}, {}});
  calls_.push_back(std::move(next));
  go_on();
}

void session_core::go_on() {
  // Ports may answer at once; their answers are then taken up by the loop that is running already.
  if (working_)
    return;
  working_ = true;
  while (step()) {
  }
  working_ = false;
  if (!lost_)
    schedule();
  settle_drain();
}

/// Does the next thing that can be done. False: there is nothing, or it waits for an answer or a time.
bool session_core::step() {
  if (lost_ || writing_ || asking_)
    return false;
  if (unsure_)
    return reconcile();
  expire();
  if (!calls_.empty() && !(preparing_ && preparing_->turn == 0))
    return decide();
  if (machine_.running() != 0)
    return drive_turn();
  return false;
}

/// Makes sure that the journal takes our records before the first call is decided; refuses it otherwise.
/// @returns whether to go on at once
bool session_core::own_for_call() {
  own([this](const result<void>& owner) {
    if (!owner) {
      refuse_call(owner.error());
      lost_by(owner.error());
    }
    go_on();
  });
  return !asking_;
}

/// Answers the first call with an error.
void session_core::refuse_call(const error& why) {
  auto refused = std::move(calls_.front());
  finish_call();
  std::visit([&](auto& one) { one.done(tl::unexpected<error>(why)); }, refused);
}

bool session_core::decide() {
  return std::visit([this](auto& one) { return decide(one); }, calls_.front());
}

bool session_core::decide(post_call& post) {
  const auto refuse = [&](const error& why) {
    post.done(tl::unexpected<error>(why));
    finish_call();
    return true;
  };
  const auto message = post.message.read();
  /// Whether it is answered by what the journal has under its key.
  const auto known = [&] {
    auto stored = stored_answer(machine_, message);
    if (!stored)
      return refuse(stored.error());
    if (!*stored)
      return false;
    // Its turn may be one that an earlier owner began, whose trace is not known here.
    trace_turn((*stored)->read().getTurn(), post.trace);
    post.done(std::move(**stored));
    finish_call();
    return true;
  };
  if (known())
    return true;
  if (draining_)
    return refuse({errc::draining, "this node is shutting down and takes no more messages", {}, {}});
  // Far longer ones would only be refused by the journal after they were rendered.
  if (message.getContent().size() >= journal::max_record_bytes)
    return refuse({errc::too_large,
      "a message may have less than " + std::to_string(journal::max_record_bytes) + " bytes", "content", {}});
  if (!served_)
    return refuse({errc::unavailable, "the session's model is not served here", {}, "model_not_served"});
  if (auto good = check_admission(machine_, config_.limits); !good)
    return refuse(good.error());
  // What the claim brings may change the answers above: the owner before may have written this message when
  // its process was lost already.
  if (!owned_)
    return own_for_call();
  if (machine_.running() == 0 && !post.prompt) {
    auto task = next_prompt(machine_, text_of(message.getContent()));
    task.ticket = ++tickets_;
    task.trace = post.trace;
    preparing_ = {task.ticket, 0};
    ports_.prepare(std::move(task));
    return !preparing_;
  }
  const auto turn = machine_.order().last_turn() + 1;
  const auto sequence = machine_.sequence() + 1;
  auto records =
    accept_message(machine_, message, machine_.running() == 0 ? &*post.prompt : nullptr, held_text(), wall());
  auto done = std::move(post.done);
  auto trace = std::move(post.trace);
  finish_call();
  write(std::move(records), schema::EndCause::INTERRUPTED,
    [this, turn, sequence, done = std::move(done), trace = std::move(trace)](const result<void>& written) {
      if (!written)
        return done(fail(written));
      trace_turn(turn, trace);
      done(accepted_answer(turn, sequence, machine_.ids(), false));
    });
  return true;
}

void session_core::trace_turn(turn_number turn, const kept_trace& trace) {
  if (const auto* which = machine_.find(turn); trace && which != nullptr && which->ended == 0)
    traces_.try_emplace(turn, trace);
}

bool session_core::decide(cancel_call& cancel) {
  auto state = turn_state(machine_, cancel.turn);
  const auto cause = cancel.cause;
  const auto number = state ? state->read().getTurn() : turn_number{0};
  const auto* turn = machine_.find(number);
  // Of a client that has left only those messages are cancelled that asked for it.
  const bool unasked =
    cause == schema::EndCause::CLIENT_LEFT && turn != nullptr && !turn->cancel_on_disconnect;
  if (turn != nullptr && turn->ended == 0 && !unasked && !owned_) {
    // Who meant the running turn means no later one.
    cancel.turn = number;
    return own_for_call();
  }
  auto done = std::move(cancel.done);
  finish_call();
  if (turn == nullptr || turn->ended != 0 || unasked) {
    done(std::move(state));
    return true;
  }
  write(cancel_turn(machine_, number, cause, held_text(), wall()), cause,
    [this, number, done = std::move(done)](const result<void>& written) {
      if (written)
        done(turn_state(machine_, number));
      else
        done(fail(written));
    });
  return true;
}

bool session_core::decide(close_call& close) {
  if (!machine_.closed() && !owned_)
    return own_for_call();
  auto done = std::move(close.done);
  const auto cause = std::move(close.cause);
  finish_call();
  if (machine_.closed()) {
    done(session_info(machine_));
    return true;
  }
  write(close_session(machine_, cause, held_text(), wall()), schema::EndCause::CLOSED,
    [this, done = std::move(done)](const result<void>& written) {
      if (written)
        done(session_info(machine_));
      else
        done(fail(written));
    });
  return true;
}

/// A session whose time is over is closed before anything else is decided.
void session_core::expire() {
  const auto end = machine_.expires_at();
  if (end == 0 || machine_.closed() || expiring_ || wall() < end || expiry_pause_.active(now())
      || (preparing_ && preparing_->turn == 0))
    return;
  expiring_ = true;
  calls_.push_front(close_call{"expired", [this](const result<letter<schema::SessionInfo>>& closed) {
                                 expiring_ = false;
                                 if (!closed)
                                   expiry_pause_.failed(now());
                               }});
}

void session_core::prepared(std::uint64_t ticket, result<prepared_prompt> outcome) {
  if (!preparing_ || preparing_->ticket != ticket)
    return;
  const bool for_call = preparing_->turn == 0;
  preparing_.reset();
  if (outcome)
    if (auto fits = check_context(outcome->length(), config_.model.context); !fits)
      outcome = fail(fits);
  if (for_call) {
    auto& post = std::get<post_call>(calls_.front());
    if (outcome) {
      post.prompt = std::move(*outcome);
    } else {
      post.done(fail(outcome));
      finish_call();
    }
  } else if (outcome) {
    prompt_ = std::move(*outcome);
  } else {
    try_failed(outcome.error(), false);
  }
  go_on();
}

void session_core::tick() {
  check_stall();
  go_on();
}

void session_core::schedule() {
  constexpr std::int64_t longest = 3'600'000; // the wall clock may jump meanwhile
  const auto start = now();
  auto next = start + longest;
  bool any = false;
  const auto at = [&](std::int64_t time) {
    next = std::min(next, std::max(time, start + 1));
    any = true;
  };
  // While the journal is waited for, its answer is what goes on.
  const bool waits = writing_ || asking_;
  if (unsure_ && !waits)
    at(sync_pause_.until());
  if (machine_.running() != 0 && pause_.active(start))
    at(pause_.until());
  if (stream_ && !waits && !unsure_)
    at(progress_ + config_.limits.stall.count());
  const bool asking = preparing_ && preparing_->turn == 0;
  if (const auto end = machine_.expires_at();
      end != 0 && !machine_.closed() && !expiring_ && !asking && !waits)
    at(std::max(start + std::max<std::int64_t>(end - wall(), 0), expiry_pause_.until()));
  if (any)
    ports_.wake_in(std::chrono::milliseconds(next - start));
}

void session_core::settle_drain() {
  if (!draining_ || writing_ || unsure_ || asking_ || !calls_.empty() || active() != 0)
    return;
  for (auto& done : std::exchange(drained_, {}))
    done();
}

} // namespace godwit
