// A session among crashes, failing workers and failing disks.

#include "tests/unit/actors/session/core_harness.hpp"

using namespace godwit;

TEST_CASE("a key gives the stored answer, during the turn, after it, and after a crash") {
  core_harness world;
  world.post("Hello", "k");
  world.settle();
  REQUIRE(world.answers[0]);
  world.post("Hello", "k");
  world.restart();
  world.post("Hello", "k");
  world.post("Other", "k");
  world.settle();
  for (const std::size_t i : {1U, 2U}) {
    REQUIRE(world.answers[i]);
    CHECK(world.answers[i]->read().getTurn() == 1);
    CHECK(world.answers[i]->read().getReplayed());
    CHECK(world.answers[i]->read().getSequence() == world.answers[0]->read().getSequence());
    CHECK(std::string(world.answers[i]->read().getEventBefore().cStr())
          == world.answers[0]->read().getEventBefore().cStr());
  }
  REQUIRE(!world.answers[3]);
  CHECK(world.answers[3].error().code == errc::unprocessable);
  CHECK(world.core->machine().turns().size() == 1);
}

TEST_CASE("a crash between the write and the answer leaves one message for the client's second try") {
  core_harness world;
  world.post("Hello", "k");
  world.log->hold();
  world.make_prompt();
  world.log->release(1); // written and answered, but the answer is lost with the node
  world.restart();
  world.post("Hello", "k");
  world.settle();
  CHECK(world.answers[1]->read().getReplayed());
  CHECK(world.core->machine().turns().size() == 1);
  CHECK(world.count("turn.completed") == 1);
}

TEST_CASE("a write that arrives when its node is gone, and the next one has been read, is found by its key") {
  core_harness world;
  // The client's first try is on its way to the journal when its node dies: another handle of the disk has
  // it.
  const auto late = std::make_shared<memory_journal>(world.disk);
  const auto mail = letter<schema::PostMessage>::make([](schema::PostMessage::Builder to) {
    to.setContent("Hello");
    to.setIdempotencyKey("k");
    to.setBodyHash(capnp::Data::Reader(reinterpret_cast<const capnp::byte*>("Hello"), 5));
  });
  const auto head = world.disk->sessions.at(world.id).head;
  const auto prompt = world.text->encode(toy_chat({{"user", "Hello"}}));
  std::vector<journal_record> records{accepted_record(1, mail.read(), 1)};
  for (auto& record : prompted_records(1, 0, prompt, 1))
    records.push_back(std::move(record));
  world.restart();
  bool written = false;
  late->append({world.id, head.sequence, head.epoch, std::move(records), true},
    [&](const result<sequence_number>& outcome) { written = outcome.has_value(); });
  REQUIRE(written);
  world.post("Hello", "k");
  world.settle();
  REQUIRE(world.answers[0]);
  CHECK(world.answers[0]->read().getTurn() == 1);
  CHECK(world.answers[0]->read().getReplayed());
  CHECK(world.core->machine().turns().size() == 1);
  CHECK(world.status(1) == "completed");
  CHECK(answer_of(world) == golden_answer(world, 1, 12));
}

TEST_CASE("a crash before the write leaves nothing") {
  core_harness world;
  world.log->hold();
  world.post("Hello", "k");
  world.make_prompt();
  world.restart();
  CHECK(world.core->machine().turns().empty());
  world.post("Hello", "k");
  world.settle();
  CHECK(!world.answers[1]->read().getReplayed());
  CHECK(world.status(1) == "completed");
}

TEST_CASE("a token that was sampled but not written comes again, and nobody saw it before") {
  core_harness::options with;
  with.seed = 5;
  core_harness world(with);
  world.post("Hello");
  world.make_prompt();
  world.work(2);
  world.log->hold();
  world.work(1);
  const auto lost_token = world.generations[1].tokens.back();
  const auto written = world.core->machine().tokens().size();
  world.restart();
  CHECK(world.core->machine().tokens().size() == written);
  world.settle();
  CHECK(world.core->machine().tokens()[written] == lost_token);
  CHECK(answer_of(world) == golden_answer(world, 5, 12));
  CHECK(world.count("session.recovering") == 1);
  CHECK(world.seen == world.replay());
}

TEST_CASE("a crash at the end of a turn still ends it once") {
  core_harness world;
  world.post("Hello");
  world.make_prompt();
  while (!world.generations[1].ended) {
    world.log->hold();
    world.work(1);
    if (!world.generations[1].ended)
      world.log->resume();
  }
  world.restart();
  world.settle();
  CHECK(world.count("turn.completed") == 1);
  CHECK(answer_of(world) == golden_answer(world, 1, 12));
}

TEST_CASE("a turn that is taken over again and again without a token fails and keeps its text") {
  core_harness world;
  world.post("Hello");
  world.make_prompt();
  world.work(3);
  const auto partial = world.core->machine().find(1)->answer;
  world.restart();
  CHECK(world.status(1) == "running");
  world.restart();
  CHECK(world.status(1) == "running");
  world.restart();
  CHECK(world.status(1) == "failed");
  CHECK(world.core->machine().find(1)->answer.starts_with(partial));
  CHECK(world.types().back() == "turn.failed");
  CHECK(world.seen.back().data.find("no_progress") != std::string::npos);
}

TEST_CASE("takeovers with progress between them are not counted") {
  core_harness::options with;
  with.max_tokens = 40;
  with.seed = 9;
  core_harness world(with);
  world.post("Hello");
  world.make_prompt();
  for (int i = 0; i < 8 && world.status(1) == "running"; ++i) {
    world.work(1);
    world.restart();
  }
  world.settle();
  CHECK(world.status(1) == "completed");
  CHECK(answer_of(world) == golden_answer(world, 9, 40));
}

TEST_CASE("a failed generation is tried again where it was, a few times") {
  core_harness world;
  world.post("Hello");
  world.make_prompt();
  world.work(2);
  world.fail_generation(errc::peer_lost);
  CHECK(world.generations.size() == 1);
  CHECK(world.wake == 100);
  world.pass(100);
  REQUIRE(world.generations.size() == 2);
  CHECK(world.generations[2].tokens == world.core->machine().tokens());
  world.fail_generation(errc::peer_lost);
  world.pass(1'000);
  CHECK(world.status(1) == "running");
  world.fail_generation(errc::peer_lost);
  CHECK(world.status(1) == "failed");
  CHECK(world.generations.size() == 3);
}

TEST_CASE("a busy mesh is waited for, but not for ever") {
  core_harness world;
  world.post("Hello");
  world.make_prompt();
  for (int i = 0; i < 6; ++i) {
    world.fail_generation(errc::overloaded);
    world.pass(5'000);
  }
  CHECK(world.status(1) == "running");
  world.work(1);
  for (int i = 0; i < 30; ++i) {
    CHECK(world.status(1) == "running");
    world.fail_generation(errc::overloaded);
    if (i < 24)
      world.pass(5'000);
    if (world.status(1) == "failed")
      break;
  }
  CHECK(world.status(1) == "failed");
}

TEST_CASE("a hopeless request is not tried again") {
  core_harness world;
  world.post("Hello");
  world.make_prompt();
  world.fail_generation(errc::invalid_argument);
  CHECK(world.status(1) == "failed");
  CHECK(world.generations.size() == 1);
}

TEST_CASE("a generation without tokens is given up by the clock, a slow disk is not its fault") {
  core_harness world;
  world.post("Hello");
  world.make_prompt();
  world.work(1);
  world.log->hold();
  world.work(1);
  world.pass(500'000);
  CHECK(world.abandoned.empty());
  world.log->resume();
  world.pass(119'000);
  CHECK(world.abandoned.empty());
  world.pass(1'000);
  CHECK(world.abandoned == std::vector<schema::EndCause>{schema::EndCause::DEADLINE});
  world.pass(200);
  CHECK(world.generations.size() == 2);
  world.settle();
  CHECK(world.status(1) == "completed");
  CHECK(answer_of(world) == golden_answer(world, 1, 12));
}

TEST_CASE("a worker that skips a token or sends without credit is not believed") {
  core_harness world;
  world.post("Hello");
  world.make_prompt();
  world.send(1, {world.core->machine().prompt_length() + 1, {1}});
  CHECK(world.abandoned.size() == 1);
  CHECK(world.count("token") == 0);
  world.pass(1'000);
  world.settle();
  CHECK(world.status(1) == "completed");
  CHECK(answer_of(world) == golden_answer(world, 1, 12));
}

TEST_CASE("tokens of a generation that was given up are not taken") {
  core_harness world;
  world.post("Hello");
  world.make_prompt();
  world.cancel();
  world.send(1, {world.core->machine().prompt_length(), {1}});
  CHECK(world.count("token") == 0);
}

TEST_CASE("what the disk refuses is not acknowledged, and goes on when it can") {
  core_harness world;
  world.log->fail_next(memory_journal::call::append, {errc::resource_exhausted, "the disk is full", "", ""});
  world.post("Hello");
  world.make_prompt();
  REQUIRE(!world.answers[0]);
  CHECK(world.answers[0].error().code == errc::resource_exhausted);
  CHECK(world.seen.empty());
  world.pass(200);
  world.post("Hello");
  world.make_prompt();
  CHECK(world.answers[1]);

  world.log->fail_next(memory_journal::call::append, {errc::io, "no", "", ""}, 3);
  world.work(2);
  CHECK(world.count("token") == 0);
  for (int i = 0; i < 6; ++i)
    world.pass(2'000);
  CHECK(world.count("token") == 1);
  world.settle();
  CHECK(answer_of(world) == golden_answer(world, 1, 12));
  CHECK(world.seen == world.replay());
}

TEST_CASE("an append whose answer was lost is looked up, not repeated") {
  core_harness world;
  const error lost{errc::deadline, "the journal took too long", "", ""};
  world.log->fail_next(memory_journal::call::append, lost, 1, memory_journal::outcome::stored);
  world.post("Hello", "k");
  world.make_prompt();
  REQUIRE(!world.answers[0]);
  CHECK(world.answers[0].error().code == errc::deadline);
  world.pass(200);
  CHECK(world.count("message.accepted") == 1);
  world.post("Hello", "k");
  REQUIRE(world.answers[1]);
  CHECK(world.answers[1]->read().getReplayed());

  world.log->fail_next(memory_journal::call::append, lost, 1, memory_journal::outcome::stored);
  world.work(2);
  world.pass(200);
  world.settle();
  CHECK(world.status(1) == "completed");
  CHECK(answer_of(world) == golden_answer(world, 1, 12));
  CHECK(world.seen == world.replay());
}

TEST_CASE("an owner that the journal refuses stops at once") {
  core_harness world;
  world.post("Hello");
  world.make_prompt();
  REQUIRE(world.log->claim(
    world.id, 1, node_name("other"), claimed_record({node_name("other"), "x", "toy-1"}, 2, 0)));
  world.work(1);
  CHECK(world.lost_with == std::vector<errc>{errc::stale_epoch});
  CHECK(world.count("token") == 0);
  CHECK(world.abandoned.size() == 1);
  world.post("again");
  CHECK(world.answers[1].error().code == errc::stale_epoch);
}

TEST_CASE("a generation of which router and worker are lost is begun again behind what is committed") {
  core_harness world;
  world.post("Hello");
  world.make_prompt();
  world.work(2);
  world.log->hold();
  world.work(1); // is being written
  world.orphan(1);
  CHECK(world.generations.size() == 1);
  world.log->resume();
  CHECK(world.count("token") == 2);
  world.pass(100);
  REQUIRE(world.generations.size() == 2);
  CHECK(world.generations[2].tokens == world.core->machine().tokens());
  CHECK(world.abandoned.empty());
  world.settle();
  CHECK(world.status(1) == "completed");
  CHECK(answer_of(world) == golden_answer(world, 1, 12));
  CHECK(world.seen == world.replay());
}

TEST_CASE("a generation that has ended is not lost afterwards, nor is one that was given up") {
  core_harness world;
  world.post("Hello");
  world.settle();
  world.core->orphaned(1);
  CHECK(world.status(1) == "completed");
  world.post("Go on");
  world.make_prompt();
  world.core->orphaned(1);
  world.pass(10'000);
  CHECK(world.generations.size() == 2);
  world.cancel();
  world.core->orphaned(2);
  CHECK(world.status(2) == "cancelled");
  CHECK(world.reports.empty());
}

TEST_CASE("a refusal is what the router says, also when the sink was let go before") {
  core_harness world;
  world.confirms = false;
  world.post("Hello");
  world.make_prompt();
  // Were it taken for a lost worker, three of them would be the end of the turn.
  for (request_id request = 1; request <= 8; ++request) {
    world.orphan(request);
    world.core->generating(request, tl::unexpected<error>(error{errc::unavailable, "no worker", "", ""}));
    world.pass(5'000);
    CHECK(world.status(1) == "running");
  }
  world.confirms = true;
  world.settle();
  CHECK(world.status(1) == "completed");
  CHECK(answer_of(world) == golden_answer(world, 1, 12));
}

TEST_CASE("a worker that is lost before the router's answer is known with the answer") {
  core_harness world;
  world.confirms = false;
  world.post("Hello");
  world.make_prompt();
  world.orphan(1);
  world.pass(1'000);
  CHECK(world.generations.size() == 1);
  world.confirms = true;
  world.core->generating(1, {});
  world.pass(100);
  CHECK(world.generations.size() == 2);
  world.settle();
  CHECK(answer_of(world) == golden_answer(world, 1, 12));
}

TEST_CASE("a mesh without a worker is waited for, an engine that falls with the turn is not for ever") {
  core_harness world;
  world.refusal = {errc::unavailable, "no worker runs", "", ""};
  world.post("Hello");
  world.make_prompt();
  for (int i = 0; i < 20; ++i)
    world.pass(5'000);
  CHECK(world.status(1) == "running");
  world.refusal.reset();
  world.pass(5'000);
  REQUIRE(world.generations.size() == 1);
  for (int i = 0; i < 3; ++i) {
    CHECK(world.status(1) == "running");
    world.fail_generation(errc::unavailable);
    world.pass(5'000);
  }
  CHECK(world.status(1) == "failed");
  CHECK(world.generations.size() == 3);
}

TEST_CASE("tries are counted from the last committed token, however long each takes") {
  core_harness::options with;
  with.max_tokens = 40;
  with.seed = 9;
  core_harness world(with);
  world.post("Hello");
  world.make_prompt();
  for (int i = 0; i < 12 && world.status(1) == "running"; ++i) {
    world.work(1);
    world.pass(100'000);
    world.fail_generation(errc::peer_lost);
    world.pass(10'000);
    world.fail_generation(errc::peer_lost);
    world.pass(10'000);
  }
  // Far more tries than are allowed without a token between them.
  CHECK(world.generations.size() > 8);
  world.settle();
  CHECK(world.status(1) == "completed");
  CHECK(answer_of(world) == golden_answer(world, 9, 40));
}
