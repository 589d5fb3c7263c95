#pragma once

// Workers in a process of their own, so that they can be killed.

#include "tests/unit/services/daemon/churn/star.hpp"
#include "tests/unit/services/mesh/free_ports.hpp"

#include <fmt/format.h>

#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace godwit {

/// The variable that tells such a process what it is: endpoints of the hub, then name and endpoints of each
/// worker, separated by spaces.
inline constexpr auto star_process_variable = "GODWIT_TEST_CHURN";

/// This program again, with some workers; ends with the pipe that it reads from.
class star_process {
 public:
  /// @param test the test case that the other process runs
  star_process(hub_registry& nodes, const node_record& hub, std::string test, std::vector<std::string> names)
    : nodes_(nodes), names_(std::move(names)) {
    const auto ports = free_ports(3 * names_.size());
    auto told = fmt::format(
      "{}={} {} {}", star_process_variable, hub.endpoints.letters, hub.endpoints.bulk, hub.endpoints.events);
    for (std::size_t i = 0; i < names_.size(); ++i) {
      node_record record;
      record.name = node_name(names_[i]);
      record.endpoints = {at(ports[3 * i]), at(ports[3 * i + 1]), at(ports[3 * i + 2])};
      told += fmt::format(
        " {} {} {} {}", names_[i], record.endpoints.letters, record.endpoints.bulk, record.endpoints.events);
      nodes_.put(record);
    }
    start(std::move(told), std::move(test));
  }
  ~star_process() {
    kill();
    for (const auto& each : names_)
      nodes_.take(node_name(each));
  }
  star_process(const star_process&) = delete;
  star_process& operator=(const star_process&) = delete;

  /// kill -9. The registry keeps them: nobody has said goodbye.
  void kill() {
    if (process_ == 0)
      return;
    ::kill(process_, SIGKILL);
    ::close(life_);
    int status = 0;
    ::waitpid(process_, &status, 0);
    process_ = 0;
  }
  std::size_t size() const { return names_.size(); }

 private:
  static std::string at(std::uint16_t port) { return fmt::format("tcp://127.0.0.1:{}", port); }

  void start(std::string told, std::string test) {
    int pipe_ends[2];
    if (::pipe2(pipe_ends, O_CLOEXEC) != 0)
      throw std::runtime_error("no pipe");
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, pipe_ends[0], 0);
    std::string program = "/proc/self/exe";
    char* const arguments[] = {program.data(), test.data(), nullptr};
    std::vector<char*> variables{told.data()};
    for (char** each = environ; *each != nullptr; ++each)
      variables.push_back(*each);
    variables.push_back(nullptr);
    const auto done =
      ::posix_spawn(&process_, program.c_str(), &actions, nullptr, arguments, variables.data());
    posix_spawn_file_actions_destroy(&actions);
    ::close(pipe_ends[0]);
    life_ = pipe_ends[1];
    if (done != 0)
      throw std::runtime_error("the process cannot be started");
  }

  hub_registry& nodes_;
  std::vector<std::string> names_;
  pid_t process_ = 0;
  int life_ = -1;
};

} // namespace godwit
