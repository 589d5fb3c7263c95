#include "actors/session/event_streams.hpp"

#include "actors/session/session_views.hpp"
#include "messages/text.hpp"

#include <algorithm>
#include <memory>
#include <utility>

namespace godwit {

void event_streams::open(schema::SubscribeRequest::Reader request, const opened& done) {
  if (streams_.size() + opening_ >= most_)
    return done(fail(errc::overloaded, "too many streams of this session are open"));
  stream next;
  next.credit = std::min(most_credit, request.getCredit());
  next.only = request.getOnlyTurn();
  next.snapshot = request.getSnapshot();
  next.past_only = request.getPastOnly();
  next.last = machine_.sequence();
  if (next.only != 0 && machine_.find(next.only) == nullptr)
    return done(fail(errc::invalid_argument, "the session has no such turn", "turn"));
  const auto after = place_of(next, request);
  if (!after)
    return done(fail(after));
  if (next.snapshot)
    return open_snapshot(std::move(next), done);
  if (after->sequence == 0)
    return done(add(std::move(next)));
  ++opening_;
  consult_([this, next = std::move(next), after = *after, done, from = history_.before(*after),
             pages = history_.pages()](journal& records) -> journal_answer {
    const auto found = std::make_shared<result<event_pages::place>>(pages.seek(records, from, after));
    return [this, next, found, done]() mutable {
      --opening_;
      if (!*found)
        return done(fail(*found));
      next.order = std::move((*found)->order);
      next.read = std::move((*found)->events);
      done(add(std::move(next)));
    };
  });
}

/// A snapshot tells what the journal still has, so it is asked first.
void event_streams::open_snapshot(stream next, const opened& done) {
  ++opening_;
  consult_(
    [this, next = std::move(next), done, pages = history_.pages()](journal& records) -> journal_answer {
      const auto oldest = pages.oldest(records).value_or(0);
      return [this, next, done, oldest]() mutable {
        --opening_;
        next.oldest = oldest;
        done(add(std::move(next)));
      };
    });
}

std::uint64_t event_streams::add(stream next) {
  next.number = ++numbers_;
  return streams_.emplace(numbers_, std::move(next)).first->first;
}

result<event_place> event_streams::place_of(
  const stream& to, schema::SubscribeRequest::Reader request) const {
  event_place after;
  if (request.getAfter().size() > 0) {
    const auto parsed = machine_.ids().parse(text_of(request.getAfter()), machine_.sequence());
    if (!parsed)
      return fail(parsed);
    after = *parsed;
  }
  if (to.snapshot)
    return event_place();
  if (to.only != 0)
    after = std::max(after, {machine_.find(to.only)->accepted - 1, event_place::end});
  return after;
}

void event_streams::feed(std::uint64_t subscription) {
  if (const auto found = streams_.find(subscription); found != streams_.end())
    advance(found->second);
  tidy();
}

void event_streams::tidy() {
  if (walking_ == 0)
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
  ++walking_;
  for (auto& [number, one] : streams_) {
    if (one.live) {
      // What cannot be sent now waits here until the next credit; it is the events of one append.
      one.read = events;
      one.order = machine_.order();
      one.live = false;
    }
    advance(one);
  }
  --walking_;
  tidy();
}

void event_streams::fail_all(const error& why) {
  for (auto& [number, one] : std::exchange(streams_, {})) {
    one.ended = true;
    send(one, &why);
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

/// Takes events until the credit is used up, the end is reached, or the journal has to be read.
/// @returns whether it was asked; then its answer goes on, and may have done so already
bool event_streams::catch_up(stream& behind) {
  if (behind.snapshot) {
    if (behind.credit == 0)
      return false;
    --behind.credit;
    behind.out.push_back(session_snapshot(machine_, behind.oldest));
    behind.snapshot = false;
    behind.live = true;
  }
  if (behind.live || !take(behind, behind.out) || behind.ended)
    return false;
  if (behind.order.sequence() < end_of(behind)) {
    read_on(behind);
    return true;
  }
  behind.live = true;
  return false;
}

/// Asks the journal for the next page.
void event_streams::read_on(stream& behind) {
  behind.reading = true;
  consult_([this, number = behind.number, order = behind.order, last = end_of(behind),
             pages = history_.pages()](journal& records) -> journal_answer {
    auto moved = order;
    auto events = pages.next(records, moved, last);
    const auto found = std::make_shared<page>(page{std::move(moved), std::move(events)});
    return [this, number, found] { read(number, std::move(*found)); };
  });
}

void event_streams::read(std::uint64_t number, page found) {
  const auto place = streams_.find(number);
  if (place == streams_.end())
    return; // it was given up meanwhile
  auto& one = place->second;
  one.reading = false;
  if (found.events) {
    one.order = std::move(found.order);
    one.read = std::move(*found.events);
    advance(one);
  } else {
    one.ended = true;
    send(one, &found.events.error());
  }
  tidy();
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
  if (one.reading || catch_up(one))
    return;
  one.ended = one.ended || over(one);
  if (!one.out.empty() || one.ended)
    send(one, nullptr);
}

void event_streams::send(stream& to, const error* why) {
  const auto events = std::exchange(to.out, {});
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
