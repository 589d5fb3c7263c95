// The process that crash.test.cpp kills. crash_writer FOLDER LIMIT POINT COUNT STEPS: takes the steps of
// crash_plan.hpp, says "I" once step I is written, and dies when it is at POINT for the COUNTth time. Before
// them it reads all texts if it is to die while a record is deleted.
#include "tests/unit/services/coldstore/crash_plan.hpp"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>

using namespace godwit;
using namespace godwit::test;

namespace {

/// One write, so that a line is there whole or not at all.
void say(std::size_t step) {
  const auto line = std::to_string(step) + "\n";
  if (::write(STDOUT_FILENO, line.data(), line.size()) != static_cast<ssize_t>(line.size()))
    ::_exit(3);
}

} // namespace

int main(int argc, char** argv) {
  if (argc != 6)
    return 2;
  auto options = small_store(argv[1], std::stoull(argv[2]));
  const int point = std::stoi(argv[3]);
  std::atomic<int> left{std::stoi(argv[4])};
  options.at_point = [&](cold_point at) {
    if (static_cast<int>(at) == point && --left == 0)
      ::kill(::getpid(), SIGKILL);
  };
  const auto store = open_cold_store(options);
  if (!store)
    return 6;
  if (point == static_cast<int>(cold_point::dropping))
    for (std::uint32_t i = 0; i < crash_texts; ++i)
      if (read_right(**store, crash_text(i)) == ~std::size_t{0})
        return 7;
  std::size_t done = 0;
  for (const auto& [number, until] : crash_steps(std::stoul(argv[5]))) {
    const auto one = crash_text(number);
    if (!(*store)->write(one.blocks(0, until)))
      return 8;
    say(++done);
  }
  // What is in the background has its time.
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  return 0;
}
