#pragma once

#include "services/journal/commit_queue.hpp"

namespace godwit {

// The changes that an engine queues, checked by the rules that hold for all (journal_rules.hpp).

result<write_request> append_of(append_request request);
result<write_request> open_of(const session_id& session, const tenant_id& tenant, const node_name& owner,
  std::vector<journal_record> records, bool running);
result<write_request> claim_of(
  const session_id& session, epoch_t expected, const node_name& owner, const journal_record& claimed);
write_request erase_of(const session_id& session);

} // namespace godwit
