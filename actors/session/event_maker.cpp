#include "actors/session/event_maker.hpp"

#include "actors/generation/prompt_details.hpp"
#include "messages/error_status.hpp"
#include "messages/text.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <utility>

namespace godwit {

namespace {

using json = nlohmann::ordered_json;

json usage_json(schema::Usage::Reader usage) {
  return {{"prompt_tokens", usage.getPromptTokens()}, {"completion_tokens", usage.getCompletionTokens()},
    {"total_tokens", usage.getPromptTokens() + usage.getCompletionTokens()},
    {"prompt_tokens_details",
      prompt_details(usage.getCachedTokens(), usage.getCachedHost(), usage.getCachedDisk())}};
}

/// As a refused request says it.
json failure_json(schema::TurnEnded::Reader ended) {
  const auto code = static_cast<errc>(ended.getErrorCode());
  const std::string type(error_type(status_of(code)));
  if (is_private(code))
    return {
      {"type", type}, {"code", std::string(to_string(code))}, {"message", std::string(private_message)}};
  const std::string word = text_of(ended.getErrorReason());
  return {{"type", type}, {"code", word.empty() ? std::string(to_string(code)) : word},
    {"message", text_of(ended.getErrorMessage())}};
}

tl::unexpected<error> out_of_order(sequence_number sequence) {
  return fail(errc::corrupt,
    "record " + std::to_string(sequence) + " of the journal does not follow from those before it");
}

} // namespace

std::string_view to_string(schema::EndCause cause) {
  switch (cause) {
  case schema::EndCause::CANCELLED:
    return "cancelled";
  case schema::EndCause::DEADLINE:
    return "deadline";
  case schema::EndCause::PEER_LOST:
    return "peer_lost";
  case schema::EndCause::DRAINING:
    return "draining";
  case schema::EndCause::OVERLOADED:
    return "overloaded";
  case schema::EndCause::STOP_SEQUENCE:
    return "stop_sequence";
  case schema::EndCause::INTERRUPTED:
    return "interrupted";
  case schema::EndCause::CLIENT_LEFT:
    return "client_left";
  case schema::EndCause::FORKED:
    return "forked";
  case schema::EndCause::CLOSED:
    return "closed";
  }
  return "cancelled";
}

/// Collects the events of one record.
class event_maker::writer {
 public:
  explicit writer(sequence_number sequence) : sequence_(sequence) {}

  void add(std::string type, turn_number turn, json data, bool terminal = false) {
    events_.push_back({{sequence_, static_cast<unsigned>(events_.size())}, std::move(type),
      data.dump(-1, ' ', false, json::error_handler_t::replace), turn, terminal});
  }
  void start(turn_number turn) { add("turn.started", turn, {{"turn", turn}}); }
  std::vector<session_event> take() { return std::move(events_); }

 private:
  sequence_number sequence_;
  std::vector<session_event> events_;
};

result<void> event_maker::check(const placed_record& placed) const {
  const auto record = placed.record.read();
  const auto waits = [this](turn_number turn) {
    return std::find(waiting_.begin(), waiting_.end(), turn) != waiting_.end();
  };
  const auto runs = [this](turn_number turn) { return turn != 0 && turn == running_; };
  // An owner may close a session while another node claims it: that changes nothing any more.
  bool good = placed.sequence == sequence_ + 1 && placed.sequence <= event_ids::max_sequence
              && (!closed_ || record.isClaimed()) && (sequence_ == 0) == record.isOpened();
  switch (record.which()) {
  case schema::Record::OPENED:
  case schema::Record::CLAIMED:
  case schema::Record::FORKED:
    break;
  case schema::Record::ACCEPTED:
    good = good && record.getAccepted().getTurn() == last_turn_ + 1;
    break;
  case schema::Record::PROMPTED:
    good = good && runs(record.getPrompted().getTurn());
    break;
  case schema::Record::RELEASED:
    good = good && runs(record.getReleased().getTurn());
    break;
  case schema::Record::CANCELLED:
    good = good && (runs(record.getCancelled().getTurn()) || waits(record.getCancelled().getTurn()));
    break;
  case schema::Record::TURN_ENDED:
    good = good && (runs(record.getTurnEnded().getTurn()) || waits(record.getTurnEnded().getTurn()));
    break;
  case schema::Record::CLOSED:
    good = good && running_ == 0;
    break;
  default:
    return fail(errc::unsupported, "record " + std::to_string(placed.sequence)
                                     + " of the journal is of a kind that this version does not know");
  }
  if (!good)
    return out_of_order(placed.sequence);
  return {};
}

result<std::vector<session_event>> event_maker::apply(const placed_record& placed) {
  if (auto good = check(placed); !good)
    return fail(good);
  const auto record = placed.record.read();
  writer out(placed.sequence);
  sequence_ = placed.sequence;
  switch (record.which()) {
  case schema::Record::OPENED:
    fingerprint_ = text_of(record.getOpened().getFingerprint());
    interrupts_ = record.getOpened().getSettings().getOnBusy() == schema::OnBusy::INTERRUPT;
    break;
  case schema::Record::ACCEPTED:
    accept(record.getAccepted(), out);
    break;
  case schema::Record::CLAIMED:
    claim(record.getClaimed(), out);
    break;
  case schema::Record::RELEASED:
    release(record.getReleased(), out);
    break;
  case schema::Record::CANCELLED:
    cause_ = to_string(record.getCancelled().getCause());
    break;
  case schema::Record::TURN_ENDED:
    end(record.getTurnEnded(), out);
    break;
  case schema::Record::CLOSED:
    closed_ = true;
    waiting_.clear();
    break;
  default:
    break;
  }
  auto events = out.take();
  if (!events.empty())
    last_event_ = events.back().place;
  return events;
}

void event_maker::accept(schema::Accepted::Reader accepted, writer& out) {
  const auto turn = accepted.getTurn();
  const auto message = accepted.getMessage();
  last_turn_ = turn;
  out.add("message.accepted", turn,
    {{"turn", turn}, {"role", text_of(message.getRole())}, {"content", text_of(message.getContent())}});
  if (running_ == 0) {
    running_ = turn;
    attempts_ = 0;
    out.start(turn);
  } else if (interrupts_) {
    waiting_.push_front(turn);
  } else {
    waiting_.push_back(turn);
  }
}

void event_maker::claim(schema::Claimed::Reader claimed, writer& out) {
  const std::string node = text_of(claimed.getNode());
  const std::string fingerprint = text_of(claimed.getFingerprint());
  const bool exact = fingerprint == fingerprint_;
  const bool first = node_.empty();
  epoch_ = claimed.getEpoch();
  if (closed_) {
    node_ = node;
    incarnation_ = text_of(claimed.getIncarnation());
    fingerprint_ = fingerprint;
    return;
  }
  if ((!first && node != node_) || !exact)
    out.add("session.moved", 0, {{"epoch", epoch_}, {"node", node}, {"exact", exact}});
  node_ = node;
  incarnation_ = text_of(claimed.getIncarnation());
  fingerprint_ = fingerprint;
  if (running_ == 0)
    return;
  ++attempts_;
  out.add("session.recovering", running_, {{"turn", running_}, {"epoch", epoch_}, {"attempt", attempts_}});
}

void event_maker::release(schema::Released::Reader released, writer& out) {
  attempts_ = 0;
  auto ids = json::array();
  for (const auto token : released.getTokens())
    ids.push_back(token.getToken());
  out.add("token", released.getTurn(),
    {{"turn", released.getTurn()}, {"text", text_of(released.getText())}, {"tokens", std::move(ids)},
      {"position", released.getPosition()}});
}

void event_maker::end(schema::TurnEnded::Reader ended, writer& out) {
  const auto turn = ended.getTurn();
  const std::string reason = text_of(ended.getReason());
  // Text that was held back is sent as a token event without tokens: all text of a turn comes that way.
  if (ended.getText().size() > 0)
    out.add("token", turn,
      {{"turn", turn}, {"text", text_of(ended.getText())}, {"tokens", json::array()},
        {"position", ended.getPosition()}});
  if (reason == "cancelled") {
    out.add("turn.cancelled", turn,
      {{"turn", turn}, {"cause", cause_}, {"usage", usage_json(ended.getUsage())}}, true);
  } else if (reason == "failed") {
    out.add("turn.failed", turn,
      {{"turn", turn}, {"error", failure_json(ended)}, {"usage", usage_json(ended.getUsage())}}, true);
  } else {
    out.add("turn.completed", turn,
      {{"turn", turn}, {"finish_reason", reason}, {"usage", usage_json(ended.getUsage())}}, true);
  }
  if (turn != running_) {
    waiting_.erase(std::find(waiting_.begin(), waiting_.end(), turn));
    return;
  }
  running_ = 0;
  attempts_ = 0;
  if (!waiting_.empty()) {
    running_ = waiting_.front();
    waiting_.pop_front();
    out.start(running_);
  }
}

} // namespace godwit
