#include "services/journal/queued_journal.hpp"

#include "actors/session/journal_rules.hpp"
#include "services/journal/requests.hpp"

#include <future>
#include <string>
#include <utility>

namespace godwit {

void queued_journal::append(append_request request, appended done) {
  auto change = append_of(std::move(request));
  if (!change)
    return done(fail(change));
  queue().push(std::move(*change), [done = std::move(done)](const result<journal_head>& head) {
    if (head)
      done(head->sequence);
    else
      done(fail(head));
  });
}

result<sequence_number> queued_journal::open(const session_id& session, const tenant_id& tenant,
  const node_name& owner, std::vector<journal_record> records, bool running) {
  auto change = open_of(session, tenant, owner, std::move(records), running);
  if (!change)
    return fail(change);
  const auto head = wait_for(std::move(*change));
  if (!head)
    return fail(head);
  return head->sequence;
}

result<journal_head> queued_journal::claim(
  const session_id& session, epoch_t expected, const node_name& owner, const journal_record& claimed) {
  auto change = claim_of(session, expected, owner, claimed);
  if (!change)
    return fail(change);
  return wait_for(std::move(*change));
}

void queued_journal::begin_claim(const session_id& session, epoch_t expected, const node_name& owner,
  const journal_record& claimed, claimed_head done) {
  auto change = claim_of(session, expected, owner, claimed);
  if (!change)
    return done(fail(change));
  queue().push(std::move(*change), std::move(done));
}

result<void> queued_journal::erase(const session_id& session) {
  if (auto head = wait_for(erase_of(session)); !head)
    return fail(head);
  return {};
}

result<journal_head> queued_journal::wait_for(write_request request) {
  // The queue answers by its deadline, so this wait ends. Shared, since the queue's thread may still be
  // inside set_value() when this one has gone on.
  auto answer = std::make_shared<std::promise<result<journal_head>>>();
  auto future = answer->get_future();
  queue().push(
    std::move(request), [answer](result<journal_head> head) { answer->set_value(std::move(head)); });
  return future.get();
}

void queued_journal::nudge() {
  if (nudged_.exchange(true))
    return;
  write_request request;
  request.what = write_request::change::nothing;
  queue().push(std::move(request), [this](const auto&) { nudged_ = false; });
}

void queued_journal::warn(std::string_view text) const {
  if (observer_ != nullptr)
    observer_->warning(text);
}

error queued_journal::judge(const session_id& session, const error& failure) {
  if (failure.code != errc::corrupt)
    return failure;
  const std::lock_guard lock(mutex_);
  if (quarantined_.insert(session).second) {
    ++counters_.quarantined;
    warn("session " + session.value + " is quarantined: " + failure.message);
  }
  return session_quarantined().value();
}

bool queued_journal::is_quarantined(const session_id& session) const {
  const std::lock_guard lock(mutex_);
  return quarantined_.contains(session);
}

void queued_journal::mark_quarantined(std::vector<journal_head>& heads) const {
  const std::lock_guard lock(mutex_);
  for (auto& head : heads)
    head.quarantined = head.quarantined || quarantined_.contains(head.session);
}

void queued_journal::settle(
  const std::vector<const write_request*>& batch, const std::vector<result<journal_head>>& verdicts) {
  for (std::size_t i = 0; i < batch.size(); ++i) {
    if (batch[i]->what == write_request::change::nothing)
      continue;
    if (!verdicts[i]) {
      const auto code = verdicts[i].error().code;
      counters_.fenced += code == errc::stale_epoch || code == errc::stale_sequence ? 1U : 0U;
      continue;
    }
    ++counters_.appends;
    counters_.records += batch[i]->records.size();
    counters_.bytes += batch[i]->bytes;
    if (batch[i]->what == write_request::change::erase) {
      const std::lock_guard lock(mutex_);
      quarantined_.erase(batch[i]->session);
    }
  }
}

} // namespace godwit
