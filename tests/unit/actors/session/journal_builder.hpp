#pragma once

#include "actors/session/journal.hpp"
#include "actors/session/session_records.hpp"

#include <string>
#include <vector>

namespace godwit {

/// Writes journals by hand.
class journal_builder {
 public:
  std::vector<placed_record> records;

  journal_builder& add(journal_record record) {
    records.push_back({records.size() + 1, 1, std::move(record)});
    return *this;
  }
  journal_builder& opened(
    schema::OnBusy busy = schema::OnBusy::QUEUE, std::vector<std::string> stops = {}, std::uint64_t ttl = 0) {
    const auto settings = letter<schema::SessionSettings>::make([&](schema::SessionSettings::Builder b) {
      b.setTenant("t");
      b.setOnBusy(busy);
      b.setTtlSeconds(ttl);
      b.setMetadata(R"({"a":1})");
      auto list = b.initStop(static_cast<unsigned>(stops.size()));
      for (unsigned i = 0; i < stops.size(); ++i)
        list.set(i, stops[i]);
    });
    return add(opened_record(settings.read(), "toy", "f1", 5'000));
  }
  journal_builder& claimed(const std::string& node, epoch_t epoch, const std::string& fingerprint = "f1") {
    return add(claimed_record({node_name(node), "i1", fingerprint}, epoch, 6'000));
  }
  journal_builder& accepted(turn_number turn, const std::string& text, const std::string& key = {}) {
    const auto post = letter<schema::PostMessage>::make([&](schema::PostMessage::Builder b) {
      b.setContent(text);
      b.setIdempotencyKey(key);
      b.setBodyHash(capnp::Data::Reader(reinterpret_cast<const capnp::byte*>("hash"), 4));
    });
    return add(accepted_record(turn, post.read(), 7'000));
  }
  journal_builder& prompted(turn_number turn, std::uint32_t kept, std::vector<token_id> tokens) {
    for (auto& record : prompted_records(turn, kept, tokens, 7'001))
      add(std::move(record));
    return *this;
  }
  journal_builder& released(
    turn_number turn, position_t position, std::vector<token_id> tokens, const std::string& text) {
    released_tokens out;
    out.turn = turn;
    out.position = position;
    for (const auto token : tokens)
      out.tokens.push_back({token, -0.5F, {}});
    out.text = text;
    out.cached = 2;
    return add(released_record(out, 8'000));
  }
  journal_builder& ended(
    turn_number turn, const std::string& reason, const std::string& text = {}, const error& failure = {}) {
    return add(turn_ended_record({turn, reason, {4, 3, 2}, text, 7, failure}, 9'000));
  }
  journal_builder& cancelled(turn_number turn, schema::EndCause cause) {
    return add(cancelled_record(turn, cause, 9'000));
  }
  journal_builder& closed() { return add(closed_record("deleted", 9'500)); }
};

} // namespace godwit
