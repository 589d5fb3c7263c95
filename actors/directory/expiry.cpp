#include "actors/directory/expiry.hpp"

#include "actors/session/session_machine.hpp"

namespace godwit {

result<expiry> check_expiry(
  journal& records, const journal_head& head, std::int64_t now, std::chrono::milliseconds keep) {
  const auto first = records.read(head.session, 1, 1);
  if (!first)
    return fail(first);
  if (first->empty())
    return expiry::keep;
  session_machine machine(head.session);
  if (auto applied = machine.apply(first->front()); !applied)
    return fail(applied);
  const auto end = machine.expires_at();
  if (end == 0 || now < end)
    return expiry::keep;
  if (now - end >= keep.count())
    return expiry::erase;
  const auto last = records.read(head.session, head.sequence, 1);
  if (!last)
    return fail(last);
  return last->empty() || last->front().record.read().isClosed() ? expiry::keep : expiry::close;
}

} // namespace godwit
