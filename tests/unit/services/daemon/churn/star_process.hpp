#pragma once

#include "tests/support/other_process.hpp"
#include "tests/unit/services/daemon/churn/star.hpp"

#include <fmt/format.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace godwit {

/// The test case that runs workers in another process, and the variable that tells them: endpoints of the
/// hub, then name and endpoints of each, separated by spaces.
inline constexpr auto star_process_test = "workers of another process";
inline constexpr auto star_process_variable = "GODWIT_TEST_CHURN";

/// Workers in a process of their own, so that they can be killed. They stay in the registry until this ends:
/// nobody has said goodbye for them.
class star_process {
 public:
  star_process(hub_registry& nodes, const node_record& hub, std::vector<std::string> names)
    : nodes_(nodes), names_(std::move(names)) {
    // An address of its own, so that nobody else takes its ports: all of 127.0.0.0/8 leads here.
    static std::atomic<unsigned> processes{0};
    const auto number = ++processes;
    const auto host = fmt::format("127.{}.{}.{}", 1 + ::getpid() % 250, 1 + number / 250, 1 + number % 250);
    const auto at = [&](std::size_t port) { return fmt::format("tcp://{}:{}", host, 7401 + port); };
    auto told = fmt::format("{} {} {}", hub.endpoints.letters, hub.endpoints.bulk, hub.endpoints.events);
    for (std::size_t i = 0; i < names_.size(); ++i) {
      node_record record;
      record.name = node_name(names_[i]);
      record.endpoints = {at(3 * i), at(3 * i + 1), at(3 * i + 2)};
      told += fmt::format(
        " {} {} {} {}", names_[i], record.endpoints.letters, record.endpoints.bulk, record.endpoints.events);
      nodes_.put(record);
    }
    process_ = std::make_unique<other_process>(star_process_test, star_process_variable, told);
  }
  ~star_process() {
    process_.reset();
    for (const auto& each : names_)
      nodes_.take(node_name(each));
  }
  star_process(const star_process&) = delete;
  star_process& operator=(const star_process&) = delete;

  /// @returns false if it had ended before
  bool kill() { return process_->kill(); }
  std::size_t size() const { return names_.size(); }

 private:
  hub_registry& nodes_;
  std::vector<std::string> names_;
  std::unique_ptr<other_process> process_;
};

} // namespace godwit
