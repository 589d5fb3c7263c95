#include "services/link/core.hpp"

#include <algorithm>
#include <vector>

namespace godwit::link {

core::core(hello self, core_options most, transport& network, receiver& upper, link_counters& counters,
  std::uint64_t seed)
  : most_(std::move(most)), upper_(upper), counters_(counters),
    peers_(std::move(self), most_.peers, network, *this, counters, seed) {}

std::vector<peer_status> core::status() const {
  std::vector<peer_status> all;
  for (const auto& [name, one] : peers_.all()) {
    peer_status each;
    each.node = one->record.name;
    each.state = one->state;
    each.incarnation = one->incarnation;
    each.round_trip = one->round_trip;
    each.queued_parcels = one->letters_out.size();
    each.queued_bytes = one->letters_out.bytes();
    each.queued_bulk = one->bulk_out.size();
    each.queued_bulk_bytes = one->bulk_out.bytes();
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
  if (auto* const one = peers_.find(node))
    peers_.must_post(*one, which, {std::move(what), deadline, 0}, now);
  else
    link_counters::add(counters_.dead_letters);
}

void core::overload(std::string_view node, moment now) {
  if (node.empty())
    for (const auto& [name, one] : peers_.all())
      peers_.overload(*one, now);
  else if (auto* const one = peers_.find(node))
    peers_.overload(*one, now);
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
    peers_.must_post(*one, lane::letters, {{encode(header), {}}, never, 0}, now);
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
  peers_.must_post(one, lane::letters, {{encode(header, body.bytes()), {}}, never, 0}, now);
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

// --- peers ---

void core::peer_up(peer& one) {
  ++peer_changes_;
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
  event_counts_.erase(name);
  ++peer_changes_;
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

bool core::ready(std::string_view node, lane which) {
  const auto* const one = peers_.find(node);
  return one != nullptr && peers::ready(*one, which) && pending_.size() < most_.pending;
}

bool core::flush(std::string_view node, moment now) {
  auto* const one = peers_.find(node);
  if (one == nullptr || !peers_.flush(*one, now))
    return false;
  count_queues();
  return true;
}

void core::count_queues() {
  std::uint64_t parcels = 0;
  std::uint64_t bytes = 0;
  std::uint64_t bulk = 0;
  std::uint64_t bulk_bytes = 0;
  for (const auto& [name, one] : peers_.all()) {
    parcels += one->letters_out.size();
    bytes += one->letters_out.bytes();
    bulk += one->bulk_out.size();
    bulk_bytes += one->bulk_out.bytes();
  }
  link_counters::set(counters_.queued_parcels, parcels);
  link_counters::set(counters_.queued_bytes, bytes);
  link_counters::set(counters_.queued_bulk, bulk);
  link_counters::set(counters_.queued_bulk_bytes, bulk_bytes);
}

void core::close(end_cause cause, moment now) {
  peers_.close(cause, now);
}

} // namespace godwit::link
