#pragma once

#include "actors/session/memory_journal.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace godwit {

/// A memory journal whose appends and claims wait until a test lets each through, in whatever order, as those
/// of many nodes do that share a database. What was sent goes in although its node has died since.
class slow_journal final : public journal {
 public:
  explicit slow_journal(std::shared_ptr<memory_journal> below) : below_(std::move(below)) {}
  ~slow_journal() override { close(); }

  result<sequence_number> open(const session_id& session, const tenant_id& tenant, const node_name& owner,
    std::vector<journal_record> records, bool running) override {
    return below_->open(session, tenant, owner, std::move(records), running);
  }
  void append(append_request request, appended done) override {
    waiting_.emplace_back([below = below_, request = std::move(request), done = std::move(done)](bool open) {
      if (open)
        below->append(request, done);
      else
        done(fail(errc::unavailable, "the journal is closed"));
    });
  }
  result<journal_head> claim(const session_id& session, epoch_t expected, const node_name& owner,
    const journal_record& claimed) override {
    return below_->claim(session, expected, owner, claimed);
  }
  void begin_claim(const session_id& session, epoch_t expected, const node_name& owner,
    const journal_record& claimed, claimed_head done) override {
    waiting_.emplace_back(
      [below = below_, session, expected, owner, claimed, done = std::move(done)](bool open) {
        if (open)
          done(below->claim(session, expected, owner, claimed));
        else
          done(fail(errc::unavailable, "the journal is closed"));
      });
  }
  result<journal_head> head(const session_id& session) override { return below_->head(session); }
  result<std::vector<placed_record>> read(
    const session_id& session, sequence_number from, std::size_t limit) override {
    return below_->read(session, from, limit);
  }
  result<void> erase(const session_id& session) override { return below_->erase(session); }
  result<std::vector<journal_head>> list(const session_id& after, std::size_t limit) override {
    return below_->list(after, limit);
  }

  std::size_t waiting() const { return waiting_.size(); }
  /// Lets one through.
  void commit(std::size_t which) {
    const auto next = std::move(waiting_[which]);
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(which));
    next(true);
  }
  void commit_all() {
    while (!waiting_.empty())
      commit(0);
  }
  void close() {
    for (const auto& next : std::exchange(waiting_, {}))
      next(false);
  }

 private:
  std::shared_ptr<memory_journal> below_;
  std::vector<std::function<void(bool open)>> waiting_;
};

} // namespace godwit
