#include "actors/router/router_state.hpp"

#include "messages/letter.hpp"

#include <catch2/catch.hpp>

using namespace godwit;

namespace {

worker_load worker(std::string name, std::uint32_t capacity = 10) {
  worker_load load;
  load.name = std::move(name);
  load.capacity = capacity;
  return load;
}

letter<schema::GenerateRequest> request_of(request_id id, unsigned tokens, std::uint64_t group = 0) {
  return letter<schema::GenerateRequest>::make([&](schema::GenerateRequest::Builder b) {
    b.setRequest(id);
    b.initTokens(tokens);
    b.setGroup(group);
    b.setModel("m");
  });
}

} // namespace

TEST_CASE("load is counted from placement to end") {
  router_state router("m", {worker("a"), worker("b")}, {});
  const auto first = *router.place(request_of(1, 100).read());
  CHECK(router.workers()[first].prefill_tokens == 100);
  // The other worker is cheaper now.
  CHECK(*router.place(request_of(2, 10).read()) == 1 - first);
  router.prefilled(1);
  router.prefilled(1);
  CHECK(router.workers()[first].prefill_tokens == 0);
  CHECK(router.workers()[first].decode_blocks == 7);
  router.forget(1);
  router.forget(1);
  router.forget(2);
  for (const auto& load : router.workers()) {
    CHECK(load.prefill_tokens == 0);
    CHECK(load.decode_blocks == 0);
    CHECK(load.requests == 0);
  }
}

TEST_CASE("another model, a known id, a drain and a full house are refused each in their way") {
  router_state router("m", {worker("a", 1)}, {});
  CHECK(
    router.place(letter<schema::GenerateRequest>::make([](auto b) { b.setModel("x"); }).read()).error().code
    == errc::not_found);
  CHECK(router.place(request_of(1, 1).read()));
  CHECK(router.place(request_of(1, 1).read()).error().code == errc::conflict);
  CHECK(router.place(request_of(2, 1).read()).error().code == errc::overloaded);
  router.drain();
  CHECK(router.place(request_of(2, 1).read()).error().code == errc::draining);
}

TEST_CASE("a group is all of its requests, by worker, and unknown ids are left out") {
  router_state router("m", {worker("a")}, {});
  for (request_id id = 1; id <= 4; ++id)
    REQUIRE(router.place(request_of(id, 1, id % 2).read()));
  const std::vector<request_id> named{2, 77};
  const auto out = router.expand(named, 1);
  REQUIRE(out.size() == 1);
  CHECK(out.at(0) == std::vector<request_id>{1, 2, 3});
  CHECK(router.expand({}, 0).empty());
}

TEST_CASE("a lost worker gets nothing more, and its requests are told") {
  router_state router("m", {worker("a")}, {});
  REQUIRE(router.place(request_of(1, 1).read()));
  CHECK(router.lose_worker(0) == std::vector<request_id>{1});
  CHECK(router.size() == 0);
  CHECK(router.place(request_of(2, 1).read()).error().code == errc::unavailable);
}

TEST_CASE("the last placements are explained, older ones are forgotten") {
  router_options options;
  options.explanations = 2;
  router_state router("m", {worker("a")}, options);
  for (request_id id = 1; id <= 3; ++id)
    REQUIRE(router.place(request_of(id, 16).read()));
  CHECK(router.explain(1) == nullptr);
  REQUIRE(router.explain(3) != nullptr);
  CHECK(router.explain(3)->worker == "a");
  CHECK(router.explain(3)->reason.find("prefill 3.00") != std::string::npos);
}
