#pragma once

#include "services/journal/commit_queue.hpp"

#include <functional>
#include <map>
#include <optional>
#include <vector>

namespace godwit::postgres {

/// Records for the end of a session whose head is as expected; also a claim, which changes the owner.
struct change_step {
  session_id session;
  sequence_number expected = 0;
  epoch_t epoch = 0;
  sequence_number next = 0; ///< after it
  epoch_t next_epoch = 0;   ///< after it
  std::optional<node_name> owner;
  std::optional<bool> running;
  std::vector<const journal_record*> records; ///< for the places from expected + 1 on
};

/// A session to be made.
struct open_step {
  session_id session;
  tenant_id tenant;
  node_name owner;
  bool running = false;
  std::vector<const journal_record*> records; ///< for the places from 1 on
};

/// A question: the head of a session, and whether the record at a place is ours.
struct look_step {
  session_id session;
  sequence_number place = 0; ///< none
};

/// One transaction; at most one step for a session.
struct plan {
  std::vector<look_step> looks;
  std::vector<change_step> changes;
  std::vector<open_step> opens;
  std::vector<session_id> erases;
  /// An earlier transaction of the batch may have gone in: what is found counts only if it is on the standbys
  /// too, and when nobody holds it any more.
  bool settles = false;

  std::size_t size() const { return looks.size() + changes.size() + opens.size() + erases.size(); }
  bool writes() const { return settles || !(changes.empty() && opens.empty() && erases.empty()); }
};

/// What a committed transaction said, for each step of its plan.
struct answers {
  struct found {
    std::optional<journal_head> head; ///< nothing: there is no such session
    bool ours = false;                ///< the record at the place was written by this batch
  };
  std::vector<found> looks;
  std::vector<std::optional<journal_head>> changes; ///< nothing: the head was another one
  std::vector<bool> opens;                          ///< false: it exists
  std::vector<bool> erases;                         ///< false: there was none
};

/// Takes a group of requests through as few transactions as it can: what follows one another in a session
/// goes into one step, sessions go side by side, and what the database did not take is looked at and judged.
/// Knows no sockets. After a transaction whose end nobody told, the sessions in it are looked at before
/// anything else is done with them; the records carry the batch's mark, so ours, nobody's and another's are
/// told apart.
class write_batch {
 public:
  using is_quarantined = std::function<bool(const session_id&)>;

  write_batch(const std::vector<const write_request*>& requests, is_quarantined quarantined);

  /// The next transaction, the same until one of the following is called; of size 0 when all requests have
  /// their verdict.
  plan next();

  void committed(const plan& what, const answers& said);
  /// It may have gone in or not.
  void unknown(const plan& what);
  /// It did not go in and would not a second time. Of several steps each is tried alone then; a single one is
  /// refused.
  void rejected(const plan& what, const error& why);
  /// Ends the batch: the rest is answered with this.
  /// @param unsure told in its place where a request may have gone in
  void give_up(const error& why, const error& unsure);

  /// True when an outcome is not known for at least one session.
  bool doubtful() const;
  std::vector<session_id> doubtful_sessions() const;

  std::vector<result<journal_head>> take_verdicts() { return std::move(verdicts_); }

 private:
  /// The requests of one session, in their order.
  struct line {
    session_id session;
    std::vector<std::size_t> requests;
    std::size_t at = 0;    ///< the first without a verdict
    std::size_t group = 0; ///< how many are in the step under way
    bool known = false;    ///< head is what the database had a moment ago
    std::optional<journal_head> head;
    bool look = false;         ///< the head is needed
    bool doubtful = false;     ///< the step under way may have gone in
    bool tried = false;        ///< it may yet go in, late
    sequence_number place = 0; ///< of its first record
    std::size_t misses = 0;
  };

  const write_request& front(const line& of) const { return *requests_[of.requests[of.at]]; }
  void answer(line& of, result<journal_head> verdict);
  void refuse(line& of, error why);
  bool judge(line& of);
  void add_step(line& of, plan& to);
  void add_change(line& of, plan& to);
  void succeed(line& of, journal_head after);
  void missed(line& of);
  void looked(line& of, const answers::found& what);

  const std::vector<const write_request*>& requests_;
  is_quarantined quarantined_;
  std::vector<result<journal_head>> verdicts_;
  std::map<session_id, line> lines_;
  bool alone_ = false; ///< one step a transaction
};

} // namespace godwit::postgres
