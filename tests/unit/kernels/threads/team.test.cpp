#include "kernels/threads/team.hpp"

#include <catch2/catch.hpp>

#include <numeric>
#include <vector>

using godwit::item_range;
using godwit::team;
using godwit::worker;

namespace {

/// Sums what the threads wrote before a barrier, on every thread, many times over.
void check_barriers(std::uint32_t threads, bool adapts = false) {
  team workers{threads, adapts};
  std::vector<std::uint64_t> slots(threads);
  std::vector<std::uint64_t> errors(threads);
  for (int job = 0; job < 50; ++job) {
    workers.run([&](worker& self) {
      for (std::uint64_t round = 1; round <= 20; ++round) {
        slots[self.index()] = round * (self.index() + 1);
        self.sync();
        const auto sum = std::accumulate(slots.begin(), slots.begin() + self.count(), std::uint64_t{0});
        errors[self.index()] += sum != round * self.count() * (self.count() + 1) / 2;
        self.sync();
      }
    });
  }
  CHECK(std::accumulate(errors.begin(), errors.end(), std::uint64_t{0}) == 0);
}

} // namespace

TEST_CASE("a barrier shows every thread what the others wrote before it") {
  check_barriers(1);
  check_barriers(2);
  check_barriers(3);
  check_barriers(3, true);
  check_barriers(5, true);
  check_barriers(5); // more than many machines have, so that waiting threads sleep
}

TEST_CASE("items that are taken are handed out once, and again after a barrier") {
  team workers{3};
  std::vector<std::atomic<int>> counts(1000);
  workers.run([&](worker& self) {
    for (int round = 0; round < 2; ++round) {
      for (std::uint32_t i = self.take(); i < counts.size(); i = self.take()) {
        counts[i].fetch_add(1);
      }
      self.sync();
    }
  });
  for (const auto& count : counts) {
    REQUIRE(count.load() == 2);
  }
}

TEST_CASE("shares cover all items once, in order, cut at the granule") {
  for (const std::uint32_t threads : {1U, 2U, 3U, 7U}) {
    team workers{threads};
    for (const std::size_t items : {0U, 1U, 5U, 16U, 17U, 100U}) {
      for (const std::size_t granule : {1U, 4U, 16U}) {
        std::vector<item_range> parts(threads);
        workers.run([&](worker& self) { parts[self.index()] = self.share(items, granule); });
        std::size_t next = 0;
        for (const auto& part : parts) {
          CHECK(part.begin == next);
          CHECK((part.end % granule == 0 || part.end == items));
          next = part.end;
        }
        CHECK(next == items);
      }
    }
  }
}

TEST_CASE("a team of one runs on the calling thread") {
  team workers{1};
  std::thread::id where;
  workers.run([&](worker& self) {
    self.sync();
    where = std::this_thread::get_id();
  });
  CHECK(where == std::this_thread::get_id());
}
