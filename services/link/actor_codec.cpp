#include "services/link/actor_codec.hpp"

#include "services/link/bytes.hpp"

namespace godwit::link {

namespace {

// An entry of the extras: its kind, its length, its bytes.
constexpr std::size_t entry_head = 3;
// A reference: whose, the number, then the name.
constexpr std::size_t reference_head = 9;

} // namespace

result<std::span<const std::byte>> extras_reader::next(std::uint8_t kind) {
  if (rest_.size() < entry_head || load<std::uint8_t>(rest_, 0) != kind)
    return fail(errc::corrupt, "an element of a message is missing");
  const std::size_t length = load<std::uint16_t>(rest_, 1);
  if (length > rest_.size() - entry_head)
    return fail(errc::corrupt, "an element of a message is cut");
  const auto bytes = rest_.subspan(entry_head, length);
  rest_ = rest_.subspan(entry_head + length);
  return bytes;
}

void append_extra(std::vector<std::byte>& extras, std::uint8_t kind, std::span<const std::byte> bytes) {
  const auto begin = extras.size();
  extras.resize(begin + entry_head);
  store(std::span(extras), begin, kind);
  // Over this no frame is sent (see pack's caller), so that nothing is cut here.
  store(std::span(extras), begin + 1, static_cast<std::uint16_t>(bytes.size()));
  extras.insert(extras.end(), bytes.begin(), bytes.end());
}

std::vector<std::byte> encode_reference(const actor_reference& reference) {
  std::vector<std::byte> out(reference_head + reference.name.size());
  store(std::span(out), 0, static_cast<std::uint8_t>(reference.yours));
  store(std::span(out), 1, reference.id);
  std::memcpy(out.data() + reference_head, reference.name.data(), reference.name.size());
  return out;
}

result<actor_reference> decode_reference(std::span<const std::byte> bytes) {
  if (bytes.size() < reference_head || load<std::uint8_t>(bytes, 0) > 1)
    return fail(errc::corrupt, "a reference to an actor is malformed");
  actor_reference out;
  out.yours = load<std::uint8_t>(bytes, 0) == 1;
  out.id = load<std::uint64_t>(bytes, 1);
  out.name.assign(
    reinterpret_cast<const char*>(bytes.data()) + reference_head, bytes.size() - reference_head);
  if ((out.id == 0) == out.name.empty() || (!out.yours && out.id == 0))
    return fail(errc::corrupt, "a reference to an actor names none");
  return out;
}

std::vector<attachment> copy_attachments(std::span<const received_frame> frames) {
  std::vector<attachment> out;
  out.reserve(frames.size());
  for (const auto& each : frames)
    out.push_back(std::make_shared<const std::vector<std::byte>>(each.bytes.begin(), each.bytes.end()));
  return out;
}

} // namespace godwit::link
