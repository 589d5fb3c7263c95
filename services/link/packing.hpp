#pragma once

#include "services/link/mesh_link.hpp"

namespace godwit::link {

/// Longer letters would make others wait.
inline constexpr std::size_t longest_letter = std::size_t{1} << 20;

/// The way that a message takes.
inline lane lane_of(const message& what) {
  return what.attachments.empty() && what.words.size() <= longest_letter ? lane::letters : lane::bulk;
}

/// A message as a frame with this header.
inline parcel pack(frame_header header, const message& what) {
  header.type = what.type;
  header.source = what.source;
  header.extras = what.extras;
  header.trace = what.trace;
  header.attachments = static_cast<std::uint16_t>(what.attachments.size());
  return {encode(header, what.words), what.attachments};
}

/// The header of what is meant for an actor.
inline frame_header to(frame_kind kind, const actor_address& whom) {
  frame_header header;
  header.kind = kind;
  header.name = whom.name;
  header.target = whom.id;
  return header;
}

/// Why a request or a stream has no more.
inline parcel failure_parcel(frame_kind kind, const reply_token& token, const error& why) {
  frame_header header;
  header.kind = kind;
  header.correlation = token.correlation;
  header.code = static_cast<std::uint8_t>(why.code);
  header.cause = cause_of(why.code);
  const auto body = to_letter(why);
  return {encode(header, body.bytes()), {}};
}

} // namespace godwit::link
