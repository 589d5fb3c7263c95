#include "actors/router/placement.hpp"

#include <catch2/catch.hpp>

using namespace godwit;

namespace {

worker_load worker(double decode_blocks, std::uint64_t prefill_tokens = 0) {
  worker_load load;
  load.capacity = 10;
  load.decode_blocks = decode_blocks;
  load.prefill_tokens = prefill_tokens;
  return load;
}

double total(const worker_load& load, std::uint64_t tokens, const cost_weights& weights = {}) {
  return costs(std::span(&load, 1), tokens, 16, weights).at(0).total();
}

} // namespace

TEST_CASE("of three workers that cost 18, 10 and 11 blocks the second wins") {
  std::mt19937_64 random(1);
  // A request of 8 blocks; the workers hold 0, 5 and 2 of them and run 10, 7 and 5 blocks.
  std::vector<worker_load> workers{worker(10), worker(7), worker(5)};
  workers[1].overlap.device = 5;
  workers[2].overlap.device = 2;
  const auto list = costs(workers, 128, 16, {});
  CHECK(list[0].total() == 18);
  CHECK(list[1].total() == 10);
  CHECK(list[2].total() == 11);
  CHECK(choose_worker(workers, 128, 16, {}, random)->worker == 1);
}

TEST_CASE("blocks count by the tier they are in") {
  auto load = worker(0);
  load.overlap = {4, 4, 4, 4};
  // 20 blocks of prompt less 4 + 3 + 1 + 2.
  CHECK(total(load, 320) == 10);
}

TEST_CASE("the prefill part is never negative, and scale weighs it alone") {
  auto load = worker(3);
  load.overlap.device = 100;
  CHECK(total(load, 64) == 3);
  CHECK(total(worker(3), 64, {.scale = 4}) == 19);
}

TEST_CASE("prefill work that waits counts, and so do active requests if they are weighed") {
  auto load = worker(2, 160);
  load.requests = 3;
  CHECK(total(load, 32) == 14);
  CHECK(total(load, 32, {.request = 64}) == 14 + 192);
}

TEST_CASE("the credit for cached blocks fades with prefill work beyond the least loaded worker") {
  std::vector<worker_load> workers{worker(0, 160), worker(0)};
  workers[0].overlap.device = 8;
  // 10 blocks of excess over a request of 10: with d = 1 the credit is halved.
  const auto list = costs(workers, 160, 16, {.decay = 1});
  CHECK(list[0].total() == 16);
  CHECK(list[1].total() == 10);
}

TEST_CASE("equal workers share") {
  std::mt19937_64 random(1);
  const std::vector<worker_load> workers(4, worker(0));
  int counts[4] = {};
  for (int i = 0; i < 4000; ++i)
    ++counts[choose_worker(workers, 16, 16, {}, random)->worker];
  for (const auto count : counts)
    CHECK(std::abs(count - 1000) < 150);
}

TEST_CASE("with a temperature the dearer worker is chosen by the softmax of the normalised costs") {
  std::mt19937_64 random(1);
  const std::vector<worker_load> workers{worker(0), worker(10)};
  int second = 0;
  for (int i = 0; i < 10000; ++i)
    second += choose_worker(workers, 16, 16, {.temperature = 1}, random)->worker == 1 ? 1 : 0;
  // exp(-1) / (1 + exp(-1))
  CHECK(std::abs(second / 10000.0 - 0.2689) < 0.015);
}

TEST_CASE("no worker is unavailable, no room is overloaded") {
  std::mt19937_64 random(1);
  CHECK(choose_worker({}, 16, 16, {}, random).error().code == errc::unavailable);
  std::vector<worker_load> workers{worker(0), worker(0)};
  workers[0].available = false;
  workers[1].requests = 10;
  CHECK(choose_worker(workers, 16, 16, {}, random).error().code == errc::overloaded);
  workers[1].available = false;
  CHECK(choose_worker(workers, 16, 16, {}, random).error().code == errc::unavailable);
}
