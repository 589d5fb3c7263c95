// How a session_core runs its turn: prompt, generation, commits, ends, and tries again.

#include "actors/session/session_core.hpp"

#include "actors/session/session_views.hpp"

#include <algorithm>
#include <utility>

namespace godwit {

namespace {

enum class remedy { none, wait, retry };

/// What to do about a failed try.
/// @param begun a worker had taken it: even if it is not to blame, that counts as a try
remedy remedy_for(errc code, bool begun) {
  switch (code) {
  case errc::invalid_argument:
  case errc::unsupported:
  case errc::unprocessable:
  case errc::too_large:
  case errc::permission:
    return remedy::none; // the next try would end the same way
  case errc::unavailable:
    return begun ? remedy::retry : remedy::wait; // its engine has fallen, perhaps because of this turn
  case errc::overloaded:
  case errc::draining:
  case errc::resource_exhausted:
    return remedy::wait; // nothing was tried yet
  default:
    return remedy::retry;
  }
}

letter<schema::GenerateRequest> generate_request(
  const session_machine& machine, request_id request, std::uint32_t more, std::uint32_t credit) {
  return letter<schema::GenerateRequest>::make([&](schema::GenerateRequest::Builder b) {
    const auto settings = machine.settings();
    b.setRequest(request);
    b.setTenant(settings.getTenant());
    b.setModel(settings.getModel());
    auto tokens = b.initTokens(static_cast<unsigned>(machine.tokens().size()));
    for (unsigned i = 0; i < machine.tokens().size(); ++i)
      tokens.set(i, machine.tokens()[i]);
    b.setPromptLength(machine.prompt_length());
    b.setMaxTokens(more);
    b.setSampling(settings.getSampling());
    b.setCredit(credit);
  });
}

} // namespace

bool session_core::drive_turn() {
  if (!served_ || pause_.active(now()))
    return false;
  const auto* turn = machine_.find(machine_.running());
  if (draining_ && !turn->prompted && !preparing_)
    return false;
  if (!owned_) {
    own([this](const result<void>& owner) {
      if (!owner && !lost_by(owner.error())) {
        ports_.report(owner.error());
        pause_.failed(now());
      }
      go_on();
    });
    return !asking_;
  }
  if (failure_) {
    const auto why = *failure_;
    write(
      fail_turn(machine_, why, held_text(), wall()), schema::EndCause::CANCELLED, [](const result<void>&) {});
    return true;
  }
  if (!turn->prompted)
    return prompt_turn(*turn);
  if (stream_)
    return commit_tokens();
  if (auto end =
        end_without_tokens(machine_, running_text(), *config_.model.text, config_.model.context, wall())) {
    write(std::move(end->records), schema::EndCause::CANCELLED, [](const result<void>&) {});
    return true;
  }
  if (machine_.order().attempts() + failures_ >= config_.limits.attempts) {
    end_failed(last_failure_.message.empty() ? error{errc::unavailable,
                 "the turn was taken over too often without a new token", {}, "no_progress"}
                                             : last_failure_);
    return true;
  }
  start_stream();
  return true;
}

bool session_core::prompt_turn(const session_turn& turn) {
  if (preparing_)
    return false;
  if (!prompt_) {
    auto task = next_prompt(machine_, turn.message);
    task.ticket = ++tickets_;
    task.trace = trace();
    preparing_ = {task.ticket, turn.turn};
    ports_.prepare(std::move(task));
    return !preparing_;
  }
  write(prompted_records(turn.turn, prompt_->kept, prompt_->tokens, wall()), schema::EndCause::CANCELLED,
    [](const result<void>&) {});
  return true;
}

/// Writes what has come since the last write, up to a bounded group.
bool session_core::commit_tokens() {
  const auto pending = stream_->pending();
  if (pending.empty() && !stream_->ended())
    return false;
  if (pending.empty() && stream_->finish().empty()) {
    const auto why = stream_->failure();
    stream_failed(why, true);
    return true;
  }
  token_group group;
  group.tokens = pending.first(std::min(pending.size(), config_.limits.tokens_per_record));
  group.cached = stream_->cached();
  group.host = stream_->cached_host();
  group.disk = stream_->cached_disk();
  if (group.tokens.size() == pending.size())
    group.finish = stream_->finish();
  auto decision = release_tokens(machine_, running_text(), group, wall());
  write(std::move(decision.records),
    decision.stopped ? schema::EndCause::STOP_SEQUENCE : schema::EndCause::CANCELLED,
    [this, text = std::move(decision.text)](const result<void>& written) {
      // Should it turn out later that they were written, the text is made anew from the tokens.
      if (written)
        text_ = text;
      else
        text_.reset();
    });
  return true;
}

void session_core::start_stream() {
  const auto request = config_.next_request();
  const auto credit = config_.limits.token_credit;
  stream_.emplace(request, machine_.running(), static_cast<position_t>(machine_.tokens().size()), credit);
  progress_ = now();
  ports_.generate(
    generate_request(machine_, request, remaining_tokens(machine_, config_.model.context), credit));
}

void session_core::generating(request_id request, result<void> outcome) {
  if (!stream_ || stream_->request() != request)
    return;
  if (outcome) {
    stream_->accept();
    if (stream_->orphaned())
      orphaned(request);
    return;
  }
  // A generation that was not confirmed in time may have started all the same.
  if (outcome.error().code == errc::deadline)
    ports_.abandon(request, schema::EndCause::DEADLINE);
  stream_failed(outcome.error(), false);
  go_on();
}

void session_core::orphaned(request_id request) {
  if (!stream_ || stream_->request() != request)
    return;
  // If it was refused, the answer that says why is on its way.
  if (!stream_->orphan())
    return;
  go_on();
}

void session_core::tokens(schema::TokenBatch::Reader batch) {
  if (!stream_ || stream_->request() != batch.getRequest())
    return; // of a generation that was given up
  progress_ = now();
  if (auto good = stream_->take(batch, config_.model.text->size()); !good) {
    ports_.report(good.error());
    ports_.abandon(stream_->request(), schema::EndCause::CANCELLED);
    stream_failed(good.error(), true);
  }
  go_on();
}

void session_core::stream_failed(const error& why, bool begun) {
  stream_.reset();
  try_failed(why, begun);
}

/// A try has failed: decides whether there is another one, and when.
/// @param begun a worker had taken it
void session_core::try_failed(const error& why, bool begun) {
  last_failure_ = why;
  pause_.failed(now());
  switch (remedy_for(why.code, begun)) {
  case remedy::none:
    return end_failed(why);
  case remedy::wait:
    if (!busy_since_)
      busy_since_ = now();
    else if (now() - *busy_since_ >= config_.limits.stall.count())
      end_failed(why);
    return;
  case remedy::retry:
    if (machine_.order().attempts() + ++failures_ >= config_.limits.attempts)
      end_failed(why);
    return;
  }
}

void session_core::end_failed(const error& why) {
  failure_ = why;
  // The journal is for clients too: what went wrong inside is for the operator.
  if (why.code == errc::internal || why.code == errc::io) {
    ports_.report(why);
    failure_->message = "the node failed on this turn; its log says why";
  }
  pause_.succeeded();
}

/// A generation without a token for too long is given up. Waiting for the journal is not its fault.
void session_core::check_stall() {
  if (!stream_ || stream_->ended() || writing_ || unsure_ || asking_ || lost_
      || now() - progress_ < config_.limits.stall.count())
    return;
  const error why{errc::deadline, "no token came for too long", {}, "stalled"};
  ports_.report(why);
  ports_.abandon(stream_->request(), schema::EndCause::DEADLINE);
  stream_failed(why, true);
}

const answer_text& session_core::running_text() {
  if (!text_)
    text_ = running_answer(machine_, config_.model.text);
  return *text_;
}

/// What the running turn has not shown of its answer's text, should it end now.
std::string session_core::held_text() {
  const auto* turn = machine_.find(machine_.running());
  if (turn == nullptr || !turn->prompted || !served_)
    return {};
  auto text = running_text();
  return text.stopped() ? std::string() : text.finish();
}

} // namespace godwit
