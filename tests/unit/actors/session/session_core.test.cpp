#include "tests/unit/actors/session/core_harness.hpp"

using namespace godwit;

namespace {

using texts = std::vector<std::string>;
using states = std::vector<std::string>;

bool open(const result<letter<schema::MessageAccepted>>& answer) {
  return !answer && answer.error().reason == "open";
}

} // namespace

TEST_CASE("a message becomes a turn, and nothing is told before it is written") {
  core_harness world;
  world.log->hold();
  world.post("Hello");
  REQUIRE(world.make_prompt());
  CHECK(world.log->waiting() == 1);
  CHECK(open(world.answers[0]));
  CHECK(world.seen.empty());
  CHECK(world.generations.empty());

  world.log->release(1);
  REQUIRE(world.answers[0]);
  CHECK(world.answers[0]->read().getTurn() == 1);
  CHECK(world.answers[0]->read().getSequence() == 3);
  CHECK(world.types() == texts{"message.accepted", "turn.started"});
  REQUIRE(world.generations.size() == 1);
  CHECK(world.generations[1].tokens == world.text->encode(toy_chat({{"user", "Hello"}})));

  // The first token starts a write; those that come meanwhile share the next.
  world.work(1);
  world.work(2);
  world.work(2);
  CHECK(world.log->waiting() == 1);
  CHECK(world.count("token") == 0);
  const auto credit = world.generations[1].credit;
  world.log->release(1);
  CHECK(world.count("token") == 1);
  CHECK(world.generations[1].credit == credit + 1);
  world.log->release(1);
  CHECK(world.count("token") == 2);
  CHECK(world.core->machine().tokens().size() == world.generations[1].tokens.size());
  CHECK(world.generations[1].credit == credit + 5);

  world.settle();
  CHECK(world.status(1) == "completed");
  CHECK(world.types().back() == "turn.completed");
  CHECK(answer_of(world) == golden_answer(world, 1, 12));
  CHECK(world.seen == world.replay());
}

TEST_CASE("the next turn goes on from the tokens of the last") {
  int whole = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    core_harness::options with;
    with.seed = seed;
    core_harness world(with);
    world.post("Hello");
    world.settle();
    const auto first = world.core->machine().tokens();
    world.post("Go on");
    REQUIRE(world.make_prompt());
    const auto& prompt = world.generations.rbegin()->second.tokens;
    const auto& answer = world.core->machine().find(1)->answer;
    CHECK(
      world.text->decode(prompt) == toy_chat({{"user", "Hello"}, {"assistant", answer}, {"user", "Go on"}}));
    // Bytes that are no character are shown as U+FFFD; from there on the tokens cannot stay.
    if (answer.find("\uFFFD") != std::string::npos)
      continue;
    ++whole;
    REQUIRE(prompt.size() > first.size());
    CHECK(std::equal(first.begin(), first.end(), prompt.begin()));
  }
  CHECK(whole >= 3);
}

TEST_CASE("a stop string ends the turn before it, and the worker is told") {
  // The toy model says " the" often enough with this seed.
  core_harness::options with;
  with.stops = {" bi"};
  with.max_tokens = 400;
  with.seed = 3;
  core_harness world(with);
  world.post("Hello");
  world.settle();
  const auto& turn = *world.core->machine().find(1);
  REQUIRE(world.text->decode(answer_of(world)).find(" bi") != std::string::npos);
  CHECK(turn.now == session_turn::state::completed);
  CHECK(turn.answer.find(" bi") == std::string::npos);
  CHECK(answer_of(world).back() == toy_text::first_word + 1);
  CHECK(world.abandoned == std::vector<schema::EndCause>{schema::EndCause::STOP_SEQUENCE});
  std::string shown;
  for (const auto& event : world.seen)
    if (event.type == "token") {
      const auto begin = event.data.find("\"text\":\"") + 8;
      shown += event.data.substr(begin, event.data.find("\",\"tokens\"") - begin);
    }
  CHECK(shown == turn.answer);
}

TEST_CASE("a cancel is written, ends the turn once, and tells the true state when asked again") {
  core_harness world;
  world.post("Hello");
  world.make_prompt();
  world.work(3);
  world.log->hold();
  world.cancel();
  CHECK(world.states.empty());
  CHECK(world.abandoned.empty());
  world.log->resume();
  CHECK(world.states == states{"cancelled"});
  CHECK(world.abandoned == std::vector<schema::EndCause>{schema::EndCause::CANCELLED});
  world.cancel();
  world.cancel(1);
  world.cancel(7);
  CHECK(world.states == states{"cancelled", "cancelled", "cancelled", "not_found"});
  world.restart();
  world.settle();
  CHECK(world.status(1) == "cancelled");
  CHECK(world.count("turn.cancelled") == 1);
  CHECK(world.count("turn.completed") == 0);
}

TEST_CASE("a cancel that comes while the end is being written finds the turn completed") {
  core_harness world;
  world.post("Hello");
  world.make_prompt();
  while (!world.generations[1].ended) {
    world.log->resume();
    world.log->hold();
    world.work(1);
  }
  world.cancel();
  world.log->resume();
  CHECK(world.states == states{"completed"});
  CHECK(world.count("turn.completed") == 1);
  CHECK(world.count("turn.cancelled") == 0);
}

TEST_CASE("a cancel that comes before the last tokens are written wins") {
  core_harness world;
  world.post("Hello");
  world.make_prompt();
  world.log->hold();
  world.work(1);
  while (world.work(5) > 0) {
  }
  world.cancel();
  world.log->resume();
  CHECK(world.states == states{"cancelled"});
  CHECK(world.count("turn.completed") == 0);
  CHECK(world.core->machine().tokens().size() == world.core->machine().prompt_length() + 1);
}

TEST_CASE("messages queue behind the running turn, in order") {
  core_harness world;
  for (const auto* text : {"one", "two", "three"})
    world.post(text);
  world.settle();
  CHECK(world.core->machine().turns().size() == 3);
  for (turn_number turn = 1; turn <= 3; ++turn)
    CHECK(world.status(turn) == "completed");
  CHECK(world.core->machine().find(3)->message == "three");
  CHECK(world.seen == world.replay());
}

TEST_CASE("too many queued messages are refused, and so are messages under reject") {
  core_harness::options with;
  with.limits.waiting_turns = 2;
  core_harness world(with);
  world.post("one");
  world.make_prompt();
  for (const auto* text : {"two", "three", "four"})
    world.post(text);
  CHECK(world.answers[2]);
  REQUIRE(!world.answers[3]);
  CHECK(world.answers[3].error().code == errc::overloaded);

  with.busy = schema::OnBusy::REJECT;
  core_harness strict(with);
  strict.post("one");
  strict.make_prompt();
  strict.post("two");
  REQUIRE(!strict.answers[1]);
  CHECK(strict.answers[1].error().code == errc::conflict);
  CHECK(strict.answers[1].error().reason == "turn_running");
}

TEST_CASE("an interrupting message ends the running turn with its own cause") {
  core_harness::options with;
  with.busy = schema::OnBusy::INTERRUPT;
  core_harness world(with);
  world.post("one");
  world.make_prompt();
  world.work(2);
  world.post("two");
  CHECK(world.abandoned == std::vector<schema::EndCause>{schema::EndCause::INTERRUPTED});
  CHECK(world.status(1) == "cancelled");
  CHECK(world.status(2) == "running");
  world.settle();
  CHECK(world.status(2) == "completed");
  CHECK(world.count("turn.cancelled") == 1);
}

TEST_CASE("a queued turn can be cancelled by its number") {
  core_harness world;
  world.post("one");
  world.make_prompt();
  world.post("two");
  world.post("three");
  world.cancel(2);
  world.settle();
  CHECK(world.states == states{"cancelled"});
  CHECK(world.status(1) == "completed");
  CHECK(world.status(2) == "cancelled");
  CHECK(world.status(3) == "completed");
}

TEST_CASE(
  "a prompt that does not fit is refused before it is accepted, or fails its turn if it had to wait") {
  core_harness::options with;
  with.context = 60;
  with.max_tokens = 4;
  core_harness world(with);
  const std::string big(80, 'x');
  world.post(big);
  world.settle();
  REQUIRE(!world.answers[0]);
  CHECK(world.answers[0].error().code == errc::invalid_argument);
  CHECK(world.answers[0].error().reason == "context_length_exceeded");
  CHECK(world.answers[0].error().message.find(" 60") != std::string::npos);
  const auto length = world.text->encode(toy_chat({{"user", big}})).size();
  CHECK(world.answers[0].error().message.find(std::to_string(length)) != std::string::npos);
  CHECK(world.core->machine().turns().empty());

  world.post("Hello");
  world.make_prompt();
  world.post(big);
  world.post("Hello");
  world.settle();
  CHECK(world.status(1) == "completed");
  CHECK(world.status(2) == "failed");
  CHECK(world.status(3) == "completed");
}

TEST_CASE("a message that no record can hold is refused before it is rendered") {
  core_harness world;
  world.post(std::string(journal::max_record_bytes, 'x'));
  CHECK(world.prompts.empty());
  REQUIRE(!world.answers[0]);
  CHECK(world.answers[0].error().code == errc::too_large);
  CHECK(world.answers[0].error().param == "content");
}

TEST_CASE("the answer ends where the context does") {
  core_harness::options with;
  with.context = 48;
  with.max_tokens = 0;
  with.seed = 4;
  core_harness world(with);
  world.post("Hello");
  world.settle();
  CHECK(world.status(1) == "completed");
  CHECK(world.core->machine().tokens().size() <= 48);
}

TEST_CASE("an idle session is claimed only when it has something to write") {
  core_harness world;
  world.post("Hello");
  world.settle();
  const auto sequence = world.core->machine().sequence();
  world.restart();
  CHECK(world.core->machine().sequence() == sequence);
  CHECK(world.seen == world.replay());
  world.post("Go on");
  world.settle();
  CHECK(world.core->machine().order().epoch() == 2);
  CHECK(world.count("session.recovering") == 0);
  CHECK(world.seen == world.replay());
}

TEST_CASE("a closed session has ended all its turns and takes no more") {
  core_harness world;
  for (const auto* text : {"one", "two", "three"}) {
    world.post(text);
    world.make_prompt();
  }
  world.work(1);
  std::string state;
  world.core->close("deleted",
    [&](const result<letter<schema::SessionInfo>>& info) { state = info->read().getStatus().cStr(); });
  CHECK(state == "closed");
  CHECK(world.count("turn.cancelled") == 3);
  CHECK(world.count("turn.started") == 1);
  CHECK(!world.disk->sessions.at(world.id).head.running);
  world.post("four");
  CHECK(world.answers[3].error().reason == "session_closed");
}

TEST_CASE("a session whose time is over closes itself") {
  core_harness::options with;
  with.ttl_s = 60;
  core_harness world(with);
  CHECK(world.wake == 60'000);
  world.pass(59'999);
  CHECK(!world.core->machine().closed());
  world.pass(1);
  CHECK(world.core->machine().closed());
  world.post("Hello");
  CHECK(world.answers[0].error().reason == "session_closed");
}

TEST_CASE("draining waits for the running turn and leaves the queue to the next start") {
  core_harness world;
  world.post("one");
  world.make_prompt();
  world.post("two");
  bool drained = false;
  world.core->drain([&] { drained = true; });
  CHECK(!drained);
  world.post("three");
  CHECK(world.answers[2].error().code == errc::draining);
  world.settle();
  CHECK(drained);
  CHECK(world.status(1) == "completed");
  CHECK(world.status(2) == "running");
  CHECK(world.disk->sessions.at(world.id).head.running);
  world.restart();
  world.settle();
  CHECK(world.status(2) == "completed");
}

TEST_CASE("a session that is stopped leaves its turn as it is") {
  core_harness world;
  world.post("one");
  world.make_prompt();
  world.work(2);
  const auto sequence = world.core->machine().sequence();
  world.core->stop();
  CHECK(world.abandoned == std::vector<schema::EndCause>{schema::EndCause::DRAINING});
  CHECK(world.disk->sessions.at(world.id).records.size() == sequence);
  world.restart();
  world.settle();
  CHECK(world.status(1) == "completed");
  CHECK(answer_of(world) == golden_answer(world, 1, 12));
}

TEST_CASE("the number of calls that wait is bounded") {
  core_harness::options with;
  with.limits.waiting_commands = 3;
  core_harness world(with);
  world.log->hold();
  for (int i = 0; i < 5; ++i)
    world.post("Hello");
  CHECK(open(world.answers[2]));
  CHECK(world.answers[3].error().code == errc::overloaded);
  CHECK(world.answers[4].error().code == errc::overloaded);
}
