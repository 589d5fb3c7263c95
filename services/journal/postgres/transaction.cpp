#include "services/journal/postgres/transaction.hpp"

#include "actors/session/journal_rules.hpp"
#include "services/journal/codec.hpp"
#include "services/journal/postgres/schema.hpp"

namespace godwit::postgres {

namespace {

using views = std::vector<std::string_view>;
using numbers = std::vector<std::int64_t>;

std::int64_t signed_of(std::uint64_t number) {
  return static_cast<std::int64_t>(number);
}

statement prepared(query which, std::vector<parameter> parameters) {
  return {name_of(which), true, std::move(parameters)};
}

/// The records of all steps of a kind: which step, which place, the sealed bytes.
class record_columns {
 public:
  void add(const session_id& session, sequence_number place, epoch_t epoch, const journal_record& record,
    std::size_t step) {
    steps_.push_back(static_cast<std::int64_t>(step) + 1);
    places_.push_back(signed_of(place));
    bodies_.push_back(journal_codec::seal_record(session, place, epoch, record));
  }

  void put(std::vector<parameter>& to) const {
    to.push_back(array(std::span<const std::int64_t>(steps_)));
    to.push_back(array(std::span<const std::int64_t>(places_)));
    const views bodies(bodies_.begin(), bodies_.end());
    to.push_back(array(std::span<const std::string_view>(bodies)));
  }

 private:
  numbers steps_;
  numbers places_;
  std::vector<std::string> bodies_;
};

parameter names(std::span<const session_id> sessions) {
  views all;
  for (const auto& one : sessions)
    all.emplace_back(one.value);
  return array(std::span<const std::string_view>(all));
}

statement look_statement(const std::vector<look_step>& steps) {
  std::vector<session_id> sessions;
  numbers places;
  for (const auto& one : steps) {
    sessions.push_back(one.session);
    places.push_back(signed_of(one.place));
  }
  return prepared(query::look, {names(sessions), array(std::span<const std::int64_t>(places))});
}

statement change_statement(const std::vector<change_step>& steps, std::string_view mark) {
  views sessions;
  numbers expected;
  numbers epochs;
  numbers next;
  numbers next_epochs;
  std::vector<std::optional<std::string_view>> owners;
  std::vector<std::optional<bool>> running;
  record_columns records;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const auto& one = steps[i];
    sessions.emplace_back(one.session.value);
    expected.push_back(signed_of(one.expected));
    epochs.push_back(signed_of(one.epoch));
    next.push_back(signed_of(one.next));
    next_epochs.push_back(signed_of(one.next_epoch));
    owners.push_back(one.owner ? std::optional<std::string_view>(one.owner->value) : std::nullopt);
    running.push_back(one.running);
    auto place = one.expected;
    for (const auto* record : one.records)
      records.add(one.session, ++place, one.next_epoch, *record, i);
  }
  std::vector<parameter> parameters{array(std::span<const std::string_view>(sessions)),
    array(std::span<const std::int64_t>(expected)), array(std::span<const std::int64_t>(epochs)),
    array(std::span<const std::int64_t>(next)), array(std::span<const std::int64_t>(next_epochs)),
    array(std::span<const std::optional<std::string_view>>(owners)),
    array(std::span<const std::optional<bool>>(running)), value(mark)};
  records.put(parameters);
  return prepared(query::change, std::move(parameters));
}

statement open_statement(const std::vector<open_step>& steps, std::string_view mark) {
  views sessions;
  views tenants;
  views owners;
  std::vector<std::optional<bool>> running;
  numbers ends;
  record_columns records;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const auto& one = steps[i];
    sessions.emplace_back(one.session.value);
    tenants.emplace_back(one.tenant.value);
    owners.emplace_back(one.owner.value);
    running.emplace_back(one.running);
    ends.push_back(static_cast<std::int64_t>(one.records.size()));
    sequence_number place = 0;
    for (const auto* record : one.records)
      records.add(one.session, ++place, 1, *record, i);
  }
  std::vector<parameter> parameters{array(std::span<const std::string_view>(sessions)),
    array(std::span<const std::string_view>(tenants)), array(std::span<const std::string_view>(owners)),
    array(std::span<const std::optional<bool>>(running)), array(std::span<const std::int64_t>(ends)),
    value(mark)};
  records.put(parameters);
  return prepared(query::open, std::move(parameters));
}

tl::unexpected<error> nonsense() {
  return fail(errc::corrupt, "the database answered something else than it was asked");
}

/// The place among `count` steps that a row is about.
std::optional<std::size_t> step_of(const rows& from, std::size_t row, std::size_t count) {
  const auto number = number_of(from.at(row, 0));
  if (!number || *number < 1 || static_cast<std::size_t>(*number) > count)
    return std::nullopt;
  return static_cast<std::size_t>(*number) - 1;
}

result<std::vector<answers::found>> found_in(
  const std::vector<look_step>& steps, std::string_view mark, const rows& from) {
  std::vector<answers::found> out(steps.size());
  if (from.size() != steps.size())
    return nonsense();
  for (std::size_t row = 0; row < from.size(); ++row) {
    const auto step = step_of(from, row, steps.size());
    if (!step)
      return nonsense();
    if (from.at(row, 1)) {
      auto head = head_at(steps[*step].session, from, row, 1);
      if (!head)
        return fail(head);
      out[*step].head = std::move(*head);
    }
    const auto theirs = from.at(row, 6);
    out[*step].ours = theirs && *theirs == mark;
  }
  return out;
}

} // namespace

result<journal_head> head_at(
  const session_id& session, const rows& from, std::size_t row, std::size_t column) {
  const auto tenant = from.at(row, column);
  const auto sequence = number_of(from.at(row, column + 1));
  const auto epoch = number_of(from.at(row, column + 2));
  const auto owner = from.at(row, column + 3);
  const auto running = truth_of(from.at(row, column + 4));
  if (!tenant || !sequence || !epoch || !owner || !running || *sequence < 1 || *epoch < 1
      || !check_journal_name(*tenant, "tenant") || !check_journal_name(*owner, "node"))
    return fail(errc::corrupt, "a head does not check");
  journal_head head;
  head.session = session;
  head.tenant = tenant_id(std::string(*tenant));
  head.sequence = static_cast<sequence_number>(*sequence);
  head.epoch = static_cast<epoch_t>(*epoch);
  head.owner = node_name(std::string(*owner));
  head.running = *running;
  return head;
}

std::vector<statement> settling(std::span<const session_id> sessions) {
  return {prepared(query::touch, {names(sessions)}), prepared(query::barrier, {})};
}

std::vector<statement> statements_of(const plan& what, std::string_view mark) {
  std::vector<statement> out;
  if (what.settles) {
    std::vector<session_id> sessions;
    for (const auto& one : what.looks)
      sessions.push_back(one.session);
    out = settling(sessions);
  }
  if (!what.looks.empty())
    out.push_back(look_statement(what.looks));
  if (!what.changes.empty())
    out.push_back(change_statement(what.changes, mark));
  if (!what.opens.empty())
    out.push_back(open_statement(what.opens, mark));
  if (!what.erases.empty()) {
    out.push_back(prepared(query::erase_heads, {names(what.erases)}));
    out.push_back(prepared(query::erase_records, {names(what.erases)}));
  }
  return out;
}

result<answers> answers_of(const plan& what, std::string_view mark, const std::vector<rows>& returned) {
  answers out;
  std::size_t at = what.settles ? 2 : 0;
  const std::size_t statements = at + (what.looks.empty() ? 0 : 1) + (what.changes.empty() ? 0 : 1)
                                 + (what.opens.empty() ? 0 : 1) + (what.erases.empty() ? 0 : 2);
  if (returned.size() != statements)
    return nonsense();
  if (!what.looks.empty()) {
    auto found = found_in(what.looks, mark, returned[at++]);
    if (!found)
      return fail(found);
    out.looks = std::move(*found);
  }
  out.changes.resize(what.changes.size());
  if (!what.changes.empty()) {
    const auto& from = returned[at++];
    for (std::size_t row = 0; row < from.size(); ++row) {
      const auto step = step_of(from, row, what.changes.size());
      if (!step)
        return nonsense();
      auto head = head_at(what.changes[*step].session, from, row, 1);
      if (!head)
        return fail(head);
      out.changes[*step] = std::move(*head);
    }
  }
  out.opens.resize(what.opens.size());
  if (!what.opens.empty()) {
    const auto& from = returned[at++];
    for (std::size_t row = 0; row < from.size(); ++row) {
      const auto step = step_of(from, row, what.opens.size());
      if (!step)
        return nonsense();
      out.opens[*step] = true;
    }
  }
  out.erases.resize(what.erases.size());
  if (!what.erases.empty()) {
    const auto& from = returned[at];
    for (std::size_t row = 0; row < from.size(); ++row)
      for (std::size_t i = 0; i < what.erases.size(); ++i)
        if (from.at(row, 0) == field(what.erases[i].value))
          out.erases[i] = true;
  }
  return out;
}

} // namespace godwit::postgres
