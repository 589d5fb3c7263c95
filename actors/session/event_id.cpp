#include "actors/session/event_id.hpp"

#include "messages/check.hpp"

#include <algorithm>
#include <charconv>

namespace godwit {

namespace {

constexpr std::size_t tag_size = 12;
constexpr std::size_t sequence_size = 9;

/// FNV-1a, then MurmurHash3's finaliser for the upper digits.
std::uint64_t hash(std::string_view text) {
  std::uint64_t h = 0xcbf29ce484222325U;
  for (const char c : text)
    h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  h = (h ^ (h >> 33)) * 0xff51afd7ed558ccdU;
  h = (h ^ (h >> 33)) * 0xc4ceb9fe1a85ec53U;
  return h ^ (h >> 33);
}

std::string padded(std::uint64_t number, std::size_t width) {
  auto digits = std::to_string(number);
  return std::string(width - digits.size(), '0') + digits;
}

std::uint64_t number(std::string_view digits) {
  std::uint64_t value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return value;
}

} // namespace

event_ids::event_ids(const session_id& session) {
  // The first digit is not 0, so that the number has the width of the text.
  constexpr std::uint64_t least = 100'000'000'000;
  tag_ = std::to_string(least + hash(session.value) % (9 * least));
}

std::string event_ids::text(event_place place) const {
  GODWIT_CHECK(place.sequence <= max_sequence && place.index <= event_place::end);
  return tag_ + padded(place.sequence, sequence_size) + padded(place.index, size - tag_size - sequence_size);
}

bool event_ids::has_form(std::string_view id) {
  return id.size() == size && id.front() != '0'
         && std::all_of(id.begin(), id.end(), [](char c) { return c >= '0' && c <= '9'; });
}

result<event_place> event_ids::parse(std::string_view id, sequence_number last) const {
  if (!has_form(id))
    return fail(errc::invalid_argument, "not an event id", "after");
  if (id.substr(0, tag_size) != tag_)
    return fail(errc::invalid_argument, "an event id of another session", "after");
  const event_place place{number(id.substr(tag_size, sequence_size)),
    static_cast<unsigned>(number(id.substr(tag_size + sequence_size)))};
  if (place.sequence > last)
    return fail(errc::invalid_argument, "this session has no such event yet", "after");
  return place;
}

} // namespace godwit
