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

result<event_history::place> event_history::seek(event_place after) const {
  place found;
  if (after.sequence == 0)
    return found;
  const auto behind = std::find_if(marks_.rbegin(), marks_.rend(),
    [&](const event_maker& mark) { return mark.sequence() < after.sequence; });
  if (behind != marks_.rend())
    found.order = *behind;
  while (found.order.sequence() < after.sequence) {
    auto events = next(found.order, after.sequence);
    if (!events)
      return fail(events);
    found.events = std::move(*events);
  }
  std::erase_if(found.events, [&](const session_event& event) { return event.place <= after; });
  return found;
}

result<std::vector<session_event>> event_history::next(event_maker& order, sequence_number last) const {
  std::vector<session_event> events;
  const auto wanted = std::min<sequence_number>(page_, last - std::min(last, order.sequence()));
  if (wanted == 0)
    return events;
  const auto records = records_->read(session_, order.sequence() + 1, static_cast<std::size_t>(wanted));
  if (!records)
    return fail(records);
  if (records->empty() || records->front().sequence != order.sequence() + 1)
    return fail(errc::gone, "these events are not kept any more", "after");
  for (const auto& record : *records) {
    auto made = order.apply(record);
    if (!made)
      return fail(made);
    std::move(made->begin(), made->end(), std::back_inserter(events));
  }
  return events;
}

result<sequence_number> event_history::oldest() const {
  const auto records = records_->read(session_, 1, 1);
  if (!records)
    return fail(records);
  if (records->empty())
    return fail(errc::gone, "no event of this session is kept any more");
  return records->front().sequence;
}

} // namespace godwit
