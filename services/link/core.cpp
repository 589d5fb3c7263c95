#include "services/link/core.hpp"

#include <algorithm>
#include <vector>

namespace godwit::link {

core::core(hello self, core_options most, transport& network, receiver& upper, link_counters& counters,
  std::uint64_t seed)
  : most_(std::move(most)), network_(network), upper_(upper), counters_(counters),
    peers_(std::move(self), most_.peers, network, *this, counters, seed) {}

std::vector<peer_status> core::status() const {
  std::vector<peer_status> all;
  for (const auto& [name, one] : peers_.all()) {
    peer_status each;
    each.node = one->record.name;
    each.state = one->state;
    each.incarnation = one->incarnation;
    each.round_trip = one->round_trip;
    each.queued_parcels = one->letters_out.size() + one->bulk_out.size();
    each.queued_bytes = one->letters_out.bytes() + one->bulk_out.bytes();
    each.refusal = one->refusal;
    each.letters_sent = one->letters_sent;
    each.bytes_sent = one->bytes_sent;
    each.letters_received = one->letters_received;
    each.bytes_received = one->bytes_received;
    if (const auto found = producers_.find(name); found != producers_.end()) {
      each.streams = found->second.size();
      for (const auto& [key, stream] : found->second)
        each.credit += stream.credit->items.load(std::memory_order_relaxed);
    }
    all.push_back(std::move(each));
  }
  return all;
}

// --- requests of this node ---

void core::send(std::string_view node, lane which, parcel what, moment deadline, moment now) {
  auto* const one = peers_.find(node);
  if (one == nullptr || !peers_.post(*one, which, {std::move(what), deadline, 0}, now))
    link_counters::add(counters_.dead_letters);
}

void core::request(std::string_view node, lane which, parcel what, std::uint64_t correlation, moment deadline,
  answered done, moment now) {
  if (deadline <= now)
    return done(fail(errc::deadline, "the time for it was over before it was sent"));
  auto* const one = peers_.find(node);
  if (one == nullptr)
    return done(fail(errc::unavailable, "no node is called " + std::string(node)));
  if (pending_.size() >= most_.pending) {
    link_counters::add(counters_.overflows);
    return done(fail(errc::overloaded, "too many requests to other nodes are without an answer"));
  }
  if (auto posted = peers_.post(*one, which, {std::move(what), deadline, correlation}, now); !posted)
    return done(fail(posted));
  pending_.emplace(correlation, pending{std::string(node), deadline, std::move(done)});
  deadlines_.emplace(deadline, correlation);
  link_counters::set(counters_.pending_requests, pending_.size());
}

void core::finish(std::uint64_t correlation, const result<incoming>& how) {
  const auto found = pending_.find(correlation);
  if (found == pending_.end())
    return;
  const auto ended = std::move(found->second);
  deadlines_.erase({ended.deadline, correlation});
  pending_.erase(found);
  link_counters::set(counters_.pending_requests, pending_.size());
  ended.done(how);
}

void core::cancel(std::uint64_t correlation, end_cause cause, moment now) {
  const auto found = pending_.find(correlation);
  if (found == pending_.end())
    return;
  post_control(found->second.node, frame_kind::cancel, correlation, 0, cause, now);
  finish(correlation, fail(error_of(cause), "the request was ended: " + std::string(to_string(cause))));
}

void core::post_control(std::string_view node, frame_kind kind, std::uint64_t correlation,
  std::uint64_t source, end_cause cause, moment now) {
  frame_header header;
  header.kind = kind;
  header.correlation = correlation;
  header.source = source;
  header.cause = cause;
  if (auto* const one = peers_.find(node); one != nullptr && one->state == peer_state::up)
    (void)peers_.post(*one, lane::letters, {{encode(header), {}}, never, 0}, now);
}

// --- requests of other nodes ---

void core::reply(const reply_token& token, lane which, parcel what, moment now) {
  const auto of_node = serving_.find(token.node);
  if (of_node == serving_.end() || of_node->second.erase({token.session, token.correlation}) == 0)
    return; // cancelled, expired, or the peer is gone
  link_counters::set(counters_.serving_requests, --now_serving_);
  send(token.node, which, std::move(what), never, now);
}

void core::refuse(peer& one, std::uint64_t correlation, frame_kind kind, const error& why, moment now) {
  frame_header header;
  header.kind = kind;
  header.correlation = correlation;
  header.code = static_cast<std::uint8_t>(why.code);
  header.cause = cause_of(why.code);
  const auto body = to_letter(why);
  (void)peers_.post(one, lane::letters, {{encode(header, body.bytes()), {}}, never, 0}, now);
}

void core::serve(peer& one, const incoming& mail, moment now) {
  auto& of_node = serving_[one.record.name.value];
  const served_key key{mail.header.session, mail.header.correlation};
  if (of_node.size() >= most_.serving) {
    link_counters::add(counters_.overflows);
    return refuse(one, key.correlation, frame_kind::failure,
      {errc::overloaded, "too many requests of this node are without an answer", {}, {}}, now);
  }
  const auto deadline = mail.header.deadline_us == 0
                          ? now + moment(static_cast<moment::rep>(most_.frames.deadline_us))
                          : now + moment(static_cast<moment::rep>(mail.header.deadline_us));
  if (!of_node.emplace(key, deadline).second) {
    link_counters::add(counters_.malformed); // the same request twice
    return;
  }
  link_counters::set(counters_.serving_requests, ++now_serving_);
  upper_.on_request(mail, {one.record.name.value, key.session, key.correlation});
}

// --- streams ---

void core::open_stream(std::string_view node, lane which, parcel what, std::uint64_t correlation,
  std::uint64_t credit, stream_sink sink, moment now) {
  const auto refused = [&sink](error why) { sink({nullptr, std::move(why), false}); };
  auto* const one = peers_.find(node);
  if (one == nullptr)
    return refused({errc::unavailable, "no node is called " + std::string(node), {}, {}});
  if (consumers_.size() >= most_.streams) {
    link_counters::add(counters_.overflows);
    return refused({errc::overloaded, "too many streams from other nodes are open", {}, {}});
  }
  if (auto posted = peers_.post(*one, which, {std::move(what), never, 0}, now); !posted)
    return refused(posted.error());
  consumers_.emplace(
    correlation, consumer{std::string(node), std::min(credit, most_.stream_credit), std::move(sink)});
  link_counters::set(counters_.streams, consumers_.size() + now_producing_);
}

void core::grant(std::uint64_t correlation, std::uint64_t items, moment now) {
  const auto found = consumers_.find(correlation);
  if (found == consumers_.end())
    return;
  items = std::min(items, most_.stream_credit - found->second.credit);
  if (items == 0)
    return;
  found->second.credit += items;
  post_control(found->second.node, frame_kind::stream_credit, correlation, items, end_cause::none, now);
}

void core::end_stream(std::uint64_t correlation, end_cause cause, moment now) {
  const auto found = consumers_.find(correlation);
  if (found == consumers_.end())
    return;
  post_control(found->second.node, frame_kind::stream_end, correlation, 1, cause, now);
  finish_stream(
    correlation, {nullptr, {error_of(cause), "the stream was ended by its consumer", {}, {}}, false});
}

void core::finish_stream(std::uint64_t correlation, const stream_event& how) {
  const auto found = consumers_.find(correlation);
  if (found == consumers_.end())
    return;
  const auto sink = std::move(found->second.sink);
  consumers_.erase(found);
  link_counters::set(counters_.streams, consumers_.size() + now_producing_);
  sink(how);
}

void core::take_item(peer& one, const incoming& mail, moment now) {
  const auto correlation = mail.header.correlation;
  const auto found = consumers_.find(correlation);
  if (found == consumers_.end() || found->second.node != one.record.name.value)
    return; // it has ended; what was on its way is dropped
  if (mail.header.kind == frame_kind::stream_end) {
    if (mail.header.code == 0 && mail.header.cause == end_cause::none)
      return finish_stream(correlation, {nullptr, {}, true});
    const auto body = letter<schema::Failure>::parse(mail.words);
    auto why = body ? from_letter(*body, mail.header.code)
                    : error{error_of(mail.header.cause), "the stream was ended by its producer", {}, {}};
    return finish_stream(correlation, {nullptr, std::move(why), false});
  }
  if (found->second.credit == 0) {
    link_counters::add(counters_.credit_broken);
    post_control(one.record.name.value, frame_kind::stream_end, correlation, 1, end_cause::overloaded, now);
    return finish_stream(correlation,
      {nullptr, {errc::corrupt, "the producer sent more than it had credit for", {}, {}}, false});
  }
  --found->second.credit;
  // A copy: the sink may end the stream.
  const auto sink = found->second.sink;
  sink({&mail, {}, false});
}

void core::serve_stream(peer& one, const incoming& mail, moment now) {
  auto& of_node = producers_[one.record.name.value];
  const served_key key{mail.header.session, mail.header.correlation};
  reply_token token{one.record.name.value, key.session, key.correlation};
  const auto credit = std::min(mail.header.source, most_.stream_credit);
  if (now_producing_ >= most_.streams) {
    link_counters::add(counters_.overflows);
    return refuse(one, key.correlation, frame_kind::stream_end,
      {errc::overloaded, "too many streams are open", {}, {}}, now);
  }
  auto shared = std::make_shared<link::stream_credit>();
  shared->items = credit;
  if (!of_node.emplace(key, producer{token, shared}).second) {
    link_counters::add(counters_.malformed);
    return;
  }
  link_counters::set(counters_.streams, consumers_.size() + ++now_producing_);
  if (upper_.on_stream(mail, token, shared))
    return;
  of_node.erase(key);
  link_counters::set(counters_.streams, consumers_.size() + --now_producing_);
  link_counters::add(counters_.dead_letters);
  refuse(one, key.correlation, frame_kind::stream_end,
    {errc::not_found, "there is nothing here that makes this stream", {}, {}}, now);
}

void core::stream_send(const reply_token& token, lane which, parcel what, bool last, moment now) {
  const auto of_node = producers_.find(token.node);
  if (of_node == producers_.end())
    return;
  const auto found = of_node->second.find({token.session, token.correlation});
  if (found == of_node->second.end())
    return;
  if (last) {
    found->second.credit->open = false;
    of_node->second.erase(found);
    link_counters::set(counters_.streams, consumers_.size() + --now_producing_);
  }
  send(token.node, which, std::move(what), never, now);
}

// --- from the network ---

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
  if (mail->header.kind != frame_kind::beat) {
    ++one->letters_received;
    for (const auto& each : frames)
      one->bytes_received += each.bytes.size();
  }
  handle(*one, *mail, now);
}

void core::handle(peer& one, const incoming& mail, moment now) {
  link_counters::add(counters_.letters_received);
  const auto correlation = mail.header.correlation;
  switch (mail.header.kind) {
  case frame_kind::beat:
    if (const auto body = letter<schema::Beat>::parse(mail.words))
      return peers_.on_beat(one, *body, now);
    link_counters::add(counters_.malformed);
    return;
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
    // Greetings on the wrong way, events among letters.
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
  one->heard = now;
  link_counters::add(counters_.events_received);
  auto& last = event_counts_[{one->record.name.value, std::string(topic)}];
  const auto count = mail->header.correlation;
  if (last != 0 && count > last + 1) {
    link_counters::add(counters_.events_missed, count - last - 1);
    upper_.on_events_missed(one->record.name.value, topic, count - last - 1);
  }
  last = count;
  upper_.on_event(*mail);
}

// --- peers ---

void core::peer_up(peer& one) {
  upper_.on_peer({one.record.name.value, one.incarnation, true, end_cause::none, {}});
}

void core::peer_down(peer& one, end_cause cause, const std::string& why) {
  const auto& name = one.record.name.value;
  const error failure{error_of(cause), "the node " + name + " is gone: " + why, {}, {}};
  std::vector<std::uint64_t> ended;
  for (const auto& [correlation, waits] : pending_)
    if (waits.node == name)
      ended.push_back(correlation);
  for (const auto correlation : ended)
    finish(correlation, tl::unexpected<error>(failure));
  ended.clear();
  for (const auto& [correlation, waits] : consumers_)
    if (waits.node == name)
      ended.push_back(correlation);
  for (const auto correlation : ended)
    finish_stream(correlation, {nullptr, failure, false});

  if (const auto found = serving_.find(name); found != serving_.end()) {
    const auto served = std::move(found->second);
    serving_.erase(found);
    now_serving_ -= served.size();
    link_counters::set(counters_.serving_requests, now_serving_);
    for (const auto& [key, deadline] : served)
      upper_.on_cancel({name, key.session, key.correlation}, cause);
  }
  if (const auto found = producers_.find(name); found != producers_.end()) {
    const auto made = std::move(found->second);
    producers_.erase(found);
    now_producing_ -= made.size();
    link_counters::set(counters_.streams, consumers_.size() + now_producing_);
    for (const auto& [key, each] : made) {
      each.credit->ended = cause;
      each.credit->open.store(false, std::memory_order_release);
      upper_.on_credit(each.token, each.credit);
    }
  }
  std::erase_if(event_counts_, [&name](const auto& each) { return each.first.first == name; });
  upper_.on_peer({name, one.incarnation, false, cause, why});
}

// --- time ---

void core::tick(moment now) {
  while (!deadlines_.empty() && deadlines_.begin()->first <= now)
    cancel(deadlines_.begin()->second, end_cause::deadline, now);
  if (now >= next_sweep_)
    forget_served(now);
  peers_.tick(now);
}

/// Who asked knows its deadline itself; this is for a cancel that was not sent.
void core::forget_served(moment now) {
  next_sweep_ = now + most_.peers.beat;
  for (auto& [name, served] : serving_) {
    std::vector<served_key> over;
    for (const auto& [key, deadline] : served)
      if (deadline <= now)
        over.push_back(key);
    for (const auto& key : over) {
      served.erase(key);
      link_counters::set(counters_.serving_requests, --now_serving_);
      upper_.on_cancel({name, key.session, key.correlation}, end_cause::deadline);
    }
  }
}

moment core::due() const {
  return deadlines_.empty() ? peers_.due() : std::min(peers_.due(), deadlines_.begin()->first);
}

bool core::flush(moment now) {
  bool waits = false;
  for (const auto& [name, one] : peers_.all())
    waits = peers_.flush(*one, now) || waits;
  count_queues();
  return waits;
}

void core::count_queues() {
  std::uint64_t parcels = 0;
  std::uint64_t bytes = 0;
  for (const auto& [name, one] : peers_.all()) {
    parcels += one->letters_out.size() + one->bulk_out.size();
    bytes += one->letters_out.bytes() + one->bulk_out.bytes();
  }
  link_counters::set(counters_.queued_parcels, parcels);
  link_counters::set(counters_.queued_bytes, bytes);
}

void core::close(end_cause cause, moment now) {
  peers_.close(cause, now);
}

} // namespace godwit::link
