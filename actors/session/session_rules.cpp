#include "actors/session/session_rules.hpp"

#include "messages/check.hpp"
#include "messages/text.hpp"

#include <algorithm>

namespace godwit {

namespace {

std::string bytes(capnp::Data::Reader data) {
  return {reinterpret_cast<const char*>(data.begin()), data.size()};
}

/// The end of a turn that gets `more` tokens with it.
turn_end end_of(const session_machine& machine, turn_number number, std::string reason, std::string text,
  std::size_t more = 0) {
  const auto* turn = machine.find(number);
  GODWIT_CHECK(turn != nullptr);
  turn_end end;
  end.turn = number;
  end.reason = std::move(reason);
  end.text = std::move(text);
  end.usage = turn->usage;
  end.usage.completion += more;
  if (turn->prompted)
    end.position = static_cast<position_t>(machine.tokens().size() + more);
  return end;
}

} // namespace

result<std::optional<letter<schema::MessageAccepted>>> stored_answer(
  const session_machine& machine, schema::PostMessage::Reader post) {
  if (post.getIdempotencyKey().size() == 0)
    return std::nullopt;
  const auto* call = machine.find_key(text_of(post.getIdempotencyKey()));
  if (call == nullptr)
    return std::nullopt;
  if (call->body_hash != bytes(post.getBodyHash()))
    return fail(errc::unprocessable, "this idempotency key was used with another body", "Idempotency-Key",
      "idempotency_key_reused");
  return accepted_answer(call->turn, machine.find(call->turn)->accepted, machine.ids(), true);
}

result<void> check_admission(const session_machine& machine, const session_limits& limits) {
  if (machine.closed())
    return fail(errc::conflict, "the session is closed", {}, "session_closed");
  if (machine.running() == 0)
    return {};
  if (machine.settings().getOnBusy() == schema::OnBusy::REJECT)
    return fail(errc::conflict, "a turn is running", {}, "turn_running");
  if (machine.order().waiting().size() >= limits.waiting_turns)
    return fail(errc::overloaded, "too many messages wait behind the running turn");
  return {};
}

result<void> check_context(std::uint64_t prompt_tokens, std::uint32_t context) {
  if (prompt_tokens < context)
    return {};
  return fail(errc::invalid_argument,
    "the prompt has " + std::to_string(prompt_tokens) + " tokens and leaves no room for an answer in the "
      + "model's context of " + std::to_string(context),
    "content", "context_length_exceeded");
}

journal_records accept_message(const session_machine& machine, schema::PostMessage::Reader post,
  const prepared_prompt* prompt, const std::string& held, std::int64_t at) {
  const auto turn = machine.order().last_turn() + 1;
  journal_records records{accepted_record(turn, post, at)};
  if (machine.running() == 0) {
    GODWIT_CHECK(prompt != nullptr);
    for (auto& record : prompted_records(turn, prompt->kept, prompt->tokens, at))
      records.push_back(std::move(record));
  } else if (machine.settings().getOnBusy() == schema::OnBusy::INTERRUPT) {
    for (auto& record : cancel_turn(machine, machine.running(), schema::EndCause::INTERRUPTED, held, at))
      records.push_back(std::move(record));
  }
  return records;
}

letter<schema::MessageAccepted> accepted_answer(
  turn_number turn, sequence_number sequence, const event_ids& ids, bool replayed) {
  return letter<schema::MessageAccepted>::make([&](schema::MessageAccepted::Builder b) {
    b.setTurn(turn);
    b.setSequence(sequence);
    b.setEventBefore(ids.text({sequence - 1, event_place::end}));
    b.setReplayed(replayed);
  });
}

journal_records cancel_turn(const session_machine& machine, turn_number turn, schema::EndCause cause,
  const std::string& held, std::int64_t at) {
  const auto text = turn == machine.running() ? held : std::string();
  return {cancelled_record(turn, cause, at), turn_ended_record(end_of(machine, turn, "cancelled", text), at)};
}

journal_records fail_turn(
  const session_machine& machine, const error& failure, const std::string& held, std::int64_t at) {
  auto end = end_of(machine, machine.running(), "failed", held);
  end.failure = failure;
  return {turn_ended_record(end, at)};
}

journal_records close_session(
  const session_machine& machine, const std::string& cause, const std::string& held, std::int64_t at) {
  journal_records records;
  const auto end = [&](turn_number turn) {
    for (auto& record : cancel_turn(machine, turn, schema::EndCause::CLOSED, held, at))
      records.push_back(std::move(record));
  };
  // Those that wait go first, so that none of them starts when the running one ends.
  for (const auto turn : machine.order().waiting())
    end(turn);
  if (machine.running() != 0)
    end(machine.running());
  records.push_back(closed_record(cause, at));
  return records;
}

release_decision release_tokens(
  const session_machine& machine, answer_text text, const token_group& group, std::int64_t at) {
  const auto turn = machine.running();
  released_tokens released;
  released.turn = turn;
  released.position = static_cast<position_t>(machine.tokens().size());
  if (released.position == machine.prompt_length()) {
    released.prompt = machine.prompt_length();
    released.cached = group.cached;
    released.host = group.host;
    released.disk = group.disk;
  }
  for (const auto& token : group.tokens) {
    released.text += text.push(token.token);
    released.tokens.push_back(token);
    if (text.stopped())
      break;
  }
  release_decision decision{{}, released.tokens.size(), false, text.stopped(), std::move(text)};
  decision.ends = decision.stopped || (!group.finish.empty() && decision.taken == group.tokens.size());
  if (!released.tokens.empty())
    decision.records.push_back(released_record(released, at));
  if (decision.ends) {
    auto end = end_of(machine, turn, decision.stopped ? "stop" : group.finish,
      decision.stopped ? std::string() : decision.text.finish(), decision.taken);
    if (released.position == machine.prompt_length() && decision.taken > 0) {
      end.usage.cached = group.cached;
      end.usage.host = group.host;
      end.usage.disk = group.disk;
    }
    decision.records.push_back(turn_ended_record(end, at));
  }
  return decision;
}

std::optional<release_decision> end_without_tokens(const session_machine& machine, answer_text text,
  const token_text& vocabulary, std::uint32_t context, std::int64_t at) {
  token_group none;
  const bool any = machine.tokens().size() > machine.prompt_length();
  if (text.stopped()
      || (any && machine.tokens().back() < vocabulary.size() && vocabulary.is_end(machine.tokens().back())))
    none.finish = "stop";
  else if (remaining_tokens(machine, context) == 0)
    none.finish = "length";
  else
    return std::nullopt;
  return release_tokens(machine, std::move(text), none, at);
}

std::uint32_t remaining_tokens(const session_machine& machine, std::uint32_t context) {
  const auto length = machine.tokens().size();
  const std::size_t generated = length - machine.prompt_length();
  std::size_t most = context > length ? context - length : 0;
  if (const std::size_t limit = machine.settings().getMaxTokens(); limit != 0)
    most = std::min(most, limit > generated ? limit - generated : 0);
  return static_cast<std::uint32_t>(most);
}

answer_text running_answer(
  const session_machine& machine, const std::shared_ptr<const token_text>& vocabulary) {
  std::vector<std::string> stops;
  for (const auto stop : machine.settings().getStop())
    stops.push_back(text_of(stop));
  answer_text text(vocabulary, std::move(stops));
  const auto* turn = machine.find(machine.running());
  if (turn != nullptr && turn->prompted)
    for (std::size_t i = machine.prompt_length(); i < machine.tokens().size(); ++i)
      // A journal from a node with another model may hold tokens that this one does not have.
      if (machine.tokens()[i] < vocabulary->size())
        static_cast<void>(text.push(machine.tokens()[i]));
  return text;
}

bool runs_after(const session_machine& machine, const journal_records& records) {
  auto order = machine.order();
  for (const auto& record : records) {
    const auto applied = order.apply({order.sequence() + 1, order.epoch(), record});
    GODWIT_CHECK(applied.has_value());
  }
  return order.running() != 0;
}

result<letter<schema::TurnState>> turn_state(const session_machine& machine, turn_number number) {
  if (number == 0)
    number = machine.running() != 0 ? machine.running() : machine.order().last_turn();
  const auto* turn = machine.find(number);
  if (turn == nullptr && number != 0)
    return fail(errc::not_found, "the session has no such turn", "turn");
  return letter<schema::TurnState>::make([&](schema::TurnState::Builder b) {
    b.setTurn(number);
    b.setStatus(turn == nullptr ? std::string("idle") : std::string(to_string(turn->now)));
    b.setSequence(turn == nullptr ? machine.sequence() : turn->ended != 0 ? turn->ended : turn->accepted);
  });
}

} // namespace godwit
