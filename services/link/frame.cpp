#include "services/link/frame.hpp"

#include "messages/check.hpp"
#include "services/link/bytes.hpp"

#include <algorithm>
#include <string>

namespace godwit::link {

namespace {

// Offsets of the fixed part. "GdwL" begins each frame.
constexpr std::uint32_t magic = 0x4c776447;
namespace at {
constexpr std::size_t magic = 0;
constexpr std::size_t major = 4;
constexpr std::size_t minor = 6;
constexpr std::size_t kind = 8;
constexpr std::size_t cause = 9;
constexpr std::size_t code = 10;
constexpr std::size_t reserved = 11;
constexpr std::size_t header_bytes = 12;
constexpr std::size_t correlation = 16;
constexpr std::size_t session = 24;
constexpr std::size_t source = 32;
constexpr std::size_t target = 40;
constexpr std::size_t type = 48;
constexpr std::size_t deadline = 56;
constexpr std::size_t trace_high = 64;
constexpr std::size_t trace_low = 72;
constexpr std::size_t trace_span = 80;
constexpr std::size_t trace_flags = 88;
constexpr std::size_t attachments = 90;
constexpr std::size_t name_bytes = 92;
constexpr std::size_t extras_bytes = 94;
constexpr std::size_t words_bytes = 96;
} // namespace at

std::size_t header_size(const frame_header& header) {
  return (fixed_header_bytes + header.name.size() + header.extras.size() + 7) / 8 * 8;
}

bool known(std::uint8_t kind) {
  switch (static_cast<frame_kind>(kind)) {
  case frame_kind::hello:
  case frame_kind::welcome:
  case frame_kind::refused:
  case frame_kind::beat:
  case frame_kind::bye:
  case frame_kind::letter:
  case frame_kind::request:
  case frame_kind::reply:
  case frame_kind::failure:
  case frame_kind::cancel:
  case frame_kind::released:
  case frame_kind::gone:
  case frame_kind::stream_open:
  case frame_kind::stream_item:
  case frame_kind::stream_end:
  case frame_kind::stream_credit:
  case frame_kind::event:
    return true;
  }
  return false;
}

bool printable(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c > ' ' && c < '\x7f'; });
}

} // namespace

bool frame_header::operator==(const frame_header& other) const {
  return minor == other.minor && kind == other.kind && cause == other.cause && code == other.code
         && correlation == other.correlation && session == other.session && source == other.source
         && target == other.target && type == other.type && deadline_us == other.deadline_us
         && trace == other.trace && attachments == other.attachments && name == other.name
         && std::ranges::equal(extras, other.extras);
}

std::size_t encoded_size(const frame_header& header, std::size_t words) {
  return header_size(header) + words;
}

void encode(const frame_header& header, std::span<const std::byte> words, std::span<std::byte> out) {
  const auto size = header_size(header);
  GODWIT_CHECK(out.size() == size + words.size());
  GODWIT_CHECK(header.name.size() <= 0xffff && header.extras.size() <= 0xffff && words.size() <= 0xffffffff);
  GODWIT_CHECK(words.size() % 8 == 0);
  store(out, at::magic, magic);
  store(out, at::major, protocol_major);
  store(out, at::minor, header.minor);
  store(out, at::kind, static_cast<std::uint8_t>(header.kind));
  store(out, at::cause, static_cast<std::uint8_t>(header.cause));
  store(out, at::code, header.code);
  store(out, at::reserved, std::uint8_t{0});
  store(out, at::header_bytes, static_cast<std::uint32_t>(size));
  store(out, at::correlation, header.correlation);
  store(out, at::session, header.session);
  store(out, at::source, header.source);
  store(out, at::target, header.target);
  store(out, at::type, header.type);
  store(out, at::deadline, header.deadline_us);
  store(out, at::trace_high, header.trace.high);
  store(out, at::trace_low, header.trace.low);
  store(out, at::trace_span, header.trace.span);
  store(out, at::trace_flags, header.trace.flags);
  store(out, at::attachments, header.attachments);
  store(out, at::name_bytes, static_cast<std::uint16_t>(header.name.size()));
  store(out, at::extras_bytes, static_cast<std::uint16_t>(header.extras.size()));
  store(out, at::words_bytes, static_cast<std::uint32_t>(words.size()));
  store(out, at::words_bytes + 4, std::uint32_t{0});
  auto rest = out.subspan(fixed_header_bytes);
  const auto append = [&rest](std::span<const std::byte> bytes) {
    std::ranges::copy(bytes, rest.begin());
    rest = rest.subspan(bytes.size());
  };
  append(std::as_bytes(std::span(header.name)));
  append(header.extras);
  const auto padding = rest.size() - words.size();
  std::ranges::fill(rest.first(padding), std::byte{0});
  rest = rest.subspan(padding);
  append(words);
}

std::vector<std::byte> encode(const frame_header& header, std::span<const std::byte> words) {
  std::vector<std::byte> out(encoded_size(header, words.size()));
  encode(header, words, out);
  return out;
}

void set_session(std::span<std::byte> frame, std::uint64_t session) {
  store(frame, at::session, session);
}

void set_deadline(std::span<std::byte> frame, std::uint64_t microseconds) {
  store(frame, at::deadline, microseconds);
}

void set_version(std::span<std::byte> frame, std::uint16_t major, std::uint16_t minor) {
  store(frame, at::major, major);
  store(frame, at::minor, minor);
}

result<decoded_frame> decode(std::span<const std::byte> frame, const frame_limits& limits) {
  if (frame.size() < fixed_header_bytes)
    return fail(errc::corrupt, "a frame is shorter than its header");
  if (load<std::uint32_t>(frame, at::magic) != magic)
    return fail(errc::corrupt, "a frame does not begin as one of Godwit");
  const auto major = load<std::uint16_t>(frame, at::major);
  // Greetings look the same in all versions, so that a node of another one can be told why it is refused.
  const auto what = static_cast<frame_kind>(load<std::uint8_t>(frame, at::kind));
  if (major != protocol_major && what != frame_kind::hello && what != frame_kind::refused)
    return fail(errc::unsupported, "a frame of protocol version " + std::to_string(major)
                                     + " reached version " + std::to_string(protocol_major));

  decoded_frame out;
  auto& header = out.header;
  header.minor = load<std::uint16_t>(frame, at::minor);
  const auto kind = load<std::uint8_t>(frame, at::kind);
  if (!known(kind))
    return fail(errc::unsupported, "a frame is of the unknown kind " + std::to_string(kind));
  header.kind = static_cast<frame_kind>(kind);
  const auto cause = load<std::uint8_t>(frame, at::cause);
  if (cause >= end_causes)
    return fail(errc::unsupported, "a frame names the unknown cause " + std::to_string(cause));
  header.cause = static_cast<end_cause>(cause);
  header.code = load<std::uint8_t>(frame, at::code);

  const std::size_t header_bytes = load<std::uint32_t>(frame, at::header_bytes);
  const std::size_t name = load<std::uint16_t>(frame, at::name_bytes);
  const std::size_t extras = load<std::uint16_t>(frame, at::extras_bytes);
  const std::size_t words = load<std::uint32_t>(frame, at::words_bytes);
  const std::size_t used = fixed_header_bytes + name + extras;
  if (header_bytes % 8 != 0 || header_bytes < used || words % 8 != 0)
    return fail(errc::corrupt, "the lengths of a frame do not fit together");
  if (name > limits.name || extras > limits.extras || words > limits.words)
    return fail(errc::too_large, "a part of a frame is over its limit");
  if (header_bytes > frame.size() || words != frame.size() - header_bytes)
    return fail(errc::corrupt, "a frame is not as long as it says");
  if (major == protocol_major && header.minor <= protocol_minor && header_bytes - used >= 8)
    return fail(errc::corrupt, "a header is longer than its version has fields");

  header.correlation = load<std::uint64_t>(frame, at::correlation);
  header.session = load<std::uint64_t>(frame, at::session);
  header.source = load<std::uint64_t>(frame, at::source);
  header.target = load<std::uint64_t>(frame, at::target);
  header.type = load<std::uint64_t>(frame, at::type);
  header.deadline_us = std::min(load<std::uint64_t>(frame, at::deadline), limits.deadline_us);
  header.trace.high = load<std::uint64_t>(frame, at::trace_high);
  header.trace.low = load<std::uint64_t>(frame, at::trace_low);
  header.trace.span = load<std::uint64_t>(frame, at::trace_span);
  header.trace.flags = load<std::uint16_t>(frame, at::trace_flags);
  header.attachments = load<std::uint16_t>(frame, at::attachments);
  if (header.attachments > limits.attachments)
    return fail(errc::too_large, "a letter has too many attachments");
  const auto text = frame.subspan(fixed_header_bytes, name);
  header.name = {reinterpret_cast<const char*>(text.data()), text.size()};
  if (!printable(header.name))
    return fail(errc::corrupt, "a name in a frame is not printable");
  header.extras = frame.subspan(fixed_header_bytes + name, extras);
  out.words = frame.subspan(header_bytes);
  return out;
}

} // namespace godwit::link
