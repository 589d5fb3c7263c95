#pragma once

#include "messages/result.hpp"
#include "messages/trace_context.hpp"
#include "services/link/end_cause.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace godwit::link {

/// Nodes whose major version differs, or whose minor versions are more than one apart, refuse each other.
inline constexpr std::uint16_t protocol_major = 1;
inline constexpr std::uint16_t protocol_minor = 0;

/// What a frame is for. Append only, never renumber.
enum class frame_kind : std::uint8_t {
  hello = 1,   ///< begins a conversation; the body is a schema::Hello
  welcome = 2, ///< the hello was accepted; the body is the other's schema::Hello
  refused = 3, ///< the hello was not; the body is a schema::Failure
  beat = 4,    ///< alive; the body is a schema::Beat
  bye = 5,     ///< the conversation is over, for `cause`

  letter = 16,   ///< to an actor, without an answer
  request = 17,  ///< to an actor; `correlation` names the answer
  reply = 18,    ///< the answer
  failure = 19,  ///< the answer that there is none; the body is a schema::Failure
  cancel = 20,   ///< whoever asked does not wait any more, for `cause`
  released = 21, ///< `source` is not referred to any more, `correlation` times
  gone = 22,     ///< the actor `source` has ended, for `cause`

  stream_open = 32,   ///< to an actor: asks for a stream `correlation`, with a first credit in `source`
  stream_item = 33,   ///< the next of stream `correlation`
  stream_end = 34,    ///< by either side, for `cause`; `code` if it failed
  stream_credit = 35, ///< so many more items as `source` says may be sent

  event = 48, ///< published; `correlation` counts the publisher's events of this topic
};

/// On whose behalf a letter was sent, for tracing.
using godwit::trace_context;

/// What stands before a letter's words. Texts are views: into the frame when it was decoded, and of the
/// caller when it is to be encoded.
struct frame_header {
  std::uint16_t minor = protocol_minor; ///< of the sender
  frame_kind kind = frame_kind::letter;
  end_cause cause = end_cause::none;
  std::uint8_t code = 0;         ///< godwit::errc of a failure
  std::uint64_t correlation = 0; ///< the sender's number of a request or stream
  std::uint64_t session = 0;     ///< the sender's number of this conversation (see hello.hpp)
  std::uint64_t source = 0;      ///< the sending actor, as the sender numbers them; 0 is none
  std::uint64_t target = 0;      ///< the receiving actor, as the receiver numbers them; 0: `name` says it
  std::uint64_t type = 0;        ///< of the letter: its Cap'n Proto schema id, or that of the whole signature
  std::uint64_t deadline_us = 0; ///< microseconds left when it was sent; 0 is none. Clocks need not agree
  trace_context trace;
  std::uint16_t attachments = 0;     ///< frames that follow this one
  std::string_view name;             ///< of the receiving actor, or the topic of an event
  std::span<const std::byte> extras; ///< what a message has beside its letter: texts, references to actors

  bool operator==(const frame_header& other) const;
};

/// What a frame from outside may at most be.
struct frame_limits {
  std::size_t name = 255;
  std::size_t extras = 4096;
  std::size_t words = std::size_t{32} << 20;
  std::uint16_t attachments = 1024;
  std::uint64_t deadline_us = std::uint64_t{24} * 3600 * 1'000'000; ///< a longer one is cut to this
};

/// A frame taken apart; views into its bytes.
struct decoded_frame {
  frame_header header;
  std::span<const std::byte> words; ///< of the letter, not aligned; letter<T>::parse copies them
};

/// The fixed part of a header; name and extras follow, then zeros up to a whole word.
inline constexpr std::size_t fixed_header_bytes = 104;

/// How long the frame will be.
std::size_t encoded_size(const frame_header& header, std::size_t words);

/// Writes header and words, little-endian. @param out of encoded_size() bytes
void encode(const frame_header& header, std::span<const std::byte> words, std::span<std::byte> out);

/// The same into a vector.
std::vector<std::byte> encode(const frame_header& header, std::span<const std::byte> words = {});

/// Sets what is only known when a frame leaves.
void set_session(std::span<std::byte> frame, std::uint64_t session);
void set_deadline(std::span<std::byte> frame, std::uint64_t microseconds);
/// Sets what only a node that speaks as another version than this one's does.
void set_version(std::span<std::byte> frame, std::uint16_t major, std::uint16_t minor);

/// Checks every field of a frame from outside. What a later minor version has appended to the header is
/// skipped.
/// @returns `corrupt`, `too_large`, or `unsupported` for a kind that is not known, or another major version
/// in anything but `hello` and `refused`
result<decoded_frame> decode(std::span<const std::byte> frame, const frame_limits& limits = {});

} // namespace godwit::link
