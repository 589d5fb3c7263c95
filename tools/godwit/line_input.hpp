#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace godwit::cli {

/// Lines from standard input: on a terminal with editing and a history that is kept in a file, else as they
/// come.
class line_input {
 public:
  /// @param history where the history is kept; empty keeps none
  explicit line_input(std::filesystem::path history);
  ~line_input();
  line_input(const line_input&) = delete;
  line_input& operator=(const line_input&) = delete;

  /// The next line without its end, or nothing at the end of input.
  std::optional<std::string> next(const char* prompt);
  bool interactive() const { return interactive_; }

 private:
  std::filesystem::path history_;
  bool interactive_;
};

/// Where the chat keeps its history: below XDG_STATE_HOME or ~/.local/state; empty if neither is known.
std::filesystem::path default_history();

} // namespace godwit::cli
