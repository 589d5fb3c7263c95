#include "actors/cache/work_lane.hpp"

#include <catch2/catch.hpp>

#include <atomic>
#include <future>
#include <thread>
#include <vector>

using namespace godwit;

TEST_CASE(
  "a lane does its jobs one after the other, urgent ones before those that wait, and no more than fit") {
  auto lane = threaded_lane(3);
  std::promise<void> gate;
  std::promise<void> begun;
  std::vector<int> order;
  std::promise<void> done;
  REQUIRE(lane->submit(
    [&] {
      begun.set_value();
      gate.get_future().wait();
    },
    false));
  begun.get_future().wait();
  CHECK(lane->busy().count() > 0);
  CHECK(lane->submit([&] { order.push_back(1); }, false));
  CHECK(lane->submit([&] { order.push_back(2); }, true));
  CHECK(lane->submit([&] { done.set_value(); }, false));
  CHECK_FALSE(lane->submit([&] { order.push_back(4); }, true));
  gate.set_value();
  done.get_future().wait();
  CHECK(order == std::vector{2, 1});
}

TEST_CASE("the end of a lane waits for the job that runs and drops those that wait") {
  std::promise<void> begun;
  std::atomic<bool> first{false};
  std::atomic<bool> second{false};
  auto held = std::make_shared<int>(1);
  const std::weak_ptr<int> watched = held;
  {
    auto lane = threaded_lane(3);
    lane->submit(
      [&] {
        begun.set_value();
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        first = true;
      },
      false);
    begun.get_future().wait();
    lane->submit([&second, held = std::move(held)] { second = true; }, false);
  }
  CHECK(first);
  CHECK_FALSE(second);
  CHECK(watched.expired());
}

TEST_CASE("a lane without a thread is done at once") {
  bool done = false;
  CHECK(immediate_lane()->submit([&] { done = true; }, false));
  CHECK(done);
}
