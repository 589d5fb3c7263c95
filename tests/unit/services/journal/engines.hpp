#pragma once

#include "actors/session/memory_journal.hpp"
#include "services/journal/rocks_journal.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/unit/services/journal/records.hpp"

#include <catch2/catch.hpp>

#include <memory>

namespace godwit::test {

// What the conformance suite runs against. An engine has `log()`, `restart()`, which closes the journal and
// opens it again over what was kept, and `node()`, which is the journal as another node has it: another
// object over the same, where nodes can share one.

class memory_engine {
 public:
  journal& log() { return *log_; }
  journal& node(std::size_t) { return *log_; }
  void restart() {
    log_.reset();
    log_ = std::make_unique<memory_journal>(disk_);
  }

 private:
  std::shared_ptr<memory_disk> disk_ = std::make_shared<memory_disk>();
  std::unique_ptr<memory_journal> log_ = std::make_unique<memory_journal>(disk_);
};

class rocks_engine {
 public:
  rocks_engine() { start(); }
  journal& log() { return *log_; }
  journal& node(std::size_t) { return *log_; }
  void restart() {
    log_.reset();
    start();
  }

 private:
  void start() {
    rocks_journal_options options;
    options.folder = folder_.path() / "journal";
    // Small, so that tables are written and merged while the cases run.
    options.write_buffer_bytes = std::size_t{64} << 10;
    auto made = rocks_journal::create(std::move(options));
    REQUIRE(made);
    log_ = std::move(*made);
  }

  temporary_folder folder_;
  std::unique_ptr<rocks_journal> log_;
};

inline errc code(const result<sequence_number>& failed) {
  REQUIRE_FALSE(failed);
  return failed.error().code;
}

} // namespace godwit::test
