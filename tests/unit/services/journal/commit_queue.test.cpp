#include "services/journal/commit_queue.hpp"

#include <catch2/catch.hpp>

#include <atomic>
#include <future>

using namespace godwit;
using namespace std::chrono_literals;

namespace {

/// A store whose writes end when the test says so.
class slow_store {
 public:
  commit_queue::commit writer() {
    return [this](const std::vector<const write_request*>& batch) {
      std::unique_lock lock(mutex_);
      batches_.push_back(batch.size());
      started_.notify_all();
      open_.wait(lock, [&] { return permits_ > 0; });
      --permits_;
      std::vector<result<journal_head>> verdicts;
      for (const auto* request : batch) {
        journal_head head;
        head.session = request->session;
        head.sequence = request->expected + request->records.size();
        verdicts.emplace_back(std::move(head));
      }
      return verdicts;
    };
  }
  void let(int writes) {
    const std::lock_guard lock(mutex_);
    permits_ += writes;
    open_.notify_all();
  }
  /// Waits until so many batches have been begun.
  void wait_for_batches(std::size_t count) {
    std::unique_lock lock(mutex_);
    REQUIRE(started_.wait_for(lock, 30s, [&] { return batches_.size() >= count; }));
  }
  std::vector<std::size_t> batches() {
    const std::lock_guard lock(mutex_);
    return batches_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable open_;
  std::condition_variable started_;
  std::vector<std::size_t> batches_;
  int permits_ = 0;
};

write_request request(std::size_t bytes = 10) {
  write_request made;
  made.session = session_id("s");
  made.records.resize(1);
  made.bytes = bytes;
  return made;
}

constexpr int plenty = 1'000'000;

} // namespace

TEST_CASE("what arrives during a write goes into the next one together") {
  slow_store store;
  journal_counters counters;
  std::atomic<int> answered{0};
  {
    commit_queue queue({}, store.writer(), counters, nullptr);
    queue.push(request(), [&](const auto& head) { answered += head ? 1 : 0; });
    store.wait_for_batches(1);
    for (int i = 0; i < 100; ++i)
      queue.push(request(), [&](const auto& head) { answered += head ? 1 : 0; });
    CHECK(counters.waiting_requests == 100);
    CHECK(counters.waiting_bytes == 1000);
    store.let(plenty);
  }
  CHECK(store.batches() == std::vector<std::size_t>{1, 100});
  CHECK(answered == 101);
  CHECK(counters.waiting_requests == 0);
}

TEST_CASE("a batch is bounded in bytes, and one larger request goes alone") {
  slow_store store;
  journal_counters counters;
  {
    commit_queue queue({.batch_bytes = 100}, store.writer(), counters, nullptr);
    queue.push(request(), [](const auto&) {});
    store.wait_for_batches(1);
    for (const std::size_t bytes : {60U, 40U, 1U, 500U, 99U})
      queue.push(request(bytes), [](const auto&) {});
    store.let(plenty);
  }
  CHECK(store.batches() == std::vector<std::size_t>{1, 2, 1, 1, 1});
}

TEST_CASE("a full queue refuses at once and goes on later") {
  slow_store store;
  journal_counters counters;
  commit_queue queue({.requests = 2, .bytes = 100}, store.writer(), counters, nullptr);
  queue.push(request(), [](const auto&) {});
  store.wait_for_batches(1);

  errc refused{};
  const auto expect_refusal = [&](const result<journal_head>& head) { refused = head.error().code; };
  queue.push(request(60), [](const auto&) {});
  queue.push(request(60), expect_refusal);
  CHECK(refused == errc::overloaded);
  queue.push(request(40), [](const auto&) {});
  refused = {};
  queue.push(request(0), expect_refusal);
  CHECK(refused == errc::overloaded);
  CHECK(counters.overloaded == 2);

  store.let(plenty);
  std::promise<bool> done;
  // Until the queue has taken the two that wait, it may still be full.
  store.wait_for_batches(2);
  queue.push(request(), [&](const auto& head) { done.set_value(head.has_value()); });
  CHECK(done.get_future().get());
}

TEST_CASE("a request larger than the whole queue is taken when nothing else waits") {
  slow_store store;
  journal_counters counters;
  std::atomic<bool> stored{false};
  {
    commit_queue queue({.bytes = 100}, store.writer(), counters, nullptr);
    store.let(plenty);
    queue.push(request(1000), [&](const auto& head) { stored = head.has_value(); });
  }
  CHECK(stored);
}

TEST_CASE("a store that hangs leaves no request without an answer") {
  slow_store store;
  journal_counters counters;
  std::promise<error> running;
  std::promise<error> waiting;
  std::atomic<int> answers{0};
  {
    commit_queue queue({.deadline = 50ms}, store.writer(), counters, nullptr);
    queue.push(request(), [&](const auto& head) {
      ++answers;
      running.set_value(head.error());
    });
    store.wait_for_batches(1);
    queue.push(request(), [&](const auto& head) {
      ++answers;
      waiting.set_value(head.error());
    });
    const auto first = running.get_future().get();
    CHECK(first.code == errc::deadline);
    CHECK(first.message.find("unknown") != std::string::npos);
    const auto second = waiting.get_future().get();
    CHECK(second.code == errc::deadline);
    CHECK(second.message.find("not stored") != std::string::npos);
    store.let(plenty);
  }
  // The one that waited was never written, and the late verdict of the other is dropped.
  CHECK(store.batches() == std::vector<std::size_t>{1});
  CHECK(answers == 2);
  CHECK(counters.deadlines == 2);
}

TEST_CASE("closing writes what waits and refuses what comes") {
  slow_store store;
  journal_counters counters;
  std::atomic<int> stored{0};
  std::atomic<int> refused{0};
  auto queue = std::make_unique<commit_queue>(commit_queue::limits{}, store.writer(), counters, nullptr);
  auto& open = *queue;
  open.push(request(), [&](const auto& head) {
    stored += head ? 1 : 0;
    // The queue is being closed now.
    open.push(request(), [&](const auto& late) {
      CHECK(late.error().code == errc::unavailable);
      ++refused;
    });
  });
  store.wait_for_batches(1);
  open.push(request(), [&](const auto& head) { stored += head ? 1 : 0; });
  std::thread closer([&] { queue.reset(); });
  // The writer is inside the first batch until it is let go; by then the closer has long begun.
  std::this_thread::sleep_for(20ms);
  store.let(plenty);
  closer.join();
  CHECK(stored == 2);
  CHECK(refused == 1);
}

TEST_CASE("an observer learns of each commit's size and time") {
  struct : journal_observer {
    void committed(const commit_sample& sample) override { samples.push_back(sample); }
    std::vector<commit_sample> samples;
  } observer;
  slow_store store;
  journal_counters counters;
  {
    commit_queue queue({}, store.writer(), counters, &observer);
    queue.push(request(), [](const auto&) {});
    store.wait_for_batches(1);
    queue.push(request(5), [](const auto&) {});
    queue.push(request(6), [](const auto&) {});
    store.let(plenty);
  }
  REQUIRE(observer.samples.size() == 2);
  CHECK(observer.samples[1].requests == 2);
  CHECK(observer.samples[1].records == 2);
  CHECK(observer.samples[1].bytes == 11);
  CHECK(observer.samples[1].oldest >= observer.samples[1].write);
}
