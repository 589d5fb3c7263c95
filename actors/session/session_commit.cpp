// How a session_core reads and writes its journal.

#include "actors/session/session_core.hpp"

#include "messages/check.hpp"
#include "messages/text.hpp"

#include <iterator>
#include <memory>
#include <utility>

namespace godwit {

namespace {

/// The journal's refusals of a writer that has lost the session for good.
bool is_fence(errc code) {
  return code == errc::stale_epoch || code == errc::not_found || code == errc::quarantined;
}

} // namespace

/// Asks the journal one thing. What comes when the session is lost is not heard any more.
template <class Answer>
void session_core::ask(std::function<Answer(journal&)> question, std::function<void(const Answer&)> then) {
  ports_.consult(
    [this, question = std::move(question), then = std::move(then)](journal& records) -> journal_answer {
      const auto told = std::make_shared<const Answer>(question(records));
      return [this, told, then] {
        if (!lost_)
          then(*told);
      };
    });
}

void session_core::ask_head(std::function<void(const result<journal_head>&)> then) {
  ask<result<journal_head>>(
    [session = machine_.id()](journal& records) { return records.head(session); }, std::move(then));
}

void session_core::revive(std::optional<epoch_t> epoch, finished done) {
  asking_ = true;
  const auto finish = [this, done = std::move(done)](const result<void>& outcome) {
    asking_ = false;
    done(outcome);
  };
  read_tail([this, epoch, finish](const result<void>& read) {
    if (!read)
      return finish(read);
    if (machine_.sequence() == 0)
      return finish(fail(errc::corrupt, "the journal of the session is empty"));
    ask_head([this, epoch, finish](const result<journal_head>& head) {
      if (!head)
        return finish(fail(head));
      served_ = config_.model.id == text_of(machine_.settings().getModel());
      epoch_ = epoch.value_or(head->epoch);
      // The same start of the same node goes on as the owner it is, unless a turn runs: then the claim counts
      // the tries, also those that end in the death of the actor alone.
      owned_ = machine_.running() == 0 && epoch_ == head->epoch && is_own_claim(*head);
      revived_ = true;
      finish({});
    });
  });
}

bool session_core::is_own_claim(const journal_head& head) const {
  const auto& order = machine_.order();
  return order.epoch() == head.epoch && order.node() == config_.owner.node.value
         && order.incarnation() == config_.owner.incarnation
         && order.fingerprint() == config_.owner.fingerprint;
}

void session_core::claim(finished done) {
  // One that is closed, or that this node cannot go on with, is only shown.
  if (!served_ || machine_.closed())
    return done({});
  const auto finish = [this, done = std::move(done)](const result<void>& owner) {
    if (!owner)
      lost_by(owner.error());
    done(owner);
  };
  own([this, finish](const result<void>& owner) {
    // If only the answer was lost, the second try finds that.
    if (!owner && !is_fence(owner.error().code))
      own(finish);
    else
      finish(owner);
  });
}

/// Makes sure that the journal takes our records: claims the session, which was not ours yet.
void session_core::own(const finished& then) {
  asking_ = true;
  const auto finish = [this, then](const result<void>& outcome) {
    asking_ = false;
    then(outcome);
  };
  // With what the journal has behind our state: someone may have written between our last look and the claim;
  // now nobody else can.
  const auto ours = [this, finish](epoch_t epoch) {
    epoch_ = epoch;
    owned_ = true;
    finish({});
  };
  ask_head([this, finish, ours](const result<journal_head>& before) {
    if (!before)
      return finish(fail(before));
    if (before->epoch != epoch_)
      return read_tail([this, finish, ours, head = *before](const result<void>& read) {
        if (!read)
          return finish(read);
        if (!is_own_claim(head))
          return finish(fail(errc::stale_epoch, "another node owns the session"));
        // An earlier claim of ours, of which the answer was lost.
        ours(head.epoch);
      });
    auto record = claimed_record(config_.owner, before->epoch + 1, wall());
    ports_.claim(before->epoch, std::move(record), [this, finish, ours](const result<journal_head>& head) {
      if (lost_)
        return;
      if (!head)
        return finish(fail(head));
      read_tail([finish, ours, epoch = head->epoch](const result<void>& read) {
        if (!read)
          return finish(read);
        ours(epoch);
      });
    });
  });
}

/// Applies what the journal has behind our state, page by page.
void session_core::read_tail(const finished& then) {
  using page = result<std::vector<placed_record>>;
  ask<page>([session = machine_.id(), from = machine_.sequence() + 1, limit = config_.limits.read_page](
              journal& records) { return records.read(session, from, limit); },
    [this, then](const page& found) {
      if (!found)
        return then(fail(found));
      result<void> good;
      std::vector<session_event> events;
      for (const auto& placed : *found) {
        auto made = machine_.apply(placed);
        if (!made) {
          good = fail(made);
          break;
        }
        if (revived_)
          std::move(made->begin(), made->end(), std::back_inserter(events));
      }
      ports_.passed(machine_.order());
      settle(schema::EndCause::PEER_LOST);
      // Streams read on behind what they were told of, so they are told of each page.
      if (revived_)
        ports_.committed(events);
      if (!good || found->size() < config_.limits.read_page)
        return then(good);
      read_tail(then);
    });
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

/// After an append with an unknown outcome: what does the journal have? @returns whether to go on at once
bool session_core::reconcile() {
  if (sync_pause_.active(now()))
    return false;
  asking_ = true;
  ask_head([this](const result<journal_head>& head) {
    if (!head)
      return reconciled(0, fail(head));
    read_tail([this, epoch = head->epoch](const result<void>& read) { reconciled(epoch, read); });
  });
  return !asking_;
}

/// @param epoch of the head before that was read
void session_core::reconciled(epoch_t epoch, const result<void>& read) {
  asking_ = false;
  if (!read) {
    const auto code = read.error().code;
    if (code == errc::not_found || code == errc::quarantined || code == errc::corrupt)
      return lose(read.error());
    sync_pause_.failed(now());
    return go_on();
  }
  if (epoch != epoch_)
    return lose({errc::stale_epoch, "another owner has the session", {}, {}});
  unsure_ = false;
  sync_pause_.succeeded();
  go_on();
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
  std::erase_if(traces_, [this](const auto& each) { return machine_.find(each.first)->ended != 0; });
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
