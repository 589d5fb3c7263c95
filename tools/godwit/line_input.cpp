#include "tools/godwit/line_input.hpp"

#include <cstdlib>
#include <iostream>
#include <memory>
#include <system_error>

#include <editline/readline.h>
#include <unistd.h>

namespace godwit::cli {

namespace {
constexpr int most_history = 1000;
} // namespace

line_input::line_input(std::filesystem::path history)
  : history_(std::move(history)), interactive_(isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1) {
  if (!interactive_)
    return;
  using_history();
  stifle_history(most_history);
  if (!history_.empty()) {
    std::error_code ignored;
    std::filesystem::create_directories(history_.parent_path(), ignored);
    read_history(history_.c_str());
  }
}

line_input::~line_input() {
  if (interactive_ && !history_.empty())
    write_history(history_.c_str());
}

std::optional<std::string> line_input::next(const char* prompt) {
  if (!interactive_) {
    std::string line;
    if (!std::getline(std::cin, line))
      return std::nullopt;
    return line;
  }
  const std::unique_ptr<char, void (*)(void*)> line(readline(prompt), std::free);
  if (!line)
    return std::nullopt;
  if (*line != '\0')
    add_history(line.get());
  return std::string(line.get());
}

std::filesystem::path default_history() {
  if (const char* state = std::getenv("XDG_STATE_HOME"); state != nullptr && *state != '\0')
    return std::filesystem::path(state) / "godwit" / "history";
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0')
    return std::filesystem::path(home) / ".local" / "state" / "godwit" / "history";
  return {};
}

} // namespace godwit::cli
