// Prompts that one worker computes for another, from the router to the last token.

#include "tests/unit/actors/handover/two_engines.hpp"

#include <catch2/catch.hpp>

#include <thread>

using namespace godwit;
using namespace godwit::test;
using namespace std::chrono_literals;

namespace {

constexpr std::uint32_t longest = 512;

/// 200 tokens fill 12 blocks; 8 are left.
ask question(request_id id = 1, std::size_t tokens = 200, std::uint32_t salt = 5) {
  return {.request = id, .tokens = prompt_of(tokens, salt), .max_tokens = 20, .seed = 3};
}

void check_answer(const two_engines& pair, const ask& what) {
  const auto got = pair.box.find(what.request);
  REQUIRE(got != pair.box.end());
  CHECK(got->second.finals == 1);
  CHECK(got->second.finish == schema::FinishReason::LENGTH);
  CHECK(got->second.tokens == what.answer(longest));
  CHECK(got->second.prompt_tokens == what.tokens.size());
}

} // namespace

TEST_CASE("a long prompt is computed by the one, and the other computes what is behind its full blocks") {
  two_engines pair;
  const auto what = question();
  pair.post(what);
  pair.settle();
  check_answer(pair, what);
  // One row of the prompt node beyond the blocks; 8 of the prompt and 19 more here: the last token's row is
  // not needed.
  CHECK(pair.prompt_log->tokens == 193);
  CHECK(pair.stream_log->tokens == 8 + 19);
  CHECK(pair.asked == std::vector<std::string>{"prompts"});
  // As on one node: what was computed for the request is not cached.
  CHECK(pair.box[1].cached_tokens == 0);
  CHECK(pair.streams.handover->brought_blocks == 12);
  CHECK(pair.streams.handover->brought_prompts == 1);
  CHECK(pair.streams.handover->brought_bytes == 12 * fake_model::small_shape().kv.block_bytes());
  CHECK(pair.prompts.handover->given_blocks == 12);
  CHECK(pair.prompts.handover->taken == 1);
  CHECK(pair.script->fetches == 6);
  CHECK(pair.idle());
  CHECK(pair.all_free(pair.prompts));
  CHECK(pair.all_free(pair.streams));
}

TEST_CASE("the same prompt again is found here, and the next turn of a text is short") {
  two_engines pair;
  pair.post(question(1));
  pair.settle();
  pair.post(question(2));
  pair.settle();
  check_answer(pair, question(2));
  CHECK(pair.box[2].cached_tokens == 192);
  CHECK(pair.box[2].cached_host == 0);
  CHECK(pair.prompts.handover->taken == 1);
  CHECK(pair.streams.handover->short_prompts == 1);

  auto turn = question(3);
  const auto said = question(1).answer(longest);
  turn.tokens.insert(turn.tokens.end(), said.begin(), said.end());
  turn.tokens.insert(turn.tokens.end(), 30, 9);
  pair.post(turn);
  pair.settle();
  check_answer(pair, turn);
  // 219 tokens of the first turn have pages: 13 blocks.
  CHECK(pair.box[3].cached_tokens == 208);
  CHECK(pair.prompts.handover->taken == 1);
  CHECK(pair.idle());
}

TEST_CASE("a short prompt is nobody else's") {
  two_engines pair;
  const auto what = question(1, two_engines::min_tokens - 1);
  pair.post(what);
  pair.settle();
  check_answer(pair, what);
  CHECK(pair.asked.empty());
  CHECK(pair.prompt_log->tokens == 0);
}

TEST_CASE("what the prompt node had found is cached for the request, too") {
  two_engines pair;
  pair.post(question(1));
  pair.settle();
  REQUIRE(pair.all_free(pair.streams));
  pair.post(question(2));
  pair.settle();
  check_answer(pair, question(2));
  CHECK(pair.box[2].cached_tokens == 192);
  CHECK(pair.box[2].cached_host == 192);
  CHECK(pair.prompt_log->tokens == 193 + 1);
  // And half of it: the prompt node computes the rest.
  auto longer = question(3);
  longer.tokens.resize(150);
  const auto other = prompt_of(100, 6);
  longer.tokens.insert(longer.tokens.end(), other.begin(), other.end());
  REQUIRE(pair.all_free(pair.streams));
  pair.post(longer);
  pair.settle();
  check_answer(pair, longer);
  CHECK(pair.box[3].cached_tokens == 144);
  CHECK(pair.idle());
}

TEST_CASE("several prompts at once, and several of the same, all get their answers") {
  two_engines pair(2048);
  for (request_id id = 1; id <= 6; ++id)
    pair.post(question(id, 200 + id, id <= 3 ? 5 : static_cast<std::uint32_t>(id)));
  pair.settle();
  for (request_id id = 1; id <= 6; ++id)
    check_answer(pair, question(id, 200 + id, id <= 3 ? 5 : static_cast<std::uint32_t>(id)));
  CHECK(pair.idle());
  CHECK(pair.all_free(pair.prompts));
  CHECK(pair.all_free(pair.streams));
}

TEST_CASE("whatever goes wrong on the other node, the answer is the same") {
  two_engines pair;
  auto& counters = *pair.streams.handover;
  const auto what = question();
  std::uint32_t brought = 0;
  SECTION("it is not there") {
    pair.script->there = false;
    pair.post(what);
    pair.settle();
    CHECK(counters.refused == 1);
  }
  SECTION("it refuses") {
    pair.script->refusal = errc::overloaded;
    pair.post(what);
    pair.settle();
    CHECK(counters.refused == 1);
  }
  SECTION("it drains") {
    caf::anon_send(pair.prompts.desk, drain_atom::value);
    pair.post(what);
    pair.settle();
    CHECK(counters.refused == 1);
    CHECK(pair.prompts.handover->turned_away == 1);
  }
  SECTION("it is lost while it computes") {
    pair.script->refusal = errc::peer_lost;
    pair.post(what);
    pair.settle();
    CHECK(counters.lost == 1);
  }
  SECTION("its device dies while it computes") {
    pair.prompt_log->before_step = [] { throw std::runtime_error("a fault"); };
    pair.post(what);
    pair.settle();
    CHECK(counters.refused == 1);
    CHECK(pair.prompts.handover->open == 0);
  }
  SECTION("it does not answer") {
    pair.script->hangs_on_order = true;
    pair.post(what);
    pair.settle();
    CHECK(pair.box[1].tokens.empty());
    pair.pass(60s);
    CHECK(counters.late == 1);
    CHECK(pair.script->releases == 1);
  }
  SECTION("it is lost before the first block") {
    pair.script->fetches_left = 0;
    pair.post(what);
    pair.settle();
    CHECK(counters.lost == 1);
  }
  SECTION("it is lost in the middle of the blocks") {
    pair.script->fetches_left = 3;
    pair.post(what);
    pair.settle();
    CHECK(counters.lost == 1);
    brought = 6;
  }
  SECTION("it stops to answer in the middle of the blocks") {
    pair.script->fetches_left = 3;
    pair.script->hangs = true;
    pair.post(what);
    pair.settle();
    CHECK(pair.box[1].tokens.empty());
    pair.pass(5s);
    CHECK(counters.late == 1);
    brought = 6;
  }
  SECTION("a block is damaged") {
    pair.script->damage_at = 5;
    pair.post(what);
    pair.settle();
    CHECK(counters.damaged_blocks > 0);
    brought = 5;
  }
  SECTION("blocks are missing in an answer") {
    pair.script->fewer = 1;
    pair.post(what);
    pair.settle();
    CHECK(counters.damaged_blocks > 0);
    brought = 1;
  }
  check_answer(pair, what);
  CHECK(pair.box[1].cached_tokens == 0);
  CHECK(counters.brought_blocks == brought);
  CHECK(counters.brought_prompts == 0);
  CHECK(pair.stream_log->tokens == 200 - brought * page_tokens + 19);
  CHECK(pair.all_free(pair.streams));
  // What hangs in the test holds nothing here.
  CHECK(counters.waiting == 0);
}

TEST_CASE("a client that leaves at any moment leaves nothing behind, on neither node") {
  std::size_t jobs = 1;
  for (std::size_t after = 0; after < jobs; ++after) {
    two_engines pair;
    pair.post(question());
    std::size_t done = 0;
    for (; done < after && pair.scheduler.has_job(); ++done)
      pair.scheduler.run_once();
    const bool over = !pair.scheduler.has_job();
    pair.cancel(1);
    pair.settle();
    INFO("cancelled after " << after << " jobs");
    CHECK(pair.box[1].finals == 1);
    CHECK(pair.idle());
    CHECK(pair.all_free(pair.prompts));
    CHECK(pair.all_free(pair.streams));
    // The next one is served as if nothing had been.
    pair.post(question(2));
    pair.settle();
    check_answer(pair, question(2));
    jobs = over ? after : after + 2;
    REQUIRE(after < 2'000);
  }
}

TEST_CASE("a worker that ends has its prompts let go by the other node") {
  two_engines pair;
  pair.script->fetches_left = 2;
  pair.script->hangs = true;
  pair.post(question());
  pair.settle();
  CHECK(pair.prompts.handover->kept_blocks == 12);
  // As when its node is killed: it says nothing any more.
  caf::anon_send_exit(pair.streams.device, caf::exit_reason::kill);
  pair.settle();
  pair.streams.fetch = nullptr;
  pair.settle();
  CHECK(pair.prompts.handover->kept_blocks == 0);
  CHECK(pair.prompts.handover->open == 0);
  CHECK(pair.prompts.handover->released == 1);
}

TEST_CASE("blocks are kept for the time of the lease and not longer") {
  two_engines pair;
  caf::scoped_actor self{pair.system};
  const auto holder = pair.system.spawn([](common_actor::pointer me) -> common_actor::behavior_type {
    return {[](status_atom) { return letter<schema::ActorStatus>(); },
      [](drain_atom) { return letter<schema::Drained>(); }, [me](stop_atom) { me->quit(); }};
  });
  const auto tokens = prompt_of(33, 1);
  auto handle = self->request(pair.prompts.desk, 5s,
    letter<schema::PromptOrder>::make([&](schema::PromptOrder::Builder b) {
      b.setTransfer(9);
      b.setTenant("t");
      write_ids(b.initTokens(33), tokens);
      b.setLeaseMs(1);
    }),
    holder);
  pair.settle();
  std::uint32_t blocks = 0;
  handle.receive([&](const letter<schema::PromptReady>& said) { blocks = said.read().getBlocks(); },
    [](const caf::error&) {});
  CHECK(blocks == 2);
  CHECK(pair.prompts.handover->kept_blocks == 2);
  // The book reads the clock.
  std::this_thread::sleep_for(5ms);
  pair.pass(1s);
  CHECK(pair.prompts.handover->kept_blocks == 0);
  CHECK(pair.prompts.handover->expired == 1);
  CHECK(pair.all_free(pair.prompts));
  caf::anon_send(holder, stop_atom::value);
  pair.settle();
}

TEST_CASE("orders that make no sense are refused") {
  two_engines pair;
  const auto refused = [&](std::uint64_t transfer, std::size_t tokens) {
    caf::scoped_actor self{pair.system};
    auto handle = self->request(pair.prompts.desk, 5s,
      letter<schema::PromptOrder>::make([&](schema::PromptOrder::Builder b) {
        b.setTransfer(transfer);
        write_ids(b.initTokens(static_cast<unsigned>(tokens)), prompt_of(tokens, 1));
        b.setLeaseMs(1000);
      }),
      caf::actor_cast<common_actor>(pair.prompts.desk));
    pair.settle();
    errc code{};
    handle.receive([](const letter<schema::PromptReady>&) {},
      [&](const caf::error& why) { code = from_caf_error(why).code; });
    return code;
  };
  CHECK(refused(1, 0) == errc::invalid_argument);
  CHECK(refused(1, 16) == errc::invalid_argument);
  CHECK(refused(1, 1) == errc::invalid_argument);
  CHECK(refused(1, 40) == errc::invalid_argument);
  CHECK(refused(0, 33) == errc::conflict);
  // Longer than the model's context.
  CHECK(refused(1, 529) == errc::invalid_argument);
  CHECK(pair.idle());
}

TEST_CASE("while the device has no room the prompt waits for it, and is still brought") {
  // 16 blocks: a stream that takes up to 9 runs, and a prompt of 12 does not fit beside it.
  two_engines pair(256);
  ask small = question(1, 60, 9);
  small.max_tokens = 80;
  pair.post(small);
  for (int i = 0; i < 40; ++i)
    pair.scheduler.run_once();
  pair.post(question(2));
  pair.settle();
  CHECK(pair.streams.handover->no_room > 0);
  CHECK(pair.streams.handover->brought_prompts == 1);
  check_answer(pair, small);
  check_answer(pair, question(2));
  CHECK(pair.idle());
  CHECK(pair.all_free(pair.streams));
}
