#include "actors/session/journal_threads.hpp"
#include "tests/support/journal_over_memory.hpp"

#include <catch2/catch.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

using namespace godwit;

namespace {

constexpr std::chrono::seconds patience{60};

/// A journal whose heads are told when the test lets them.
class locked_journal final : public journal_over_memory {
 public:
  explicit locked_journal(std::shared_future<void> door) : door_(std::move(door)) {}
  result<journal_head> head(const session_id& session) override {
    ++inside;
    door_.wait_for(patience);
    return journal_over_memory::head(session);
  }

  std::atomic<int> inside{0};

 private:
  std::shared_future<void> door_;
};

struct answers {
  /// Asks for a head, and keeps the code of what comes.
  void ask(journal_clerks& clerks) {
    clerks.ask(
      [this](journal& records) -> journal_answer {
        return [this, code = records.head(session_id("s")).error().code] { codes.push_back(code); };
      },
      [this](const journal_answer& answer) {
        const std::lock_guard lock(mutex);
        answer();
        changed.notify_all();
      });
  }
  void wait_for(std::size_t count) {
    std::unique_lock lock(mutex);
    REQUIRE(changed.wait_for(lock, patience, [&] { return codes.size() >= count; }));
  }

  std::mutex mutex;
  std::condition_variable changed;
  std::vector<errc> codes;
};

void wait_until_inside(const locked_journal& journal, int count) {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (journal.inside < count && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  REQUIRE(journal.inside == count);
}

} // namespace

TEST_CASE("questions wait for the journal on other threads, as many at once as there are") {
  std::promise<void> door;
  const auto records = std::make_shared<locked_journal>(door.get_future().share());
  answers got;
  journal_threads clerks(records, {.threads = 3});
  for (int i = 0; i < 5; ++i)
    got.ask(clerks);
  wait_until_inside(*records, 3);
  door.set_value();
  got.wait_for(5);
  CHECK(got.codes == std::vector<errc>(5, errc::not_found));
}

TEST_CASE("a question too many is answered at once, and one that waited too long without the journal") {
  std::promise<void> door;
  const auto records = std::make_shared<locked_journal>(door.get_future().share());
  answers got;
  journal_threads clerks(records, {.threads = 1, .waiting = 1, .patience = std::chrono::milliseconds(50)});
  got.ask(clerks);
  wait_until_inside(*records, 1);
  got.ask(clerks);
  got.ask(clerks);
  CHECK(got.codes == std::vector<errc>{errc::overloaded});
  std::this_thread::sleep_for(std::chrono::milliseconds(60));
  door.set_value();
  got.wait_for(3);
  CHECK(got.codes == std::vector<errc>{errc::overloaded, errc::not_found, errc::deadline});
  CHECK(records->inside == 1);
}

TEST_CASE("clerks that end finish what is asked and drop what waits") {
  std::promise<void> door;
  const auto records = std::make_shared<locked_journal>(door.get_future().share());
  answers got;
  auto clerks = std::make_unique<journal_threads>(records, journal_threads::limits{.threads = 1});
  got.ask(*clerks);
  wait_until_inside(*records, 1);
  got.ask(*clerks);
  auto ended = std::async(std::launch::async, [&] { clerks.reset(); });
  CHECK(ended.wait_for(std::chrono::milliseconds(20)) == std::future_status::timeout);
  door.set_value();
  ended.get();
  CHECK(got.codes == std::vector<errc>{errc::not_found});
}

TEST_CASE("the last to let go of the clerks may be one of them") {
  const auto records = std::make_shared<journal_over_memory>();
  std::promise<void> done;
  std::promise<void> asked;
  struct guest {
    std::shared_ptr<journal_threads> clerks;
    std::promise<void>* done;
    ~guest() {
      clerks.reset();
      done->set_value();
    }
  };
  auto last = std::make_shared<guest>();
  last->done = &done;
  last->clerks = std::make_shared<journal_threads>(records, journal_threads::limits{.threads = 2});
  auto& clerks = *last->clerks;
  clerks.ask([](journal&) -> journal_answer { return [] {}; },
    [last = std::move(last), returned = asked.get_future().share()](
      const journal_answer&) { returned.wait_for(patience); });
  asked.set_value();
  CHECK(done.get_future().wait_for(patience) == std::future_status::ready);
}
