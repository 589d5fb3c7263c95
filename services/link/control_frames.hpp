#pragma once

#include "services/link/frame.hpp"
#include "services/link/transport.hpp"

#include <cstdint>

namespace godwit::link {

/// A frame of the link's own, with a body.
template <class Letter>
parcel control_frame(frame_kind kind, std::uint64_t session, const Letter& body,
  end_cause cause = end_cause::none, std::uint8_t code = 0) {
  frame_header header;
  header.kind = kind;
  header.session = session;
  header.cause = cause;
  header.code = code;
  return {encode(header, body.bytes()), {}};
}

inline parcel bye_frame(std::uint64_t session, end_cause cause) {
  frame_header header;
  header.kind = frame_kind::bye;
  header.session = session;
  header.cause = cause;
  return {encode(header), {}};
}

} // namespace godwit::link
