#include "actors/session/event_streams.hpp"

#include "actors/session/session_views.hpp"
#include "messages/text.hpp"

#include <algorithm>
#include <utility>

namespace godwit {

result<std::uint64_t> event_streams::open(schema::SubscribeRequest::Reader request) {
  if (streams_.size() >= most_)
    return fail(errc::overloaded, "too many streams of this session are open");
  stream next;
  next.number = numbers_ + 1;
  next.credit = std::min(most_credit, request.getCredit());
  next.only = request.getOnlyTurn();
  next.snapshot = request.getSnapshot();
  next.past_only = request.getPastOnly();
  next.last = machine_.sequence();
  if (next.only != 0 && machine_.find(next.only) == nullptr)
    return fail(errc::invalid_argument, "the session has no such turn", "turn");
  if (auto placed = place(next, request); !placed)
    return fail(placed);
  return streams_.emplace(++numbers_, std::move(next)).first->first;
}

result<void> event_streams::place(stream& to, schema::SubscribeRequest::Reader request) {
  event_place after;
  if (request.getAfter().size() > 0) {
    const auto parsed = machine_.ids().parse(text_of(request.getAfter()), machine_.sequence());
    if (!parsed)
      return fail(parsed);
    after = *parsed;
  }
  if (to.snapshot)
    return {};
  if (to.only != 0)
    after = std::max(after, {machine_.find(to.only)->accepted - 1, event_place::end});
  auto found = history_.seek(after);
  if (!found)
    return fail(found);
  to.order = std::move(found->order);
  to.read = std::move(found->events);
  return {};
}

void event_streams::feed(std::uint64_t subscription) {
  if (const auto found = streams_.find(subscription); found != streams_.end())
    advance(found->second);
  std::erase_if(streams_, [](const auto& entry) { return entry.second.ended; });
}

void event_streams::grant(std::uint64_t subscription, std::uint32_t events) {
  const auto found = streams_.find(subscription);
  if (found == streams_.end())
    return;
  auto& credit = found->second.credit;
  credit = std::min(most_credit, credit + std::min(events, most_credit));
  feed(subscription);
}

turn_number event_streams::drop(std::uint64_t subscription, bool client_left) {
  const auto found = streams_.find(subscription);
  if (found == streams_.end())
    return 0;
  const auto* turn = machine_.find(found->second.only);
  streams_.erase(found);
  return client_left && turn != nullptr && turn->cancel_on_disconnect && turn->ended == 0 ? turn->turn : 0;
}

void event_streams::committed(const std::vector<session_event>& events) {
  for (auto& [number, one] : streams_) {
    if (one.live) {
      // What cannot be sent now waits here until the next credit; it is the events of one append.
      one.read = events;
      one.order = machine_.order();
      one.live = false;
    }
    advance(one);
  }
  std::erase_if(streams_, [](const auto& entry) { return entry.second.ended; });
}

void event_streams::fail_all(const error& why) {
  for (auto& [number, one] : std::exchange(streams_, {})) {
    one.ended = true;
    send(one, {}, &why);
  }
}

bool event_streams::take(stream& from, std::vector<session_event>& out) {
  std::size_t used = 0;
  for (auto& event : from.read) {
    const bool wanted = from.only == 0 || event.turn == from.only || event.turn == 0;
    if (wanted && from.credit == 0)
      break;
    ++used;
    if (!wanted)
      continue;
    --from.credit;
    out.push_back(std::move(event));
    if (from.only != 0 && out.back().terminal) {
      from.ended = true;
      break;
    }
  }
  from.read.erase(from.read.begin(), from.read.begin() + static_cast<std::ptrdiff_t>(used));
  return from.read.empty();
}

/// Takes events, reading on in the journal, until the credit is used up or the end is reached.
result<void> event_streams::catch_up(stream& behind, std::vector<session_event>& out) {
  if (behind.snapshot) {
    if (behind.credit == 0)
      return {};
    --behind.credit;
    out.push_back(session_snapshot(machine_));
    behind.snapshot = false;
    behind.live = true;
  }
  while (!behind.live && take(behind, out) && !behind.ended) {
    if (behind.order.sequence() >= end_of(behind)) {
      behind.live = true;
      break;
    }
    auto events = history_.next(behind.order, end_of(behind));
    if (!events)
      return fail(events);
    behind.read = std::move(*events);
  }
  return {};
}

sequence_number event_streams::end_of(const stream& one) const {
  return one.past_only ? one.last : machine_.sequence();
}

/// Nothing more can come.
bool event_streams::over(const stream& one) const {
  if (!one.live)
    return false;
  if (one.past_only)
    return true;
  const auto* turn = machine_.find(one.only);
  return machine_.closed() || (turn != nullptr && turn->ended != 0);
}

void event_streams::advance(stream& one) {
  std::vector<session_event> out;
  const auto caught = catch_up(one, out);
  if (!caught) {
    one.ended = true;
    return send(one, out, &caught.error());
  }
  one.ended = one.ended || over(one);
  if (!out.empty() || one.ended)
    send(one, out, nullptr);
}

void event_streams::send(stream& to, const std::vector<session_event>& events, const error* why) {
  send_(to.number, letter<schema::EventBatch>::make([&](schema::EventBatch::Builder b) {
    b.setSubscription(to.number);
    auto list = b.initEvents(static_cast<unsigned>(events.size()));
    for (unsigned i = 0; i < events.size(); ++i) {
      list[i].setId(machine_.ids().text(events[i].place));
      list[i].setType(text_view(events[i].type));
      list[i].setData(text_view(events[i].data));
    }
    b.setEnded(to.ended);
    if (why == nullptr)
      return;
    b.setErrorCode(static_cast<std::uint8_t>(why->code));
    b.setErrorMessage(text_view(why->message));
  }));
}

} // namespace godwit
