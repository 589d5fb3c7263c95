// How a session_core reads and writes its journal.

#include "actors/session/session_core.hpp"

#include "messages/check.hpp"
#include "messages/text.hpp"

#include <utility>

namespace godwit {

namespace {

/// The journal's refusals of a writer that has lost the session for good.
bool is_fence(errc code) {
  return code == errc::stale_epoch || code == errc::not_found || code == errc::quarantined;
}

} // namespace

result<void> session_core::revive(std::optional<epoch_t> epoch) {
  if (auto read = read_tail(); !read)
    return read;
  if (machine_.sequence() == 0)
    return fail(errc::corrupt, "the journal of the session is empty");
  const auto head = config_.records->head(machine_.id());
  if (!head)
    return fail(head);
  served_ = config_.model.id == text_of(machine_.settings().getModel());
  epoch_ = epoch.value_or(head->epoch);
  // The same start of the same node goes on as the owner it is, unless a turn runs: then the claim counts the
  // tries, also those that end in the death of the actor alone.
  owned_ = machine_.running() == 0 && epoch_ == head->epoch && is_own_claim(*head);
  revived_ = true;
  return {};
}

bool session_core::is_own_claim(const journal_head& head) const {
  const auto& order = machine_.order();
  return order.epoch() == head.epoch && order.node() == config_.owner.node.value
         && order.incarnation() == config_.owner.incarnation
         && order.fingerprint() == config_.owner.fingerprint;
}

result<void> session_core::claim() {
  // One that is closed, or that this node cannot go on with, is only shown.
  if (!served_ || machine_.closed())
    return {};
  auto owner = own();
  // If only the answer was lost, the second try finds that.
  if (!owner && !is_fence(owner.error().code))
    owner = own();
  if (!owner)
    lost_by(owner.error());
  return owner;
}

/// Makes sure that the journal takes our records: claims the session if it has not been.
result<void> session_core::own() {
  if (owned_)
    return {};
  const auto before = config_.records->head(machine_.id());
  if (!before)
    return fail(before);
  if (before->epoch != epoch_) {
    if (auto read = read_tail(); !read)
      return read;
    if (!is_own_claim(*before))
      return fail(errc::stale_epoch, "another node owns the session");
    // An earlier claim of ours, of which the answer was lost.
    epoch_ = before->epoch;
    owned_ = true;
    return {};
  }
  const auto claimed = claimed_record(config_.owner, before->epoch + 1, wall());
  const auto head = config_.records->claim(machine_.id(), before->epoch, config_.owner.node, claimed);
  if (!head)
    return fail(head);
  // Someone may have written between our last look and the claim; now nobody else can.
  if (auto read = read_tail(); !read)
    return read;
  epoch_ = head->epoch;
  owned_ = true;
  return {};
}

/// Applies what the journal has behind our state.
result<void> session_core::read_tail() {
  std::vector<session_event> events;
  while (true) {
    const auto page = config_.records->read(machine_.id(), machine_.sequence() + 1, config_.limits.read_page);
    if (!page)
      return fail(page);
    for (const auto& placed : *page) {
      auto made = machine_.apply(placed);
      if (!made)
        return fail(made);
      if (revived_)
        std::move(made->begin(), made->end(), std::back_inserter(events));
    }
    ports_.passed(machine_.order());
    if (page->size() < config_.limits.read_page)
      break;
  }
  settle(schema::EndCause::PEER_LOST);
  if (revived_)
    ports_.committed(events);
  return {};
}

void session_core::write(
  journal_records records, schema::EndCause cause, std::function<void(const result<void>&)> done) {
  GODWIT_CHECK(!writing_ && owned_);
  append_request request{machine_.id(), machine_.sequence(), epoch_, records, runs_after(machine_, records)};
  writing_ = pending_write{std::move(records), cause, std::move(done)};
  ports_.append(std::move(request));
}

void session_core::appended(result<sequence_number> outcome) {
  if (!writing_)
    return;
  auto written = std::move(*writing_);
  writing_.reset();
  if (lost_) {
    written.done(tl::unexpected<error>(*lost_));
    return;
  }
  if (outcome) {
    std::vector<session_event> events;
    for (auto& record : written.records) {
      auto made = machine_.apply({machine_.sequence() + 1, epoch_, std::move(record)});
      // It was checked before it was written.
      GODWIT_CHECK(made.has_value());
      std::move(made->begin(), made->end(), std::back_inserter(events));
    }
    GODWIT_CHECK(machine_.sequence() == *outcome);
    written.done({});
    settle(written.cause);
    ports_.passed(machine_.order());
    ports_.committed(events);
    go_on();
    return;
  }
  const auto& why = outcome.error();
  written.done(fail(outcome));
  if (lost_by(why))
    return;
  switch (why.code) {
  case errc::too_large:
  case errc::overloaded:
    // Certainly not written.
    pause_.failed(now());
    break;
  default:
    ports_.report(why);
    unsure_ = true;
    sync_pause_.failed(now());
    break;
  }
  go_on();
}

/// After an append with an unknown outcome: what does the journal have? @returns whether to go on
bool session_core::reconcile() {
  if (sync_pause_.active(now()))
    return false;
  const auto head = config_.records->head(machine_.id());
  auto read = head ? read_tail() : result<void>(fail(head));
  if (!read) {
    const auto code = read.error().code;
    if (code == errc::not_found || code == errc::quarantined || code == errc::corrupt) {
      lose(read.error());
      return false;
    }
    sync_pause_.failed(now());
    return false;
  }
  if (head->epoch != epoch_) {
    lose({errc::stale_epoch, "another owner has the session", {}, {}});
    return false;
  }
  unsure_ = false;
  sync_pause_.succeeded();
  return true;
}

/// Brings what belongs to the running turn in line with the state behind new records.
/// @param cause told to the generation of a turn that has ended
void session_core::settle(schema::EndCause cause) {
  if (stream_) {
    const auto taken = stream_->turn() == machine_.running()
                         ? stream_->committed(static_cast<position_t>(machine_.tokens().size()))
                         : 0;
    if (stream_->turn() != machine_.running()) {
      if (!stream_->ended())
        ports_.abandon(stream_->request(), cause);
      stream_.reset();
    } else if (taken > 0 && !stream_->ended()) {
      stream_->granted(taken);
      ports_.grant(stream_->request(), taken);
    }
    if (taken > 0) {
      failures_ = 0;
      busy_since_.reset();
      pause_.succeeded();
      progress_ = now();
    }
  }
  if (turn_ == machine_.running())
    return;
  turn_ = machine_.running();
  text_.reset();
  prompt_.reset();
  failure_.reset();
  last_failure_ = {};
  failures_ = 0;
  busy_since_.reset();
  pause_.succeeded();
  if (preparing_ && preparing_->turn != 0)
    preparing_.reset();
}

bool session_core::lost_by(const error& why) {
  if (is_fence(why.code))
    lose(why);
  return is_fence(why.code);
}

void session_core::fence(const error& why) {
  if (lost_)
    return;
  // Whether what is being written gets there is not known: its key tells the next time.
  if (auto written = std::exchange(writing_, std::nullopt))
    written->done(tl::unexpected<error>(why));
  lose(why);
}

void session_core::lose(const error& why) {
  lost_ = why;
  if (stream_ && !stream_->ended())
    ports_.abandon(stream_->request(), schema::EndCause::PEER_LOST);
  stream_.reset();
  preparing_.reset();
  refuse_calls(why);
  ports_.lost(why);
}

} // namespace godwit
