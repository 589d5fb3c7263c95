#include "actors/session/session_records.hpp"
#include "messages/text.hpp"

#include <algorithm>

namespace godwit {

namespace {

using builder = schema::Record::Builder;

template <class Fill>
journal_record make_record(std::int64_t at, Fill fill) {
  return journal_record::make([&](builder b) {
    b.setAt(at);
    fill(b);
  });
}

} // namespace

void write_usage(const token_usage& usage, schema::Usage::Builder out) {
  out.setPromptTokens(usage.prompt);
  out.setCompletionTokens(usage.completion);
  out.setCachedTokens(usage.cached);
  out.setCachedHost(usage.host);
  out.setCachedDisk(usage.disk);
}

token_usage read_usage(schema::Usage::Reader usage) {
  return {usage.getPromptTokens(), usage.getCompletionTokens(), usage.getCachedTokens(),
    usage.getCachedHost(), usage.getCachedDisk()};
}

journal_record opened_record(schema::SessionSettings::Reader settings, const std::string& model,
  const std::string& fingerprint, std::int64_t at) {
  return make_record(at, [&](builder b) {
    auto opened = b.initOpened();
    opened.setSettings(settings);
    opened.getSettings().setModel(text_view(model));
    if (settings.getTenant().size() == 0)
      opened.getSettings().setTenant("default");
    opened.setFingerprint(text_view(fingerprint));
  });
}

journal_record accepted_record(turn_number turn, schema::PostMessage::Reader post, std::int64_t at) {
  return make_record(at, [&](builder b) {
    auto accepted = b.initAccepted();
    accepted.setTurn(turn);
    accepted.setIdempotencyKey(post.getIdempotencyKey());
    accepted.setBodyHash(post.getBodyHash());
    accepted.setCancelOnDisconnect(post.getCancelOnDisconnect());
    auto message = accepted.initMessage();
    message.setRole("user");
    message.setContent(post.getContent());
  });
}

journal_record claimed_record(const session_owner& owner, epoch_t epoch, std::int64_t at) {
  return make_record(at, [&](builder b) {
    auto claimed = b.initClaimed();
    claimed.setNode(text_view(owner.node.value));
    claimed.setIncarnation(text_view(owner.incarnation));
    claimed.setEpoch(epoch);
    claimed.setFingerprint(text_view(owner.fingerprint));
  });
}

journal_record cancelled_record(turn_number turn, schema::EndCause cause, std::int64_t at) {
  return make_record(at, [&](builder b) {
    auto cancelled = b.initCancelled();
    cancelled.setTurn(turn);
    cancelled.setCause(cause);
  });
}

journal_record turn_ended_record(const turn_end& end, std::int64_t at) {
  return make_record(at, [&](builder b) {
    auto ended = b.initTurnEnded();
    ended.setTurn(end.turn);
    ended.setReason(text_view(end.reason));
    write_usage(end.usage, ended.initUsage());
    ended.setText(text_view(end.text));
    ended.setPosition(end.position);
    if (end.reason != "failed")
      return;
    ended.setErrorCode(static_cast<std::uint8_t>(end.failure.code));
    ended.setErrorMessage(text_view(end.failure.message));
    ended.setErrorReason(text_view(end.failure.reason));
  });
}

journal_record forked_record(const session_id& parent, sequence_number last_copied, std::int64_t at) {
  return make_record(at, [&](builder b) {
    auto forked = b.initForked();
    forked.setParent(text_view(parent.value));
    forked.setAt(last_copied);
  });
}

journal_record closed_record(const std::string& cause, std::int64_t at) {
  return make_record(at, [&](builder b) { b.initClosed().setCause(text_view(cause)); });
}

std::vector<journal_record> prompted_records(
  turn_number turn, std::uint32_t kept, std::span<const token_id> tokens, std::int64_t at) {
  constexpr std::size_t most = 65'536; // 256 KiB of ids
  const auto length = kept + static_cast<std::uint32_t>(tokens.size());
  std::vector<journal_record> records;
  do {
    const auto part = tokens.first(std::min(most, tokens.size()));
    records.push_back(make_record(at, [&](builder b) {
      auto prompted = b.initPrompted();
      prompted.setTurn(turn);
      prompted.setKept(kept);
      auto ids = prompted.initTokens(static_cast<unsigned>(part.size()));
      for (unsigned i = 0; i < part.size(); ++i)
        ids.set(i, part[i]);
      prompted.setLength(length);
    }));
    kept += static_cast<std::uint32_t>(part.size());
    tokens = tokens.subspan(part.size());
  } while (!tokens.empty());
  return records;
}

journal_record released_record(const released_tokens& released, std::int64_t at) {
  return make_record(at, [&](builder b) {
    auto out = b.initReleased();
    out.setTurn(released.turn);
    out.setPosition(released.position);
    out.setPromptTokens(released.prompt);
    out.setCachedTokens(released.cached);
    out.setCachedHost(released.host);
    out.setCachedDisk(released.disk);
    out.setText(text_view(released.text));
    auto tokens = out.initTokens(static_cast<unsigned>(released.tokens.size()));
    for (unsigned i = 0; i < released.tokens.size(); ++i) {
      const auto& from = released.tokens[i];
      tokens[i].setToken(from.token);
      tokens[i].setLogprob(from.logprob);
      if (from.top.empty())
        continue;
      auto top = tokens[i].initTop(static_cast<unsigned>(from.top.size()));
      for (unsigned k = 0; k < from.top.size(); ++k) {
        top[k].setToken(from.top[k].first);
        top[k].setLogprob(from.top[k].second);
      }
    }
  });
}

} // namespace godwit
