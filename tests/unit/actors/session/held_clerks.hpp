#pragma once

#include "actors/session/journal_clerks.hpp"

#include <cstddef>
#include <deque>
#include <memory>
#include <utility>

namespace godwit {

/// Clerks who ask the journal when a test says so, in whatever order; at once unless they are held.
class held_clerks final : public journal_clerks {
 public:
  explicit held_clerks(std::shared_ptr<journal> records) : records_(std::move(records)) {}

  void ask(journal_question question, told done) override {
    waiting_.emplace_back(std::move(question), std::move(done));
    if (!held_)
      answer_all();
  }

  void hold() { held_ = true; }
  void resume() {
    held_ = false;
    answer_all();
  }
  std::size_t waiting() const { return waiting_.size(); }
  void answer(std::size_t which = 0) {
    const auto [question, done] = std::move(waiting_[which]);
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(which));
    done(question(*records_));
  }
  void answer_all() {
    while (!waiting_.empty())
      answer();
  }

 private:
  std::shared_ptr<journal> records_;
  std::deque<std::pair<journal_question, told>> waiting_;
  bool held_ = false;
};

} // namespace godwit
