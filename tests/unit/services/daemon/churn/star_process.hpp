#pragma once

#include "tests/support/other_process.hpp"
#include "tests/unit/services/daemon/churn/star.hpp"
#include "tests/unit/services/mesh/free_ports.hpp"

#include <fmt/format.h>

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
    const auto ports = free_ports(3 * names_.size());
    auto told = fmt::format("{} {} {}", hub.endpoints.letters, hub.endpoints.bulk, hub.endpoints.events);
    for (std::size_t i = 0; i < names_.size(); ++i) {
      node_record record;
      record.name = node_name(names_[i]);
      record.endpoints = {at(ports[3 * i]), at(ports[3 * i + 1]), at(ports[3 * i + 2])};
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

  void kill() { process_->kill(); }
  std::size_t size() const { return names_.size(); }

 private:
  static std::string at(std::uint16_t port) { return fmt::format("tcp://127.0.0.1:{}", port); }

  hub_registry& nodes_;
  std::vector<std::string> names_;
  std::unique_ptr<other_process> process_;
};

} // namespace godwit
