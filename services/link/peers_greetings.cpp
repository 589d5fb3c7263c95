// How two nodes begin a conversation, or are told why there is none.

#include "services/link/control_frames.hpp"
#include "services/link/peers.hpp"

#include <algorithm>
#include <utility>

namespace godwit::link {

void peers::dial(peer& one, moment now) {
  hang_up(one);
  one.state = peer_state::dialing;
  one.welcomed = false;
  one.greet_until = now + pace_.handshake;
  one.redial = never;
  one.letters = network_.dial(lane::letters, one.record);
  greet(one);
  flush(one, now);
  due_ = std::min(due_, due_of(one));
}

void peers::greet(peer& one) {
  auto said = self_;
  said.session = one.mine;
  said.seen = one.theirs;
  one.control.clear();
  one.control.push_back(control_frame(frame_kind::hello, one.mine, to_letter(said)));
  stamp(one.control.back());
}

void peers::stamp(parcel& what) const {
  if (self_.major != protocol_major || self_.minor != protocol_minor)
    set_version(what.head, self_.major, self_.minor);
}

void peers::refuse(const return_path& path, peer* one, errc code, std::string why) {
  link_counters::add(counters_.refused);
  if (one != nullptr)
    one->refusal = why;
  const error reason{code, std::move(why), {}, {}};
  auto said = control_frame(
    frame_kind::refused, 0, to_letter(reason), end_cause::none, static_cast<std::uint8_t>(code));
  stamp(said);
  network_.answer(path, std::move(said));
}

void peers::on_hello(std::string_view who, const return_path& path, const hello& said, moment now) {
  if (closed_)
    return refuse(path, nullptr, errc::draining, self_.node.value + " is stopping");
  if (who != said.node.value)
    return refuse(path, nullptr, errc::permission,
      "the key of the node " + std::string(who) + " was used by one that calls itself " + said.node.value);
  if (said.node == self_.node)
    return refuse(path, nullptr, errc::conflict, "two nodes are called " + said.node.value);
  auto* const known = find(who);
  if (known == nullptr)
    return refuse(
      path, nullptr, errc::not_found, self_.node.value + " does not know a node " + said.node.value);
  auto& one = *known;
  if (const auto why = incompatibility(self_, said)) {
    refuse(path, &one, errc::unsupported, *why);
    if (one.state == peer_state::up)
      lose(one, end_cause::peer_lost, *why, now);
    return;
  }
  if (said.incarnation < one.incarnation)
    return refuse(path, nullptr, errc::conflict,
      "a later start of the node " + said.node.value + " is known: another node may have the same name");
  if (said.session < one.theirs) {
    link_counters::add(counters_.stale);
    return;
  }

  one.refusal.clear();
  const bool begins = said.session != one.theirs;
  if (begins) {
    // A conversation that it has begun anew ends the one before; ours too, unless it knows of ours already.
    const bool again = one.theirs != 0;
    if (again && said.seen != one.mine) {
      lose(one, end_cause::peer_lost, "it has begun anew", now);
      one.next_dial = now;
    } else if (again) {
      clear_out(one);
      if (one.bulk != 0)
        network_.hang_up(std::exchange(one.bulk, 0));
      one.bulk_greeted = false;
      one.state = peer_state::dialing;
      one.greet_until = now + pace_.handshake;
      observer_.peer_down(one, end_cause::peer_lost, "it has begun anew");
    } else if (said.seen != one.mine && one.welcomed) {
      one.next_dial = now;
      hang_up(one); // it does not know that it has welcomed us: another start of it did
      one.state = peer_state::away;
    }
    one.theirs = said.session;
    forget_bulk(one);
    one.incarnation = said.incarnation;
    one.echo = 0;
  }
  one.heard = now;
  one.beat_heard = now;
  one.echoed = now;
  one.back = path;
  auto answer = self_;
  answer.session = one.mine;
  answer.seen = said.session;
  auto welcome = control_frame(frame_kind::welcome, one.mine, to_letter(answer));
  stamp(welcome);
  network_.answer(path, std::move(welcome));
  if (one.state == peer_state::away)
    one.next_dial = now; // it is there: no need to wait
  else if (begins && one.state == peer_state::dialing && !one.welcomed)
    // Nor much longer for a connection that was perhaps dialled when it was not: ZeroMQ does not say that
    // nobody was there, and does not connect again.
    one.redial = now + pace_.beat;
  due_ = now;
  come_up(one, now);
}

void peers::on_welcome(peer& one, const hello& said, moment now) {
  if (said.node != one.record.name || said.seen != one.mine || one.welcomed
      || one.state != peer_state::dialing || (one.theirs != 0 && said.session < one.theirs)) {
    link_counters::add(counters_.stale);
    return;
  }
  if (const auto why = incompatibility(self_, said))
    return on_refused(one, {errc::unsupported, *why, {}, {}}, now);
  if (said.session > one.theirs)
    one.theirs = 0; // its greeting of this conversation is on its way
  one.welcomed = true;
  one.heard = now;
  one.beat_heard = now;
  one.echoed = now;
  one.next_beat = next_beats(now);
  due_ = std::min(due_, one.next_beat);
  come_up(one, now);
}

void peers::on_refused(peer& one, const error& why, moment now) {
  one.refusal = why.message;
  one.failures = std::max(one.failures, 8U); // it will not change its mind soon
  lose(one, end_cause::peer_lost, why.message, now);
}

void peers::come_up(peer& one, moment now) {
  if (!one.welcomed || one.theirs == 0 || one.state == peer_state::up)
    return;
  one.state = peer_state::up;
  one.failures = 0;
  one.refusal.clear();
  one.letters_moved = now;
  one.bulk_moved = now;
  if (!one.record.events.empty() && one.events == 0)
    one.events = network_.dial(lane::events, one.record);
  if (!one.bulk_out.empty() && one.bulk == 0)
    dial_bulk(one, now);
  due_ = now;
  observer_.peer_up(one);
  flush(one, now);
}

} // namespace godwit::link
