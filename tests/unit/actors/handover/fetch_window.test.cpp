#include "actors/handover/fetch_window.hpp"

#include <catch2/catch.hpp>

using namespace godwit;

TEST_CASE("blocks are asked for in order, so many at a time") {
  fetch_window window({3, 10}, 4, 2);
  CHECK(window.next() == block_range{3, 4});
  CHECK(window.next() == block_range{7, 4});
  CHECK_FALSE(window.next());
  CHECK(window.open() == 2);
  CHECK(window.came({3, 4}, 4));
  CHECK(window.next() == block_range{11, 2});
  CHECK_FALSE(window.next());
  CHECK(window.came({7, 4}, 4));
  CHECK_FALSE(window.over());
  CHECK(window.came({11, 2}, 2));
  CHECK(window.over());
  CHECK(window.good() == 10);
}

TEST_CASE("what comes out of order counts when the gap before it is closed") {
  fetch_window window({0, 8}, 4, 2);
  window.next();
  window.next();
  CHECK(window.came({4, 4}, 4));
  CHECK(window.good() == 0);
  CHECK(window.came({0, 4}, 4));
  CHECK(window.good() == 8);
}

TEST_CASE("an answer that falls short ends the questions, and what came before it counts") {
  fetch_window window({0, 12}, 4, 2);
  window.next();
  window.next();
  CHECK(window.came({0, 4}, 3));
  CHECK_FALSE(window.next());
  CHECK_FALSE(window.over());
  // Behind the gap it is of no use.
  CHECK(window.came({4, 4}, 4));
  CHECK(window.over());
  CHECK(window.good() == 3);
}

TEST_CASE("a question without an answer ends the questions") {
  fetch_window window({0, 12}, 4, 2);
  window.next();
  window.next();
  CHECK(window.came({0, 4}, 4));
  CHECK(window.failed({4, 4}));
  CHECK_FALSE(window.next());
  CHECK(window.over());
  CHECK(window.good() == 4);
}

TEST_CASE("answers to no question, and second ones, are refused") {
  fetch_window window({0, 4}, 4, 1);
  CHECK_FALSE(window.came({0, 4}, 4));
  window.next();
  CHECK_FALSE(window.came({0, 3}, 3));
  CHECK_FALSE(window.came({1, 4}, 4));
  CHECK(window.came({0, 4}, 4));
  CHECK_FALSE(window.came({0, 4}, 4));
  CHECK(window.good() == 4);
}

TEST_CASE("more than was asked for is not more") {
  fetch_window window({0, 4}, 4, 1);
  window.next();
  CHECK(window.came({0, 4}, 9));
  CHECK(window.good() == 4);
}
