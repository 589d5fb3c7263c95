// What came over the network, taken apart and handed to whom it is for.

#include "services/link/core.hpp"

#include <algorithm>

namespace godwit::link {

std::optional<incoming> core::open(lane which, std::string_view who, std::span<const received_frame> frames) {
  std::size_t bytes = 0;
  for (const auto& each : frames)
    bytes += each.bytes.size();
  link_counters::add(counters_.bytes_received, bytes);
  if (frames.empty()) {
    link_counters::add(counters_.malformed);
    return std::nullopt;
  }
  auto decoded = decode(frames.front().bytes, most_.frames);
  if (!decoded && decoded.error().code == errc::too_large)
    link_counters::add(counters_.oversized);
  if (!decoded || decoded->header.attachments != frames.size() - 1) {
    link_counters::add(counters_.malformed);
    return std::nullopt;
  }
  return incoming{who, which, decoded->header, decoded->words, frames.subspan(1)};
}

void core::on_message(lane which, std::string_view who, const return_path& path,
  std::span<const received_frame> frames, moment now) {
  const auto mail = open(which, who, frames);
  if (!mail)
    return;
  if (mail->header.kind == frame_kind::hello) {
    const auto body = letter<schema::Hello>::parse(mail->words);
    const auto said = body ? from_letter(*body) : result<hello>(fail(body));
    if (!said || which != lane::letters) {
      link_counters::add(counters_.malformed);
      return;
    }
    return peers_.on_hello(who, path, *said, now);
  }
  auto* const one = peers_.find(who);
  if (one == nullptr || one->theirs == 0 || mail->header.session != one->theirs) {
    link_counters::add(counters_.stale);
    return;
  }
  one->heard = now;
  const bool says_whose = mail->header.kind == frame_kind::beat; // the first on a bulk connection
  if (which == lane::bulk)
    peers::on_bulk(*one, path, !says_whose);
  if (which == lane::bulk && says_whose)
    return;
  std::size_t bytes = 0;
  for (const auto& each : frames)
    bytes += each.bytes.size();
  ++one->letters_received;
  one->bytes_received += bytes;
  if (which == lane::bulk) {
    link_counters::add(counters_.bulk_received);
    link_counters::add(counters_.bulk_bytes_received, bytes);
  }
  handle(*one, *mail, now);
}

void core::handle(peer& one, const incoming& mail, moment now) {
  link_counters::add(counters_.letters_received);
  const auto correlation = mail.header.correlation;
  switch (mail.header.kind) {
  case frame_kind::bye:
    return peers_.on_bye(one, mail.header.cause, now);
  case frame_kind::letter:
    return upper_.on_letter(mail);
  case frame_kind::request:
    return serve(one, mail, now);
  case frame_kind::reply:
  case frame_kind::failure: {
    const auto found = pending_.find(correlation);
    if (found == pending_.end() || found->second.node != one.record.name.value) {
      link_counters::add(counters_.stale);
      return;
    }
    if (mail.header.kind == frame_kind::reply)
      return finish(correlation, mail);
    const auto body = letter<schema::Failure>::parse(mail.words);
    if (!body)
      link_counters::add(counters_.malformed);
    return finish(correlation, body
                                 ? tl::unexpected<error>(from_letter(*body, mail.header.code))
                                 : fail(errc::corrupt, "the failure that a node answered with is malformed"));
  }
  case frame_kind::cancel:
    if (const auto of_node = serving_.find(one.record.name.value);
        of_node != serving_.end() && of_node->second.erase({mail.header.session, correlation}) != 0) {
      link_counters::set(counters_.serving_requests, --now_serving_);
      upper_.on_cancel({one.record.name.value, mail.header.session, correlation}, mail.header.cause);
    }
    return;
  case frame_kind::released:
  case frame_kind::gone:
    return upper_.on_reference(mail);
  case frame_kind::stream_open:
    return serve_stream(one, mail, now);
  case frame_kind::stream_item:
    return take_item(one, mail, now);
  case frame_kind::stream_end:
    if (mail.header.source == 0) // the producer's
      return take_item(one, mail, now);
    [[fallthrough]];
  case frame_kind::stream_credit: {
    const auto of_node = producers_.find(one.record.name.value);
    if (of_node == producers_.end())
      return;
    const auto found = of_node->second.find({mail.header.session, correlation});
    if (found == of_node->second.end())
      return;
    const auto held = found->second;
    if (mail.header.kind == frame_kind::stream_end) {
      of_node->second.erase(found);
      link_counters::set(counters_.streams, consumers_.size() + --now_producing_);
      held.credit->ended = mail.header.cause == end_cause::none ? end_cause::cancelled : mail.header.cause;
      held.credit->open.store(false, std::memory_order_release);
    } else {
      const auto have = held.credit->items.load();
      held.credit->items +=
        std::min(mail.header.source, most_.stream_credit - std::min(have, most_.stream_credit));
    }
    return upper_.on_credit(held.token, held.credit);
  }
  default:
    // Greetings and beats on the wrong way, events among letters.
    link_counters::add(counters_.malformed);
    return;
  }
}

void core::on_channel_message(channel_id channel, std::span<const received_frame> frames, moment now) {
  auto* const one = peers_.find_channel(channel);
  if (one == nullptr)
    return;
  const auto mail = open(lane::letters, one->record.name.value, frames);
  if (!mail)
    return;
  switch (mail->header.kind) {
  case frame_kind::welcome: {
    const auto body = letter<schema::Hello>::parse(mail->words);
    const auto said = body ? from_letter(*body) : result<hello>(fail(body));
    if (!said)
      break;
    return peers_.on_welcome(*one, *said, now);
  }
  case frame_kind::refused: {
    const auto body = letter<schema::Failure>::parse(mail->words);
    if (!body)
      break;
    return peers_.on_refused(*one, from_letter(*body, mail->header.code), now);
  }
  case frame_kind::beat: {
    if (one->theirs == 0 || mail->header.session != one->theirs) {
      link_counters::add(counters_.stale);
      return;
    }
    const auto body = letter<schema::Beat>::parse(mail->words);
    if (!body)
      break;
    return peers_.on_beat(*one, channel == one->bulk ? lane::bulk : lane::letters, *body, now);
  }
  case frame_kind::bye:
    return peers_.on_bye(*one, mail->header.cause, now);
  default:
    break;
  }
  link_counters::add(counters_.malformed);
}

void core::on_event_message(
  channel_id channel, std::string_view topic, std::span<const received_frame> frames, moment now) {
  auto* const one = peers_.find_channel(channel);
  if (one == nullptr)
    return;
  const auto mail = open(lane::events, one->record.name.value, frames);
  if (!mail)
    return;
  if (mail->header.kind != frame_kind::event || mail->header.name != topic) {
    link_counters::add(counters_.malformed);
    return;
  }
  auto& of_node = event_counts_[one->record.name.value];
  auto known = of_node.find(topic);
  if (known == of_node.end()) {
    if (of_node.size() >= most_.topics) {
      link_counters::add(counters_.malformed);
      return;
    }
    known = of_node.emplace(topic, 0).first;
  }
  one->heard = now;
  link_counters::add(counters_.events_received);
  auto& last = known->second;
  const auto count = mail->header.correlation;
  if (last != 0 && count > last + 1) {
    link_counters::add(counters_.events_missed, count - last - 1);
    upper_.on_events_missed(one->record.name.value, topic, count - last - 1);
  }
  last = count;
  upper_.on_event(*mail);
}

} // namespace godwit::link
