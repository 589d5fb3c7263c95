#include "services/api/outbox.hpp"

#include <catch2/catch.hpp>

using namespace godwit;

TEST_CASE("one write is under way at a time and the rest follows in one") {
  outbox box(1);
  CHECK(box.idle());
  CHECK_FALSE(box.next());
  box.add("a");
  CHECK(box.next() == "a");
  box.add("b");
  box.add("c");
  CHECK(box.writing());
  CHECK_FALSE(box.next());
  box.written();
  CHECK(box.next() == "bc");
  CHECK_FALSE(box.idle());
  box.written();
  CHECK(box.idle());
}

TEST_CASE("credit comes back when the socket has taken the bytes, to whom it belongs") {
  outbox box(2);
  box.add("a", 0, 3);
  box.add("b", 1, 4);
  CHECK(box.earned(0) == 0);
  CHECK(box.next() == "ab");
  box.add("c", 0, 5);
  CHECK(box.earned(0) == 0);
  box.written();
  CHECK(box.earned(0) == 3);
  CHECK(box.earned(1) == 4);
  CHECK(box.earned(1) == 0);
  CHECK(box.next() == "c");
  box.written();
  CHECK(box.earned(0) == 5);
}

TEST_CASE("what makes no bytes earns its credit at once, unless bytes wait before it") {
  outbox box(1);
  box.add("", 0, 2);
  CHECK(box.earned(0) == 2);
  box.add("x", 0, 1);
  box.add("", 0, 2);
  CHECK(box.earned(0) == 0);
  CHECK(box.next());
  box.written();
  CHECK(box.earned(0) == 3);
}

TEST_CASE("credit of batches without bytes is not lost behind a write") {
  outbox box(1);
  box.add("x", 0, 1);
  CHECK(box.next());
  box.add("", 0, 2);
  box.written();
  CHECK(box.earned(0) == 3);
}
