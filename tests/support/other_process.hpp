#pragma once

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

/// This test program again, in a process of its own that can be stopped and killed: it runs one hidden test
/// case, which reads what it is to do from a variable and ends with its standard input.
class other_process {
 public:
  /// @param test the name of the test case
  other_process(std::string test, const std::string& variable, const std::string& value) {
    int pipe_ends[2];
    if (::pipe2(pipe_ends, O_CLOEXEC) != 0)
      throw std::runtime_error("no pipe");
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, pipe_ends[0], 0);
    std::string program = "/proc/self/exe";
    char* const arguments[] = {program.data(), test.data(), nullptr};
    auto told = variable + "=" + value;
    std::vector<char*> variables{told.data()};
    for (char** each = environ; *each != nullptr; ++each)
      variables.push_back(*each);
    variables.push_back(nullptr);
    const auto done =
      ::posix_spawn(&process_, program.c_str(), &actions, nullptr, arguments, variables.data());
    posix_spawn_file_actions_destroy(&actions);
    ::close(pipe_ends[0]);
    life_ = pipe_ends[1];
    if (done != 0) {
      process_ = 0;
      ::close(life_);
      throw std::runtime_error("the process cannot be started");
    }
  }
  ~other_process() { kill(); }
  other_process(const other_process&) = delete;
  other_process& operator=(const other_process&) = delete;

  void signal(int which) const { ::kill(process_, which); }
  /// kill -9, and waits for its end. @returns false if it had ended before
  bool kill() {
    if (process_ == 0)
      return false;
    signal(SIGKILL);
    ::close(life_);
    int status = 0;
    ::waitpid(std::exchange(process_, 0), &status, 0);
    return WIFSIGNALED(status);
  }

  /// In the other process: until the first one ends it.
  static void wait_for_end() {
    char byte = 0;
    while (::read(0, &byte, 1) > 0) {
    }
  }

 private:
  pid_t process_ = 0;
  int life_ = -1;
};

} // namespace godwit
