#include "services/journal/requests.hpp"

#include "actors/session/journal_rules.hpp"

#include <utility>

namespace godwit {

result<write_request> append_of(append_request request) {
  const auto bytes = check_journal_records(request.records);
  if (!bytes)
    return fail(bytes);
  write_request change;
  change.what = write_request::change::append;
  change.session = std::move(request.session);
  change.expected = request.expected;
  change.epoch = request.epoch;
  change.records = std::move(request.records);
  change.running = request.running;
  change.bytes = *bytes;
  return change;
}

result<write_request> open_of(const session_id& session, const tenant_id& tenant, const node_name& owner,
  std::vector<journal_record> records, bool running) {
  for (const auto& [name, what] : {std::pair<std::string_view, std::string_view>(session.value, "session"),
         {tenant.value, "tenant"}, {owner.value, "node"}})
    if (auto good = check_journal_name(name, what); !good)
      return fail(good);
  const auto bytes = check_journal_records(records);
  if (!bytes)
    return fail(bytes);
  write_request change;
  change.what = write_request::change::open;
  change.session = session;
  change.tenant = tenant;
  change.owner = owner;
  change.records = std::move(records);
  change.running = running;
  change.bytes = *bytes;
  return change;
}

result<write_request> claim_of(
  const session_id& session, epoch_t expected, const node_name& owner, const journal_record& claimed) {
  if (auto good = check_journal_name(owner.value, "node"); !good)
    return fail(good);
  write_request change;
  change.what = write_request::change::claim;
  change.session = session;
  change.owner = owner;
  change.epoch = expected;
  change.records.push_back(claimed);
  const auto bytes = check_journal_records(change.records);
  if (!bytes)
    return fail(bytes);
  change.bytes = *bytes;
  return change;
}

write_request erase_of(const session_id& session) {
  write_request change;
  change.what = write_request::change::erase;
  change.session = session;
  return change;
}

} // namespace godwit
