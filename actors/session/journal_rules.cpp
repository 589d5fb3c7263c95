#include "actors/session/journal_rules.hpp"

#include "messages/reasons.hpp"

namespace godwit {

result<void> check_journal_name(std::string_view name, std::string_view what) {
  if (name.empty())
    return fail(errc::invalid_argument, "a journal needs the name of the " + std::string(what));
  if (name.size() > max_journal_name_bytes)
    return fail(errc::invalid_argument, "the name of the " + std::string(what) + " is over "
                                          + std::to_string(max_journal_name_bytes) + " bytes long");
  return {};
}

result<std::size_t> check_journal_records(const std::vector<journal_record>& records) {
  if (records.empty())
    return fail(errc::invalid_argument, "an append needs at least one record");
  std::size_t total = 0;
  for (const auto& record : records) {
    const auto size = record.bytes().size();
    if (size > journal::max_record_bytes)
      return fail(errc::too_large, "a record of " + std::to_string(size) + " bytes is over the limit of "
                                     + std::to_string(journal::max_record_bytes));
    total += size;
  }
  if (total > max_journal_request_bytes)
    return fail(errc::too_large, "records of " + std::to_string(total) + " bytes are over the limit of "
                                   + std::to_string(max_journal_request_bytes) + " for one append");
  return total;
}

result<void> check_fence(const journal_head& head, const append_request& request) {
  // The epoch first: a writer that lost the session must learn that, not that it is behind.
  if (auto claim = check_claim(head, request.epoch); !claim)
    return claim;
  if (request.expected != head.sequence)
    return fail(errc::stale_sequence, "the journal ends at record " + std::to_string(head.sequence)
                                        + ", not at " + std::to_string(request.expected));
  return {};
}

result<void> check_claim(const journal_head& head, epoch_t expected) {
  // A higher epoch than the head's is refused too: nobody claimed it.
  if (expected != head.epoch)
    return fail(errc::stale_epoch,
      "the session is owned in epoch " + std::to_string(head.epoch) + ", not " + std::to_string(expected));
  return {};
}

tl::unexpected<error> no_such_session() {
  return fail(errc::not_found, "there is no such session", {}, std::string(reasons::session_not_found));
}

tl::unexpected<error> session_exists() {
  return fail(errc::conflict, "the session exists already");
}

tl::unexpected<error> session_quarantined() {
  return fail(errc::quarantined, "a record of the session is damaged; it can only be deleted");
}

tl::unexpected<error> journal_closed() {
  return fail(errc::unavailable, "the journal is closed");
}

tl::unexpected<error> journal_overloaded() {
  return fail(errc::overloaded, "too many records wait for the disk; try again later");
}

} // namespace godwit
