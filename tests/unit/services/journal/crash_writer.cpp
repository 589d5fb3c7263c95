// The process that crash.test.cpp kills: appends to one session after the other and says so once a record is
// acknowledged. crash_writer FOLDER SESSIONS: prints "session sequence\n" for each.
#include "services/journal/rocks_journal.hpp"
#include "tests/unit/services/journal/records.hpp"

#include <unistd.h>

#include <thread>

using namespace godwit;
using namespace godwit::test;

namespace {

/// One write, so that a line is there whole or not at all.
void say(std::size_t number, sequence_number sequence) {
  const auto line = std::to_string(number) + " " + std::to_string(sequence) + "\n";
  if (::write(STDOUT_FILENO, line.data(), line.size()) != static_cast<ssize_t>(line.size()))
    ::_exit(3);
}

/// The record's text tells its place; its length varies, so that entries end anywhere in a block.
std::vector<journal_record> records_from(sequence_number first, std::size_t count) {
  std::vector<journal_record> made;
  for (std::size_t i = 0; i < count; ++i) {
    const auto sequence = first + i;
    made.push_back(record(std::to_string(sequence) + std::string(sequence * 37 % 1500, '.')));
  }
  return made;
}

void write_session(journal& log, std::size_t number) {
  const auto name = session(number);
  auto head = log.head(name);
  sequence_number at = head ? head->sequence : 0;
  if (!head) {
    const auto opened = log.open(name, tenant, node_a, records_from(1, 1), true);
    if (!opened)
      ::_exit(4);
    at = *opened;
    say(number, at);
  }
  for (;;) {
    const auto count = at % 5 + 1;
    const auto answer = append_now(log, more(name, at, records_from(at + 1, count)));
    if (!answer || *answer != at + count)
      ::_exit(5);
    at = *answer;
    say(number, at);
  }
}

} // namespace

int main(int argc, char** argv) {
  if (argc != 3)
    return 2;
  rocks_journal_options options;
  options.folder = argv[1];
  options.write_buffer_bytes = std::size_t{64} << 10;
  const auto log = rocks_journal::create(options);
  if (!log)
    return 6;
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < std::stoul(argv[2]); ++i)
    threads.emplace_back([&, i] { write_session(**log, i); });
  for (auto& thread : threads)
    thread.join();
}
