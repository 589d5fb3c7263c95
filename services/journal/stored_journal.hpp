#pragma once

#include "actors/session/journal.hpp"
#include "services/journal/metrics.hpp"

#include <string>

namespace godwit {

/// A journal that a node can run on, with what its operator wants to know of it.
class stored_journal : public journal {
 public:
  virtual const journal_counters& counters() const = 0;

  /// Why nothing can be written at present, without paths and addresses; empty: it can. Asking makes the
  /// journal look whether that is still so, as its other calls do. Any thread.
  virtual std::string trouble() = 0;
};

} // namespace godwit
