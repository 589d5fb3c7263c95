#include "actors/session/fork.hpp"

#include "actors/session/journal_rules.hpp"
#include "actors/session/session_rules.hpp"
#include "actors/session/session_views.hpp"
#include "messages/text.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace godwit {

namespace {

tl::unexpected<error> bad_place(std::string message) {
  return fail(errc::invalid_argument, std::move(message), "at");
}

/// The parent's past: its state at the fork, and the records that made it.
struct past {
  session_machine machine;
  std::vector<placed_record> records;
};

result<past> read_past(
  journal& records, const session_machine& parent, sequence_number last, const fork_order& order) {
  past out{session_machine(parent.id()), {}};
  std::size_t bytes = 0;
  while (out.machine.sequence() < last) {
    const auto left = last - out.machine.sequence();
    const auto page = records.read(parent.id(), out.machine.sequence() + 1,
      static_cast<std::size_t>(std::min<sequence_number>(left, order.page)));
    if (!page)
      return fail(page);
    if (page->empty())
      return fail(errc::gone, "the session's past is not kept any more", "at");
    for (const auto& record : *page) {
      bytes += record.record.bytes().size();
      if (out.records.size() >= order.most_records || bytes > max_journal_request_bytes)
        return fail(errc::too_large, "the session is too long to be forked");
      if (auto applied = out.machine.apply(record); !applied)
        return fail(applied);
      out.records.push_back(record);
    }
  }
  return out;
}

/// Takes out the messages at the end whose turns had not begun, so that the fork's next turn has the next
/// number.
void drop_unbegun(past& from) {
  auto last = from.machine.order().last_turn();
  const auto unbegun = [&](turn_number number) {
    const auto* turn = from.machine.find(number);
    return turn != nullptr && turn->ended == 0 && !turn->prompted;
  };
  while (unbegun(last))
    --last;
  std::erase_if(from.records, [last](const placed_record& placed) {
    const auto record = placed.record.read();
    return (record.isAccepted() && record.getAccepted().getTurn() > last)
           || (record.isPrompted() && record.getPrompted().getTurn() > last);
  });
}

} // namespace

result<sequence_number> fork_point(const session_machine& parent, std::string_view at) {
  if (at.empty())
    return parent.sequence();
  if (event_ids::has_form(at)) {
    const auto place = parent.ids().parse(at, parent.sequence());
    if (!place)
      return bad_place(place.error().message);
    return std::max<sequence_number>(place->sequence, 1);
  }
  turn_number number = 0;
  const auto [end, bad] = std::from_chars(at.data(), at.data() + at.size(), number);
  if (bad != std::errc() || end != at.data() + at.size())
    return bad_place("neither an event id nor the number of a turn");
  const auto* turn = parent.find(number);
  if (turn == nullptr || turn->now == session_turn::state::waiting)
    return bad_place("the session has had no such turn");
  return turn->ended != 0 ? turn->ended : parent.sequence();
}

result<letter<schema::SessionInfo>> fork_session(
  journal& records, const session_machine& parent, std::string_view at, const fork_order& order) {
  if (parent.closed())
    return fail(errc::conflict, "the session is closed", {}, "session_closed");
  const auto last = fork_point(parent, at);
  if (!last)
    return fail(last);
  auto copied = read_past(records, parent, *last, order);
  if (!copied)
    return fail(copied);
  drop_unbegun(*copied);

  session_machine child(order.child);
  journal_records out;
  const auto add = [&](journal_record record) -> result<void> {
    if (auto applied = child.apply({child.sequence() + 1, 1, record}); !applied)
      return fail(applied);
    out.push_back(std::move(record));
    return {};
  };
  for (const auto& placed : copied->records) {
    const auto record = placed.record.read();
    // A fork's life begins now: its time to live is counted from here.
    auto copy = placed.record;
    if (record.isOpened()) {
      const auto opened = record.getOpened();
      copy = opened_record(opened.getSettings(), text_of(opened.getSettings().getModel()),
        text_of(opened.getFingerprint()), order.at);
    }
    if (auto good = add(std::move(copy)); !good)
      return fail(good);
  }
  while (child.running() != 0) {
    const auto* turn = child.find(child.running());
    const bool same_model = child.order().fingerprint() == order.owner.fingerprint;
    std::string held;
    if (turn->prompted && same_model)
      if (auto text = running_answer(child, order.text); !text.stopped())
        held = text.finish();
    for (auto& record : cancel_turn(child, turn->turn, schema::EndCause::FORKED, held, order.at))
      if (auto good = add(std::move(record)); !good)
        return fail(good);
  }
  for (auto& record : {forked_record(parent.id(), *last, order.at), claimed_record(order.owner, 1, order.at)})
    if (auto good = add(record); !good)
      return fail(good);

  const tenant_id tenant(text_of(child.settings().getTenant()));
  if (auto opened = records.open(order.child, tenant, order.owner.node, std::move(out), false); !opened)
    return fail(opened);
  return session_info(child);
}

} // namespace godwit
