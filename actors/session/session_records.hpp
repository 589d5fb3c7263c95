#pragma once

#include "actors/model_card.hpp"
#include "actors/session/journal.hpp"
#include "messages/error.hpp"
#include "messages/ids.hpp"
#include "messages/schemas/session.capnp.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace godwit {

// The records of a session's journal, made. `at` is milliseconds since 1970 everywhere.

/// Counts of tokens, of a turn or of a session.
struct token_usage {
  std::uint64_t prompt = 0;
  std::uint64_t completion = 0;
  std::uint64_t cached = 0; ///< of the prompt, from the prefix cache
  std::uint64_t host = 0;   ///< of these, from host memory
  std::uint64_t disk = 0;   ///< and from the cold tier

  token_usage& operator+=(const token_usage& more) {
    prompt += more.prompt;
    completion += more.completion;
    cached += more.cached;
    host += more.host;
    disk += more.disk;
    return *this;
  }
  bool operator==(const token_usage&) const = default;
};

/// Who owns a session: what a `claimed` record says.
struct session_owner {
  node_name node;
  std::string incarnation;
  std::string fingerprint; ///< of its model
};

/// How a turn ended.
struct turn_end {
  turn_number turn = 0;
  std::string reason; ///< stop, length, cancelled, failed
  token_usage usage;
  std::string text;        ///< of the answer, held back until now
  position_t position = 0; ///< the length of the turn's sequence
  error failure;           ///< if the reason is failed
};

/// @param model the session's model, whatever the settings say
journal_record opened_record(schema::SessionSettings::Reader settings, const std::string& model,
  const std::string& fingerprint, std::int64_t at);
journal_record accepted_record(turn_number turn, schema::PostMessage::Reader post, std::int64_t at);
journal_record claimed_record(const session_owner& owner, epoch_t epoch, std::int64_t at);
journal_record cancelled_record(turn_number turn, schema::EndCause cause, std::int64_t at);
journal_record turn_ended_record(const turn_end& end, std::int64_t at);
journal_record forked_record(const session_id& parent, sequence_number last_copied, std::int64_t at);
journal_record closed_record(const std::string& cause, std::int64_t at);

/// The prompt of a turn in as many records as the limit of a record's size asks for.
/// @param kept how many tokens of the sequence so far the prompt begins with
std::vector<journal_record> prompted_records(
  turn_number turn, std::uint32_t kept, std::span<const token_id> tokens, std::int64_t at);

/// A token as a worker sent it, on its way into a record.
struct sampled_token {
  token_id token = 0;
  float logprob = 0;
  std::vector<std::pair<token_id, float>> top;
};

struct released_tokens {
  turn_number turn = 0;
  position_t position = 0;
  std::vector<sampled_token> tokens;
  std::uint32_t prompt = 0;
  std::uint32_t cached = 0;
  std::uint32_t host = 0; ///< of these
  std::uint32_t disk = 0;
  std::string text;
};

journal_record released_record(const released_tokens& released, std::int64_t at);

void write_usage(const token_usage& usage, schema::Usage::Builder out);
token_usage read_usage(schema::Usage::Reader usage);

} // namespace godwit
