#include "actors/session/session_machine.hpp"

#include "messages/check.hpp"
#include "messages/text.hpp"

namespace godwit {

std::string_view to_string(session_turn::state state) {
  switch (state) {
  case session_turn::state::waiting:
    return "queued";
  case session_turn::state::running:
    return "running";
  case session_turn::state::completed:
    return "completed";
  case session_turn::state::failed:
    return "failed";
  case session_turn::state::cancelled:
    return "cancelled";
  }
  return "unknown";
}

schema::SessionSettings::Reader session_machine::settings() const {
  GODWIT_CHECK(opened_);
  return opened_->read().getOpened().getSettings();
}

std::int64_t session_machine::expires_at() const {
  // A thousand years are for ever, and do not overflow.
  constexpr std::uint64_t longest = 31'556'952'000;
  const auto seconds = settings().getTtlSeconds();
  return seconds == 0 || seconds > longest ? 0 : created_at_ + static_cast<std::int64_t>(seconds) * 1000;
}

const session_turn* session_machine::find(turn_number number) const {
  return number == 0 || number > turns_.size() ? nullptr : &turns_[number - 1];
}

const idempotent_call* session_machine::find_key(const std::string& key) const {
  const auto place = keys_.find(key);
  return place == keys_.end() ? nullptr : &place->second;
}

result<void> session_machine::check(const journal_record& record) const {
  const auto reader = record.read();
  bool good = true;
  if (reader.isPrompted()) {
    const auto prompted = reader.getPrompted();
    const auto* turn = find(prompted.getTurn());
    good = turn != nullptr && !turn->prompted && prompted.getKept() <= tokens_.size()
           && std::uint64_t{prompted.getKept()} + prompted.getTokens().size() <= prompted.getLength();
  } else if (reader.isReleased()) {
    const auto released = reader.getReleased();
    const auto* turn = find(released.getTurn());
    good = turn != nullptr && turn->prompted && released.getPosition() == tokens_.size()
           && released.getTokens().size() > 0;
  }
  if (!good)
    return fail(errc::corrupt,
      "record " + std::to_string(sequence() + 1) + " of the journal does not follow from those before it");
  return {};
}

result<std::vector<session_event>> session_machine::apply(const placed_record& placed) {
  if (auto good = check(placed.record); !good)
    return fail(good);
  auto events = order_.apply(placed);
  if (!events)
    return events;
  const auto record = placed.record.read();
  switch (record.which()) {
  case schema::Record::OPENED:
    opened_ = placed.record;
    created_at_ = record.getAt();
    break;
  case schema::Record::ACCEPTED:
    accept(placed.sequence, record.getAccepted());
    break;
  case schema::Record::PROMPTED:
    prompt(record.getPrompted());
    break;
  case schema::Record::RELEASED:
    release(record.getReleased());
    break;
  case schema::Record::TURN_ENDED:
    end(placed.sequence, record.getTurnEnded());
    break;
  case schema::Record::FORKED:
    parent_ = text_of(record.getForked().getParent());
    forked_at_ = record.getForked().getAt();
    break;
  case schema::Record::CLOSED:
    closed_at_ = record.getAt();
    break;
  default:
    break;
  }
  if (running() != 0)
    turn(running()).now = session_turn::state::running;
  return events;
}

void session_machine::accept(sequence_number sequence, schema::Accepted::Reader accepted) {
  session_turn next;
  next.turn = accepted.getTurn();
  next.accepted = sequence;
  next.cancel_on_disconnect = accepted.getCancelOnDisconnect();
  next.message = text_of(accepted.getMessage().getContent());
  turns_.push_back(std::move(next));
  if (accepted.getIdempotencyKey().size() > 0) {
    const auto hash = accepted.getBodyHash();
    keys_[text_of(accepted.getIdempotencyKey())] = {
      std::string(reinterpret_cast<const char*>(hash.begin()), hash.size()), accepted.getTurn()};
  }
}

void session_machine::prompt(schema::Prompted::Reader prompted) {
  tokens_.resize(prompted.getKept());
  for (const auto token : prompted.getTokens())
    tokens_.push_back(token);
  prompt_length_ = prompted.getLength();
  tokens_fingerprint_ = order_.fingerprint();
  if (tokens_.size() < prompt_length_)
    return;
  auto& now = turn(prompted.getTurn());
  now.prompted = true;
  now.usage.prompt = prompt_length_;
  conversation_.push_back(now.turn);
}

void session_machine::release(schema::Released::Reader released) {
  auto& now = turn(released.getTurn());
  if (released.getPosition() == prompt_length_) {
    now.usage.cached = released.getCachedTokens();
    now.usage.host = released.getCachedHost();
    now.usage.disk = released.getCachedDisk();
  }
  for (const auto token : released.getTokens())
    tokens_.push_back(token.getToken());
  now.usage.completion += released.getTokens().size();
  now.answer += text_of(released.getText());
}

void session_machine::end(sequence_number sequence, schema::TurnEnded::Reader ended) {
  auto& now = turn(ended.getTurn());
  const std::string reason = text_of(ended.getReason());
  now.now = reason == "failed"      ? session_turn::state::failed
            : reason == "cancelled" ? session_turn::state::cancelled
                                    : session_turn::state::completed;
  now.ended = sequence;
  now.answer += text_of(ended.getText());
  now.usage = read_usage(ended.getUsage());
  usage_ += now.usage;
}

} // namespace godwit
