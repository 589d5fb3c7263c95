#pragma once

#include "actors/session/memory_journal.hpp"

#include <utility>
#include <vector>

namespace godwit {

/// A memory journal with whatever a test makes of some of its calls.
class journal_over_memory : public journal {
 public:
  result<sequence_number> open(const session_id& session, const tenant_id& tenant, const node_name& owner,
    std::vector<journal_record> records, bool running) override {
    return inner.open(session, tenant, owner, std::move(records), running);
  }
  void append(append_request request, appended done) override {
    inner.append(std::move(request), std::move(done));
  }
  result<journal_head> claim(const session_id& session, epoch_t expected, const node_name& owner,
    const journal_record& claimed) override {
    return inner.claim(session, expected, owner, claimed);
  }
  result<journal_head> head(const session_id& session) override { return inner.head(session); }
  result<std::vector<placed_record>> read(
    const session_id& session, sequence_number from, std::size_t limit) override {
    return inner.read(session, from, limit);
  }
  result<void> erase(const session_id& session) override { return inner.erase(session); }
  result<std::vector<journal_head>> list(const session_id& after, std::size_t limit) override {
    return inner.list(after, limit);
  }

  memory_journal inner;
};

} // namespace godwit
