#pragma once

#include "actors/session/journal.hpp"

#include <functional>

namespace godwit {

/// What is done with the journal's answer, by the actor that asked.
using journal_answer = std::function<void()>;

/// Asks the journal, however long that takes. Runs on any thread, so it touches nothing of the actor.
using journal_question = std::function<journal_answer(journal&)>;

/// Wait for the journal in place of actors, so that none of them keeps a thread from the others.
class journal_clerks {
 public:
  /// Called once, on any thread: do no work in it.
  using told = std::function<void(journal_answer)>;

  virtual ~journal_clerks() = default;

  /// Has a question answered. When too many wait, or it has waited too long, it is asked of a journal that
  /// answers `overloaded` or `deadline` to everything, so that there is always an answer.
  virtual void ask(journal_question question, told done) = 0;
};

} // namespace godwit
