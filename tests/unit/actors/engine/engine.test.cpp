#include "tests/unit/actors/engine/test_engine.hpp"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace godwit;
using namespace godwit::test;
using schema::FinishReason;

TEST_CASE("a request gets the tokens of the definition, in order, and one end") {
  test_engine engine;
  const ask what{.request = 7, .tokens = prompt_of(50, 1), .max_tokens = 30, .seed = 5};
  CHECK_FALSE(engine.request(what));
  const auto& got = engine.box[7];
  CHECK(got.tokens == what.answer(engine.longest));
  CHECK(got.finals == 1);
  CHECK(got.finish == FinishReason::LENGTH);
  CHECK(got.prompt_tokens == 50);
  CHECK(got.cached_tokens == 0);
  for (std::size_t i = 0; i < got.positions.size(); ++i)
    CHECK(got.positions[i] == 50 + i);
}

TEST_CASE("the pace of a stream is told: its first token once, and each that follows") {
  struct counting final : stream_observer {
    void first_token(std::chrono::nanoseconds) override { ++first; }
    void next_token(std::chrono::nanoseconds) override { ++next; }
    int first = 0;
    int next = 0;
  };
  const auto told = std::make_shared<counting>();
  engine_options options;
  options.observer = told;
  test_engine engine(options);
  engine.request({.request = 1, .tokens = prompt_of(50, 1), .max_tokens = 30});
  engine.request({.request = 2, .tokens = prompt_of(5, 1), .max_tokens = 1});
  CHECK(told->first == 2);
  CHECK(told->next == 29);
}

TEST_CASE("an end token ends a request and is part of it, unless it is to be ignored") {
  test_engine engine;
  // The end token comes within 500 tokens for nearly every seed.
  ask what{.request = 1, .tokens = prompt_of(5, 3), .max_tokens = 500, .seed = 2, .ignore_end = false};
  engine.request(what);
  const auto& got = engine.box[1];
  CHECK(got.tokens == what.answer(engine.longest));
  REQUIRE(got.finish == FinishReason::STOP);
  CHECK(got.tokens.back() == 0);

  what.request = 2;
  what.ignore_end = true;
  engine.request(what);
  CHECK(engine.box[2].tokens.size() > got.tokens.size());
}

TEST_CASE("a stop token of the request ends it") {
  test_engine engine;
  ask what{.request = 1, .tokens = prompt_of(5, 3), .max_tokens = 40};
  const auto free = what.answer(engine.longest);
  what.stops = {free[10]};
  engine.request(what);
  const auto first = std::find(free.begin(), free.end(), free[10]);
  CHECK(engine.box[1].tokens == std::vector<token_id>(free.begin(), first + 1));
  CHECK(engine.box[1].finish == FinishReason::STOP);
}

TEST_CASE("a sequence ends when the model's context is full") {
  auto shape = fake_model::small_shape();
  shape.context = 64;
  test_engine engine({}, shape);
  engine.request({.request = 1, .tokens = prompt_of(60, 1), .max_tokens = 100});
  CHECK(engine.box[1].tokens.size() == 4);
  CHECK(engine.box[1].finish == FinishReason::LENGTH);
}

TEST_CASE("a request that asks for nothing more ends at once without a step") {
  test_engine engine;
  CHECK_FALSE(engine.request({.request = 1, .tokens = prompt_of(20, 1), .max_tokens = 0}));
  CHECK(engine.box[1].finals == 1);
  CHECK(engine.box[1].finish == FinishReason::LENGTH);
  CHECK(engine.log->steps == 0);
}

TEST_CASE(
  "a request that goes on after tokens that were released before gets the same tokens as without the break") {
  test_engine engine;
  ask whole{.request = 1, .tokens = prompt_of(33, 1), .max_tokens = 30, .seed = 9};
  const auto answer = whole.answer(engine.longest);
  ask rest = whole;
  rest.prompt_length = 33;
  rest.tokens.insert(rest.tokens.end(), answer.begin(), answer.begin() + 12);
  rest.max_tokens = 18;
  engine.request(rest);
  CHECK(engine.box[1].tokens == std::vector<token_id>(answer.begin() + 12, answer.end()));
  CHECK(engine.box[1].positions.front() == 45);
  CHECK(engine.box[1].prompt_tokens == 33);
}

TEST_CASE("what can never run is refused before any work, with the numbers") {
  test_engine engine({.kv_tokens = 128});
  const auto refusal = engine.request({.request = 1, .tokens = prompt_of(128, 1)});
  REQUIRE(refusal);
  CHECK(refusal->code == errc::invalid_argument);
  CHECK(refusal->reason == "kv_capacity_exceeded");
  CHECK(refusal->message.find("129") != std::string::npos);
  CHECK(refusal->message.find("128") != std::string::npos);
  CHECK(engine.request({.request = 2, .tokens = prompt_of(600, 1)})->code == errc::invalid_argument);
  CHECK(engine.request({.request = 3, .tokens = {97}})->code == errc::invalid_argument);
  CHECK(engine.request({.request = 4, .tokens = {}})->code == errc::invalid_argument);
  CHECK(engine.request({.request = 5, .tokens = {1}, .temperature = -1})->param == "temperature");
  CHECK(engine.request({.request = 6, .tokens = {1}, .model = "other"})->code == errc::not_found);
  CHECK(engine.log->steps == 0);
  CHECK(engine.box.empty());
  // The longest one that fits runs.
  CHECK_FALSE(engine.request({.request = 7, .tokens = prompt_of(127, 1)}));
  CHECK(engine.box[7].tokens.size() == 1);
}

TEST_CASE("a stream without credit waits, sends what it may, and goes on with more") {
  test_engine engine;
  ask what{.request = 1, .tokens = prompt_of(20, 1), .max_tokens = 10, .credit = 0};
  engine.request(what);
  CHECK(engine.box[1].tokens.empty());
  const auto steps = engine.log->steps;
  engine.settle();
  CHECK(engine.log->steps == steps);
  engine.grant(1, 3);
  engine.settle();
  CHECK(engine.box[1].tokens.size() == 3);
  CHECK(engine.box[1].finals == 0);
  engine.grant(1, 100);
  engine.settle();
  CHECK(engine.box[1].tokens == what.answer(engine.longest));
  CHECK(engine.box[1].finals == 1);
}

TEST_CASE(
  "a cancel ends a request once, in the queue, in its prompt and in its answer, and gives the pages back") {
  const auto when = GENERATE(0, 1, 4, 9, 15, 22, 30, 60, 100);
  test_engine engine({.budget = 16, .chunk = 16});
  const ask what{.request = 1, .tokens = prompt_of(100, 1), .max_tokens = 300};
  engine.post(what);
  for (int i = 0; i < when && engine.scheduler.has_job(); ++i)
    engine.scheduler.run_once();
  engine.cancel({1});
  engine.cancel({1});
  engine.settle();
  const auto answer = what.answer(engine.longest);
  const auto& got = engine.box[1];
  if (when > 0) {
    CHECK(got.finals == 1);
    CHECK(got.finish == FinishReason::CANCELLED);
  }
  CHECK(std::equal(got.tokens.begin(), got.tokens.end(), answer.begin()));
  CHECK_FALSE(got.after_final);
  CHECK(engine.all.counters->sequences == 0);
  CHECK(engine.reclaimable() == engine.all.kv_blocks);
}

TEST_CASE("the cause of an end is told: a drain is not a cancel") {
  test_engine engine;
  engine.request({.request = 1, .tokens = prompt_of(10, 1), .credit = 1});
  engine.cancel({1}, schema::EndCause::DRAINING);
  engine.settle();
  CHECK(engine.box[1].finish == FinishReason::FAILED);
  CHECK(engine.box[1].code == errc::draining);
}

TEST_CASE("a group ends at once") {
  test_engine engine;
  for (request_id id = 1; id <= 5; ++id)
    engine.request(
      {.request = id, .tokens = prompt_of(40, 1), .seed = id, .credit = 2, .group = id <= 4 ? 8U : 9U});
  engine.cancel({}, schema::EndCause::CANCELLED, 8);
  engine.settle();
  for (request_id id = 1; id <= 4; ++id)
    CHECK(engine.box[id].finish == FinishReason::CANCELLED);
  CHECK(engine.box[5].finals == 0);
  CHECK(engine.all.counters->sequences == 1);
}

TEST_CASE("a group that is cancelled runs no step after those that began while the word was on its way") {
  const auto when = GENERATE(3, 8, 12, 20, 35, 60, 90);
  test_engine engine({.cache_share = 0, .budget = 32, .chunk = 16});
  for (request_id id = 1; id <= 6; ++id)
    engine.post({.request = id,
      .tokens = prompt_of(60, static_cast<std::uint32_t>(id)),
      .max_tokens = 300,
      .group = 8});
  for (int i = 0; i < when; ++i)
    engine.scheduler.run_once();
  const auto steps = engine.log->steps;
  engine.cancel({}, schema::EndCause::CANCELLED, 8);
  engine.settle();
  // From the router to the device it takes as many turns of this scheduler as two steps do.
  CHECK(engine.log->steps <= steps + 2);
  CHECK(engine.all.counters->sequences == 0);
  CHECK(engine.all.counters->free_blocks == engine.all.kv_blocks);
}

TEST_CASE("once its worker has taken the cancel of a group, no step begins with a sequence of it") {
  const auto seed = GENERATE(range(0U, 40U));
  std::mt19937 dice(seed);
  // Some of the group are in the queue, some in their prompts, some answer, some wait for pages that others
  // took.
  test_engine engine(
    {.kv_tokens = 512, .cache_share = seed % 2 == 0 ? 0.0 : 1.0, .budget = 32, .chunk = 16, .prompts = 3});
  const auto& running = engine.all.counters->sequences;
  std::uint64_t held = 0;
  engine.log->before_step = [&] {
    if (engine.all.recalled->added() == 0)
      return;
    held = std::max<std::uint64_t>(held, running);
  };
  for (request_id id = 1; id <= 6; ++id)
    engine.post({.request = id,
      .tokens = prompt_of(20 + 15 * id, static_cast<std::uint32_t>(id)),
      .max_tokens = 300,
      .group = id == 1 ? 9U : 8U});
  for (auto turns = dice() % 400; turns > 0; --turns)
    engine.run_any(dice);
  engine.cancel({}, schema::EndCause::CANCELLED, 8);
  // All of them take the word in any order.
  for (int turns = 0; turns < 300; ++turns)
    engine.run_any(dice);
  CHECK(held <= 1);
  engine.settle();
  for (request_id id = 2; id <= 6; ++id)
    CHECK(engine.box[id].finals <= 1);
  CHECK(engine.box[1].finish == FinishReason::LENGTH);
  CHECK(running == 0);
  CHECK(engine.reclaimable() == engine.all.kv_blocks);
}

TEST_CASE("a consumer that dies has its requests cancelled and its pages freed") {
  test_engine engine;
  auto mortal = engine.spawn_sink();
  engine.post({.request = 1, .tokens = prompt_of(40, 1), .credit = 2}, mortal);
  engine.settle();
  CHECK(engine.all.counters->sequences == 1);
  CHECK(engine.reclaimable() < engine.all.kv_blocks);
  caf::anon_send_exit(mortal, caf::exit_reason::kill);
  engine.settle();
  CHECK(engine.all.counters->sequences == 0);
  CHECK(engine.all.counters->streams == 0);
  CHECK(engine.reclaimable() == engine.all.kv_blocks);
  // Nobody but the index holds those that it knows.
  engine.evict_all();
  CHECK(engine.all.counters->free_blocks == engine.all.kv_blocks);
}

TEST_CASE("the second of two equal prompts computes only what no full block holds") {
  test_engine engine;
  engine.request({.request = 1, .tokens = prompt_of(100, 1), .max_tokens = 1});
  CHECK(engine.log->tokens == 100);
  engine.request({.request = 2, .tokens = prompt_of(100, 1), .max_tokens = 1, .seed = 1});
  CHECK(engine.log->tokens == 104);
  CHECK(engine.box[2].cached_tokens == 96);
  // The logits of the last token are wanted, so that a prompt of whole blocks computes its last block again.
  auto whole = prompt_of(100, 1);
  whole.resize(96);
  engine.request({.request = 3, .tokens = whole, .max_tokens = 1});
  CHECK(engine.log->tokens == 120);
  CHECK(engine.box[3].cached_tokens == 80);
}

TEST_CASE("the answer of one turn is found by the next one") {
  test_engine engine;
  ask first{.request = 1, .tokens = prompt_of(40, 1), .max_tokens = 30};
  engine.request(first);
  ask second = first;
  second.request = 2;
  const auto& answer = engine.box[1].tokens;
  second.tokens.insert(second.tokens.end(), answer.begin(), answer.end());
  second.tokens.push_back(5);
  engine.request(second);
  // 69 positions were computed, the last token never was.
  CHECK(engine.box[2].cached_tokens == 64);
}

TEST_CASE("what a thrown-out prompt had computed itself is not told as cached") {
  test_engine engine({.kv_tokens = 512, .budget = 16, .chunk = 16});
  engine.request({.request = 1, .tokens = prompt_of(40, 1), .max_tokens = 1});
  // Two blocks of it are found; before it is done a more urgent one takes its pages.
  engine.post({.request = 2, .tokens = prompt_of(40, 1), .max_tokens = 1});
  auto longer = prompt_of(40, 1);
  const auto more = prompt_of(300, 5);
  longer.insert(longer.end(), more.begin(), more.end());
  engine.post({.request = 3, .tokens = longer, .max_tokens = 1});
  const auto computed = engine.log->tokens;
  while (engine.log->tokens < computed + 100)
    engine.scheduler.run_once();
  engine.post({.request = 4, .tokens = prompt_of(250, 6), .max_tokens = 1, .priority = 1});
  engine.settle();
  CHECK(engine.all.counters->preemptions == 1);
  // It found more the second time, of which the rest was its own work.
  CHECK(engine.all.counters->found_tokens > 3 * 32);
  CHECK(engine.box[3].cached_tokens == 32);
  CHECK(engine.box[3].finals == 1);
}

TEST_CASE("two tenants never share") {
  test_engine engine;
  engine.request({.request = 1, .tokens = prompt_of(100, 1), .max_tokens = 1, .tenant = "a"});
  engine.request({.request = 2, .tokens = prompt_of(100, 1), .max_tokens = 1, .tenant = "b"});
  CHECK(engine.box[2].cached_tokens == 0);
  CHECK(engine.log->tokens == 200);
}

TEST_CASE("eight requests with one prompt at the same time compute it once") {
  test_engine engine({.budget = 64, .chunk = 64});
  for (request_id id = 1; id <= 8; ++id)
    engine.post({.request = id, .tokens = prompt_of(200, 1), .max_tokens = 1, .seed = id});
  engine.settle();
  CHECK(engine.log->tokens <= 200 + 7 * 8);
  for (request_id id = 2; id <= 8; ++id)
    CHECK(engine.box[id].cached_tokens == 192);
}

TEST_CASE("a long prompt does not stop running streams for more than one chunk") {
  test_engine engine({.budget = 128, .chunk = 32});
  for (request_id id = 1; id <= 3; ++id)
    engine.post({.request = id, .tokens = prompt_of(10, static_cast<std::uint32_t>(id)), .max_tokens = 400});
  while (engine.box[3].tokens.size() < 3)
    engine.scheduler.run_once();
  const auto before = engine.log->chunks.size();
  engine.post({.request = 9, .tokens = prompt_of(400, 9), .max_tokens = 1});
  while (engine.box[9].tokens.empty())
    engine.scheduler.run_once();
  std::size_t beside = 0;
  for (auto i = before; i < engine.log->chunks.size(); ++i) {
    const auto& step = engine.log->chunks[i];
    // All three streams are in every step, and at most a chunk of the prompt.
    REQUIRE(step.size() >= 3);
    CHECK((step[0] == 1 && step[1] == 1 && step[2] == 1));
    if (step.size() == 4) {
      CHECK(step[3] <= 32);
      ++beside;
    }
  }
  CHECK(beside == 13);
}

TEST_CASE("a short prompt is not behind a long one") {
  test_engine engine({.budget = 32, .chunk = 32});
  engine.post({.request = 1, .tokens = prompt_of(500, 1), .max_tokens = 1});
  engine.post({.request = 2, .tokens = prompt_of(20, 2), .max_tokens = 1});
  while (engine.box[2].tokens.empty())
    engine.scheduler.run_once();
  CHECK(engine.box[1].tokens.empty());
  engine.settle();
  CHECK(engine.box[1].tokens.size() == 1);
}

TEST_CASE("a full queue refuses with overloaded") {
  test_engine engine({.queue = 2, .sequences = 1});
  CHECK_FALSE(engine.request({.request = 1, .tokens = prompt_of(10, 1), .credit = 1}));
  CHECK_FALSE(engine.request({.request = 2, .tokens = prompt_of(10, 2)}));
  CHECK_FALSE(engine.request({.request = 3, .tokens = prompt_of(10, 3)}));
  CHECK(engine.request({.request = 4, .tokens = prompt_of(10, 4)})->code == errc::overloaded);
  // The refused one left nothing behind.
  engine.cancel({1});
  engine.settle();
  CHECK(engine.box[2].finals == 1);
  CHECK(engine.box[3].finals == 1);
  CHECK(engine.box.count(4) == 0);
  CHECK_FALSE(engine.request({.request = 4, .tokens = prompt_of(10, 4)}));
}

TEST_CASE("a drain lets running requests finish, refuses new ones, and answers at the end") {
  test_engine engine;
  engine.request({.request = 1, .tokens = prompt_of(10, 1), .max_tokens = 20, .credit = 5});
  caf::scoped_actor self{engine.system};
  auto handle = self->request(engine.all.router, std::chrono::seconds(5), drain_atom::value);
  engine.settle();
  CHECK(engine.request({.request = 2, .tokens = prompt_of(10, 1)})->code == errc::draining);
  CHECK(engine.box[1].finals == 0);
  engine.grant(1, 100);
  engine.settle();
  CHECK(engine.box[1].finals == 1);
  bool drained = false;
  handle.receive([&](const letter<schema::Drained>& mail) { drained = mail.read().getRemaining() == 0; },
    [](const caf::error&) { FAIL(); });
  CHECK(drained);
}

TEST_CASE("a stop ends every request with the cause") {
  test_engine engine;
  engine.request({.request = 1, .tokens = prompt_of(10, 1), .credit = 1});
  caf::anon_send(engine.all.router, stop_atom::value);
  engine.settle();
  CHECK(engine.box[1].finals == 1);
  CHECK(engine.box[1].code == errc::draining);
}

TEST_CASE("a device that throws fails the requests of that step only") {
  test_engine engine;
  int left = 5;
  engine.log->before_step = [&] {
    if (--left == 0)
      throw std::runtime_error("boom");
  };
  engine.request({.request = 1, .tokens = prompt_of(10, 1), .max_tokens = 20});
  CHECK(engine.box[1].finish == FinishReason::FAILED);
  CHECK(engine.box[1].code == errc::internal);
  CHECK(engine.box[1].tokens.size() == 4);
  CHECK(engine.all.counters->sequences == 0);
  CHECK_FALSE(engine.request({.request = 2, .tokens = prompt_of(10, 1), .max_tokens = 20}));
  CHECK(engine.box[2].finish == FinishReason::LENGTH);
}

TEST_CASE("when a part of the worker dies, every request ends once and new ones are unavailable") {
  const auto which = GENERATE(0, 1, 2, 3);
  test_engine engine;
  for (request_id id = 1; id <= 3; ++id)
    engine.request({.request = id, .tokens = prompt_of(10, 1), .credit = 1});
  const caf::actor parts[] = {caf::actor_cast<caf::actor>(engine.all.device),
    caf::actor_cast<caf::actor>(engine.all.decode), caf::actor_cast<caf::actor>(engine.all.prefill),
    caf::actor_cast<caf::actor>(engine.all.cache)};
  caf::anon_send_exit(parts[which], caf::exit_reason::kill);
  engine.settle();
  for (request_id id = 1; id <= 3; ++id) {
    CHECK(engine.box[id].finals == 1);
    CHECK(engine.box[id].finish == FinishReason::FAILED);
  }
  CHECK(engine.request({.request = 4, .tokens = prompt_of(10, 1)})->code == errc::unavailable);
}

TEST_CASE("the router tells why a request is where it is") {
  test_engine engine;
  engine.request({.request = 1, .tokens = prompt_of(32, 1)});
  caf::scoped_actor self{engine.system};
  auto handle = self->request(engine.all.router, std::chrono::seconds(5),
    letter<schema::RouteExplainRequest>::make(
      [](schema::RouteExplainRequest::Builder b) { b.setRequest(1); }));
  engine.settle();
  handle.receive(
    [](const letter<schema::GenerateAccepted>& mail) {
      CHECK(std::string(mail.read().getWorker().cStr()) == "local");
      CHECK(std::string(mail.read().getReason().cStr()).find("prefill 2.00") != std::string::npos);
    },
    [](const caf::error&) { FAIL(); });
}
