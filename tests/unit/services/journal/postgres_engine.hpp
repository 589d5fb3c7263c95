#pragma once

#include "services/journal/postgres/postgres_journal.hpp"
#include "tests/support/postgres_server.hpp"

#include <catch2/catch.hpp>

#include <memory>
#include <string>
#include <vector>

namespace godwit::test {

/// Tables of its own on the server that the whole test program shares.
class postgres_engine {
 public:
  postgres_engine() : log_(open()) {}
  ~postgres_engine() {
    log_.reset();
    nodes_.clear();
    postgres_server::common().ask("DROP SCHEMA " + schema_ + " CASCADE");
  }
  postgres_engine(const postgres_engine&) = delete;
  postgres_engine& operator=(const postgres_engine&) = delete;

  journal& log() { return *log_; }
  journal& node(std::size_t number) {
    while (nodes_.size() <= number)
      nodes_.push_back(open());
    return *nodes_[number];
  }
  void restart() {
    log_.reset();
    log_ = open();
  }

 private:
  static std::string next_schema() {
    static int count = 0;
    return "case_" + std::to_string(++count);
  }

  std::unique_ptr<postgres_journal> open() {
    postgres_journal_options options;
    options.url = postgres_server::common().url();
    options.schema = schema_;
    options.allow_unsafe = true;
    auto made = postgres_journal::create(std::move(options));
    if (!made)
      FAIL(made.error().message);
    return std::move(*made);
  }

  const std::string schema_ = next_schema();
  std::unique_ptr<postgres_journal> log_;
  std::vector<std::unique_ptr<postgres_journal>> nodes_;
};

} // namespace godwit::test
