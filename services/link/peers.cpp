#include "services/link/peers.hpp"

#include "messages/check.hpp"
#include "messages/reasons.hpp"
#include "services/link/control_frames.hpp"

#include <algorithm>
#include <utility>

namespace godwit::link {

peers::peers(hello self, peer_options pace, transport& network, peer_observer& observer,
  link_counters& counters, std::uint64_t seed)
  : self_(std::move(self)), pace_(pace), network_(network), observer_(observer), counters_(counters),
    random_(seed), last_session_(self_.incarnation << 20U) {
  GODWIT_CHECK(self_.incarnation != 0);
}

std::uint64_t peers::random() {
  // SplitMix64 (Steele, Lea, Flood 2014).
  random_ += 0x9e3779b97f4a7c15;
  auto z = random_;
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111eb;
  return z ^ (z >> 31U);
}

moment peers::pause(unsigned failures) {
  auto pause = pace_.first_pause;
  for (unsigned i = 1; i < failures && pause < pace_.last_pause; ++i)
    pause *= 2;
  pause = std::min(pause, pace_.last_pause);
  return pause / 2
         + moment(static_cast<moment::rep>(random() % static_cast<std::uint64_t>(pause.count() / 2 + 1)));
}

void peers::rise(std::uint64_t incarnation) {
  if (incarnation <= self_.incarnation)
    return;
  self_.incarnation = incarnation;
  last_session_ = std::max(last_session_, self_.incarnation << 20U);
}

void peers::add(peer_record record, moment now) {
  const auto found = all_.find(record.name.value);
  if (found != all_.end()) {
    auto& one = *found->second;
    const bool same = one.record.key == record.key && one.record.letters == record.letters
                      && one.record.bulk == record.bulk && one.record.events == record.events;
    one.record = std::move(record);
    if (!same)
      lose(one, end_cause::peer_lost, "it has moved", now);
    return;
  }
  const auto name = record.name.value;
  auto& one = *all_.emplace(name, std::make_unique<peer>(std::move(record), pace_)).first->second;
  one.mine = ++last_session_;
  one.next_dial = now;
  due_ = now;
}

bool peers::remove(const node_name& name, end_cause cause, moment now) {
  const auto found = all_.find(name.value);
  if (found == all_.end())
    return false;
  auto& one = *found->second;
  say_bye(one, cause);
  lose(one, cause, "it was taken off the list", now);
  all_.erase(name.value);
  return true;
}

peer* peers::find(std::string_view name) {
  const auto found = all_.find(name);
  return found == all_.end() ? nullptr : found->second.get();
}

peer* peers::find_channel(channel_id channel) {
  for (auto& [name, one] : all_)
    if (one->letters == channel || one->bulk == channel || one->events == channel)
      return one.get();
  return nullptr;
}

// --- ends ---

void peers::hang_up(peer& one) {
  for (auto* channel : {&one.letters, &one.bulk, &one.events})
    if (*channel != 0)
      network_.hang_up(std::exchange(*channel, 0));
  one.control.clear();
  one.welcomed = false;
  one.bulk_greeted = false;
}

void peers::clear_out(peer& one) {
  link_counters::add(counters_.dead_letters, one.letters_out.clear() + one.bulk_out.clear());
  one.hole = never;
}

void peers::lose(peer& one, end_cause cause, const std::string& why, moment now) {
  if (one.state == peer_state::up)
    link_counters::add(counters_.peers_lost);
  hang_up(one);
  one.state = peer_state::away;
  one.theirs = 0;
  one.mine = ++last_session_;
  clear_out(one);
  forget_bulk(one);
  ++one.failures;
  one.next_dial = now + pause(one.failures);
  one.beats = 0;
  one.echoed_beat = 0;
  due_ = std::min(due_, one.next_dial);
  observer_.peer_down(one, cause, why);
}

void peers::say_bye(peer& one, end_cause cause) {
  // On the peer's own connection: ours may be the one that is stuck.
  if (one.theirs == 0)
    return;
  auto said = bye_frame(one.mine, cause);
  stamp(said);
  network_.answer(one.back, std::move(said));
}

void peers::give_up(peer& one, const std::string& why, moment now) {
  link_counters::add(counters_.overloaded);
  say_bye(one, end_cause::overloaded);
  lose(one, end_cause::overloaded, why, now);
}

void peers::overload(peer& one, moment now) {
  if (closed_ || !one.takes_letters())
    return; // what waited for it was told already
  one.hole = now;
  due_ = std::min(due_, now);
}

void peers::on_bye(peer& one, end_cause cause, moment now) {
  lose(one, cause == end_cause::none ? end_cause::peer_lost : cause,
    "it said goodbye: " + std::string(to_string(cause)), now);
}

void peers::close(end_cause cause, moment now) {
  closed_ = true;
  for (auto& [name, one] : all_) {
    say_bye(*one, cause);
    lose(*one, cause, "this node stops", now);
  }
  due_ = never;
}

// --- beats ---

/// When to beat next. All peers are told in one go: waking up for each would cost more than its beat.
moment peers::next_beats(moment now) {
  if (beats_at_ <= now)
    beats_at_ = now + pace_.beat;
  return beats_at_;
}

void peers::beat(peer& one, moment now) {
  one.next_beat = next_beats(now);
  if (one.theirs == 0)
    return; // there is no way back yet
  ++one.beats;
  one.beat_times[one.beats % one.beat_times.size()] = now;
  auto said =
    control_frame(frame_kind::beat, one.mine, letter<schema::Beat>::make([&](schema::Beat::Builder b) {
      b.setCount(one.beats);
      b.setEcho(one.echo);
      b.setEchoAgeMicros(one.echo == 0 ? 0 : static_cast<std::uint64_t>((now - one.echo_at).count()));
      b.setBulk(one.bulk_came);
    }));
  stamp(said);
  // Not on our own connections, where letters wait; and so the other side knows that its connections live.
  if (!one.bulk_back.id.empty() && !network_.answer(one.bulk_back, said))
    one.bulk_back.id.clear();
  network_.answer(one.back, std::move(said));
}

void peers::on_beat(peer& one, lane which, const letter<schema::Beat>& beat, moment now) {
  const auto said = beat.read();
  one.heard = now;
  (which == lane::bulk ? one.bulk_heard : one.beat_heard) = now;
  one.bulk_taken = std::max(one.bulk_taken, std::min(said.getBulk(), one.bulk_gone));
  if (said.getCount() > one.echo) { // each may come by two ways
    one.echo = said.getCount();
    one.echo_at = now;
  }
  const auto echo = said.getEcho();
  if (echo <= one.echoed_beat || echo > one.beats)
    return;
  one.echoed_beat = echo;
  one.echoed = now;
  if (one.beats - echo < one.beat_times.size()) {
    const auto age =
      moment(static_cast<moment::rep>(std::min<std::uint64_t>(said.getEchoAgeMicros(), 60'000'000)));
    one.round_trip = std::max(moment(0), now - one.beat_times[echo % one.beat_times.size()] - age);
  }
}

void peers::check(peer& one, moment now) {
  if (one.hole != never)
    return give_up(one, "something for it found no place, or waited too long", now);
  if (one.state == peer_state::away) {
    if (now >= one.next_dial)
      dial(one, now);
    return;
  }
  if (one.state == peer_state::dialing && now >= one.greet_until)
    return lose(one, end_cause::peer_lost, "it could not be reached", now);
  if (one.state == peer_state::dialing && !one.welcomed && now >= one.redial)
    return dial(one, now);
  if (one.state == peer_state::up) {
    if (now - one.heard >= pace_.silence())
      return lose(one, end_cause::peer_lost, "it is silent", now);
    if (now - one.echoed >= pace_.deafness())
      return lose(one, end_cause::peer_lost, "it does not hear this node", now);
    if (now - one.beat_heard >= pace_.deafness())
      return lose(one, end_cause::peer_lost, "the connection to it is dead", now);
    const bool slow = (!one.letters_out.empty() && now - one.letters_moved >= pace_.slow)
                      || (!one.bulk_out.empty() && now - one.bulk_moved >= pace_.slow);
    if (slow)
      return give_up(one, "it takes nothing any more", now);
    if (now >= bulk_dead(one))
      redial_bulk(one, now);
    if (one.state != peer_state::up)
      return;
  }
  if (one.welcomed && now >= one.next_beat)
    beat(one, now);
  flush(one, now);
}

moment peers::due_of(const peer& one) const {
  if (one.hole != never)
    return one.hole;
  switch (one.state) {
  case peer_state::away:
    return one.next_dial;
  case peer_state::dialing:
    return std::min(one.greet_until, one.welcomed ? one.next_beat : one.redial);
  case peer_state::up: {
    auto first = std::min({one.heard + pace_.silence(), one.echoed + pace_.deafness(),
      one.beat_heard + pace_.deafness(), one.next_beat, bulk_dead(one)});
    if (!one.letters_out.empty())
      first = std::min(first, one.letters_moved + pace_.slow);
    if (!one.bulk_out.empty())
      first = std::min(first, one.bulk_moved + pace_.slow);
    return first;
  }
  }
  return never;
}

void peers::tick(moment now) {
  if (closed_ || now < due_)
    return;
  const auto late = now - due_;
  if (late >= pace_.silence()) {
    // We were stopped. The others suspect us by now; whatever they said since is of conversations that are
    // over.
    ++self_.incarnation;
    last_session_ = std::max(last_session_, self_.incarnation << 20U);
    for (auto& [name, one] : all_) {
      lose(*one, end_cause::peer_lost, "this node was stopped for a while", now);
      one->failures = std::min(one->failures, 1U);
      one->next_dial = now;
    }
  } else if (late >= pace_.beat) {
    // Late ourselves: what the others said meanwhile is still to be read.
    for (auto& [name, one] : all_) {
      one->heard += late;
      one->echoed += late;
      one->beat_heard += late;
      one->bulk_heard += late;
    }
  }
  for (auto& [name, one] : all_)
    check(*one, now);
  due_ = never;
  for (const auto& [name, one] : all_)
    due_ = std::min(due_, due_of(*one));
}

// --- letters ---

result<void> peers::post(peer& one, lane which, queued what, moment now) {
  if (one.hole != never)
    return fail(errc::overloaded, "too much waits for the node " + one.record.name.value);
  if (closed_ || !one.takes_letters())
    return one.refusal.empty()
             ? fail(errc::unavailable, "the node " + one.record.name.value + " cannot be reached", {},
               std::string(reasons::node_unreachable))
             : fail(
               errc::unavailable, "the node " + one.record.name.value + " cannot be reached: " + one.refusal);
  auto& out = which == lane::bulk ? one.bulk_out : one.letters_out;
  auto& moved = which == lane::bulk ? one.bulk_moved : one.letters_moved;
  const bool first = out.empty();
  if (first)
    moved = now;
  if (!out.push(std::move(what))) {
    link_counters::add(counters_.overflows);
    return fail(errc::overloaded, "too much waits for the node " + one.record.name.value);
  }
  if (which == lane::bulk && one.bulk == 0 && one.state == peer_state::up)
    dial_bulk(one, now);
  if (first)
    due_ = std::min(due_, due_of(one));
  return {};
}

bool peers::ready(const peer& one, lane which) {
  if (one.state != peer_state::up || one.hole != never || !one.control.empty())
    return false;
  return which == lane::bulk ? one.bulk_greeted && one.bulk_out.empty() : one.letters_out.empty();
}

void peers::must_post(peer& one, lane which, queued what, moment now) {
  if (post(one, which, std::move(what), now))
    return;
  link_counters::add(counters_.dead_letters);
  overload(one, now);
}

void peers::send_lane(peer& one, lane which, moment now) {
  const bool bulk = which == lane::bulk;
  const auto channel = bulk ? one.bulk : one.letters;
  auto& out = bulk ? one.bulk_out : one.letters_out;
  auto& moved = bulk ? one.bulk_moved : one.letters_moved;
  while (!out.empty()) {
    auto& first = out.front();
    const auto bytes = first.what.bytes();
    if (first.deadline <= now) {
      link_counters::add(counters_.expired);
      if (first.request == 0)
        return overload(one, now); // nobody would hear of it, and those behind it may not go without it
      out.pop(bytes);
      continue;
    }
    set_session(first.what.head, one.mine);
    stamp(first.what);
    if (first.deadline != never)
      set_deadline(first.what.head, static_cast<std::uint64_t>((first.deadline - now).count()));
    if (!network_.send(channel, first.what))
      return;
    link_counters::add(counters_.letters_sent);
    link_counters::add(counters_.bytes_sent, bytes);
    ++one.letters_sent;
    one.bytes_sent += bytes;
    if (bulk) {
      ++one.bulk_gone;
      link_counters::add(counters_.bulk_sent);
      link_counters::add(counters_.bulk_bytes_sent, bytes);
    }
    out.pop(bytes);
    moved = now;
  }
}

bool peers::flush(peer& one, moment now) {
  if (one.letters == 0 || one.hole != never)
    return false;
  std::size_t sent = 0;
  while (sent < one.control.size() && network_.send(one.letters, one.control[sent]))
    ++sent;
  one.control.erase(one.control.begin(), one.control.begin() + static_cast<std::ptrdiff_t>(sent));
  if (one.state != peer_state::up || !one.control.empty())
    return !one.control.empty();
  send_lane(one, lane::letters, now);
  if (one.bulk != 0 && greet_bulk(one, now))
    send_lane(one, lane::bulk, now);
  return !one.letters_out.empty() || !one.bulk_out.empty();
}

} // namespace godwit::link
