#pragma once

#include "services/journal/rocks_store.hpp"

#include <map>

namespace godwit {

/// The changes of one group commit: each goes in if the head that it meets allows it, where a head is what
/// the store has or what an earlier change of the batch made of it.
class rocks_batch {
 public:
  explicit rocks_batch(const rocks_store& store) : store_(store) {}

  /// @returns the head after the change; `corrupt` for a damaged head; else why it is refused
  result<journal_head> add(const write_request& request);

  /// Erases a session whose head may be damaged.
  result<journal_head> erase_damaged(const session_id& session);

  /// True when an earlier change of this batch touched the session: a verdict drawn from it holds only if the
  /// batch does.
  bool changed(const session_id& session) const { return heads_.contains(session); }

  bool empty() { return batch_.Count() == 0; }
  /// Stores all of it. @param store the one that it was made for
  rocksdb::Status write(rocks_store& store) { return store.write(batch_); }

 private:
  result<std::optional<journal_head>> head(const session_id& session) const;
  result<journal_head> put(journal_head head, const write_request& request);
  result<journal_head> open_session(const write_request& request);
  result<journal_head> append_to(journal_head head, const write_request& request);
  result<journal_head> claim_from(journal_head head, const write_request& request);
  result<journal_head> erase_session(const journal_head& head);

  const rocks_store& store_;
  rocksdb::WriteBatch batch_;
  std::map<session_id, std::optional<journal_head>> heads_; ///< nothing for an erased session
};

} // namespace godwit
