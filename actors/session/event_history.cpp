#include "actors/session/event_history.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace godwit {

void event_history::passed(const event_maker& order) {
  const auto last = marks_.empty() ? 0 : marks_.back().sequence();
  if (order.sequence() < last + stride_)
    return;
  marks_.push_back(order);
  if (marks_.size() <= most_marks)
    return;
  stride_ *= 2;
  std::vector<event_maker> kept;
  for (std::size_t i = 1; i < marks_.size(); i += 2)
    kept.push_back(std::move(marks_[i]));
  marks_ = std::move(kept);
}

event_maker event_history::before(event_place after) const {
  const auto found = std::find_if(marks_.rbegin(), marks_.rend(),
    [&](const event_maker& mark) { return mark.sequence() < after.sequence; });
  return found == marks_.rend() ? event_maker() : *found;
}

result<event_pages::place> event_pages::seek(journal& records, event_maker from, event_place after) const {
  place found;
  if (after.sequence == 0)
    return found;
  found.order = std::move(from);
  while (found.order.sequence() < after.sequence) {
    auto events = next(records, found.order, after.sequence);
    if (!events)
      return fail(events);
    found.events = std::move(*events);
  }
  std::erase_if(found.events, [&](const session_event& event) { return event.place <= after; });
  return found;
}

result<std::vector<session_event>> event_pages::next(
  journal& records, event_maker& order, sequence_number last) const {
  std::vector<session_event> events;
  const auto wanted = std::min<sequence_number>(page_, last - std::min(last, order.sequence()));
  if (wanted == 0)
    return events;
  const auto page = records.read(session_, order.sequence() + 1, static_cast<std::size_t>(wanted));
  if (!page)
    return fail(page);
  if (page->empty() || page->front().sequence != order.sequence() + 1)
    return fail(errc::gone, "these events are not kept any more", "after");
  for (const auto& record : *page) {
    auto made = order.apply(record);
    if (!made)
      return fail(made);
    std::move(made->begin(), made->end(), std::back_inserter(events));
  }
  return events;
}

result<sequence_number> event_pages::oldest(journal& records) const {
  const auto first = records.read(session_, 1, 1);
  if (!first)
    return fail(first);
  if (first->empty())
    return fail(errc::gone, "no event of this session is kept any more");
  return first->front().sequence;
}

} // namespace godwit
