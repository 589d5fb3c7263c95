#pragma once

#include "actors/session/journal_clerks.hpp"

#include <chrono>
#include <cstddef>
#include <memory>
#include <thread>
#include <vector>

namespace godwit {

/// Clerks that are a few threads: as many as read from the journal at the same time.
class journal_threads final : public journal_clerks {
 public:
  struct limits {
    std::size_t threads = 4;
    std::size_t waiting = 65'536;               ///< questions; more are answered `overloaded`
    std::chrono::milliseconds patience{30'000}; ///< one that has waited longer is answered `deadline`
  };

  journal_threads(std::shared_ptr<journal> records, limits bounds);
  /// Waits for what is being asked; what waits is dropped, with those who asked. May be called by one of the
  /// threads, which then ends when it has nothing more to do.
  ~journal_threads() override;
  journal_threads(const journal_threads&) = delete;
  journal_threads& operator=(const journal_threads&) = delete;

  void ask(journal_question question, told done) override;

 private:
  struct desk;

  std::shared_ptr<desk> desk_; ///< the threads keep it as well
  std::vector<std::thread> threads_;
};

} // namespace godwit
