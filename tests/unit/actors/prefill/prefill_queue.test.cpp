#include "actors/prefill/prefill_queue.hpp"

#include <catch2/catch.hpp>

#include <numeric>

using namespace godwit;

namespace {

letter<schema::GenerateRequest> request_of(
  request_id id, std::vector<token_id> tokens, std::int32_t priority = 0) {
  return letter<schema::GenerateRequest>::make([&](schema::GenerateRequest::Builder b) {
    b.setRequest(id);
    b.setTenant("t");
    write_ids(b.initTokens(static_cast<unsigned>(tokens.size())), tokens);
    b.setPromptLength(static_cast<unsigned>(tokens.size()));
    b.setPriority(priority);
  });
}

/// A text that shares nothing with those of other salts.
std::vector<token_id> text(std::size_t length, token_id salt) {
  std::vector<token_id> tokens(length);
  std::iota(tokens.begin(), tokens.end(), salt * 10000);
  return tokens;
}

std::vector<request_id> ids(const std::vector<prefix_question>& questions) {
  std::vector<request_id> out;
  for (const auto& question : questions)
    out.push_back(question.request);
  return out;
}

step_result result_of(request_id id, row_outcome outcome, std::uint32_t computed = 0) {
  row_result row;
  row.sequence = id;
  row.outcome = outcome;
  row.prompt = true;
  row.computed = computed;
  row.cached = 0;
  return {1, {row}};
}

const prefill_queue::clock::time_point start{};

/// Everything up to the first row.
void activate(prefill_queue& queue, request_id id) {
  for (const auto& question : queue.begin(start))
    queue.found(question.request, {});
  REQUIRE(queue.known(id));
  queue.wishes();
}

} // namespace

TEST_CASE("a prompt is looked up, opened once, and offered until it is done") {
  prefill_queue queue({.offer = 64});
  REQUIRE(queue.accept(request_of(1, text(100, 1))));
  const auto questions = queue.begin(start);
  REQUIRE(ids(questions) == std::vector<request_id>{1});
  CHECK(*questions[0].tenant == "t");
  CHECK(*questions[0].tokens == text(100, 1));
  CHECK(queue.wishes().rows.empty());
  CHECK(queue.found(1, {7, 8}));

  auto wishes = queue.wishes();
  REQUIRE(wishes.openings.size() == 1);
  CHECK(wishes.openings[0].cached == std::vector<block_id>{7, 8});
  REQUIRE(wishes.rows.size() == 1);
  CHECK(wishes.rows[0].tokens == 64);
  CHECK(queue.take(result_of(1, row_outcome::computed, 60)).empty());
  wishes = queue.wishes();
  CHECK(wishes.openings.empty());
  CHECK(wishes.rows[0].tokens == 8);
  CHECK(queue.take(result_of(1, row_outcome::sampled, 8)) == std::vector<request_id>{1});
  CHECK(queue.wishes().rows.empty());
  CHECK(queue.size() == 1);
  queue.ended(1);
  CHECK(queue.size() == 0);
}

TEST_CASE("prompts begin in the order of priority, then of arrival, as many as the limits allow") {
  prefill_queue queue({.active = 2, .sequences = 3});
  queue.accept(request_of(1, text(10, 1)));
  queue.accept(request_of(2, text(10, 2)));
  queue.accept(request_of(3, text(10, 3), 5));
  CHECK(ids(queue.begin(start)) == std::vector<request_id>{3, 1});
  queue.found(3, {});
  queue.found(1, {});
  queue.wishes();
  queue.take(result_of(3, row_outcome::sampled));
  CHECK(ids(queue.begin(start)) == std::vector<request_id>{2});
  // Three sequences are open: one stream and two prompts.
  queue.accept(request_of(4, text(10, 4)));
  queue.take(result_of(1, row_outcome::sampled));
  CHECK(queue.begin(start).empty());
  queue.ended(3);
  CHECK(ids(queue.begin(start)) == std::vector<request_id>{4});
}

TEST_CASE("the queue has an end, and an id only one request") {
  prefill_queue queue({.queued = 2});
  CHECK(queue.accept(request_of(1, text(10, 1))));
  CHECK(queue.accept(request_of(1, text(10, 1))).error().code == errc::conflict);
  CHECK(queue.accept(request_of(2, text(10, 2))));
  CHECK(queue.accept(request_of(3, text(10, 3))).error().code == errc::overloaded);
}

TEST_CASE("a prompt waits while another one computes what it shares, and no longer") {
  prefill_queue queue({});
  auto longer = text(200, 1);
  queue.accept(request_of(1, text(160, 1)));
  queue.accept(request_of(2, longer));
  queue.accept(request_of(3, text(50, 3)));
  CHECK(ids(queue.begin(start)) == std::vector<request_id>{1, 3});
  queue.found(1, {});
  queue.wishes();
  queue.take(result_of(1, row_outcome::computed, 96));
  CHECK(queue.begin(start).empty());
  // Less than four blocks are left to share: waiting is not worth it.
  queue.take(result_of(1, row_outcome::computed, 1));
  CHECK(ids(queue.begin(start)) == std::vector<request_id>{2});
}

TEST_CASE("a starved prompt is offered again after pages came free, and nobody behind it begins meanwhile") {
  prefill_queue queue({});
  queue.accept(request_of(1, text(10, 1)));
  activate(queue, 1);
  queue.take(result_of(1, row_outcome::starved));
  CHECK(queue.wishes().rows.empty());
  queue.accept(request_of(2, text(10, 2)));
  queue.accept(request_of(3, text(10, 3), 1));
  CHECK(ids(queue.begin(start)) == std::vector<request_id>{3});
  queue.unblock();
  CHECK(queue.wishes().rows.size() == 1);
  CHECK(ids(queue.begin(start)) == std::vector<request_id>{2});
}

TEST_CASE("a preempted prompt goes back to its place in the queue") {
  prefill_queue queue({});
  queue.accept(request_of(1, text(10, 1)));
  activate(queue, 1);
  queue.accept(request_of(2, text(10, 2)));
  queue.take(result_of(1, row_outcome::preempted));
  CHECK(ids(queue.begin(start)) == std::vector<request_id>{1, 2});
}

TEST_CASE("a sequence that lost its pages in decode is computed again with all of its tokens") {
  prefill_queue queue({});
  queue.accept(request_of(1, text(10, 1)));
  activate(queue, 1);
  queue.take(result_of(1, row_outcome::sampled));
  queue.recompute(1, text(25, 1));
  CHECK(queue.begin(start)[0].tokens->size() == 25);
  queue.found(1, {});
  const auto wishes = queue.wishes();
  REQUIRE(wishes.openings.size() == 1);
  CHECK(wishes.openings[0].tokens == text(25, 1));
  CHECK(wishes.rows[0].tokens == 25);
  // A request that has ended meanwhile is not brought back.
  queue.ended(1);
  queue.recompute(1, text(25, 1));
  CHECK(queue.size() == 0);
}

TEST_CASE("a dropped prompt leaves what is to be done with it, at every stage") {
  prefill_queue queue({});
  CHECK_FALSE(queue.drop(1).known);

  queue.accept(request_of(1, text(100, 1)));
  auto dropped = queue.drop(1);
  CHECK((dropped.known && !dropped.close && dropped.unused.empty()));
  CHECK(queue.begin(start).empty());
  queue.ended(1);

  queue.accept(request_of(2, text(100, 2)));
  queue.begin(start);
  queue.drop(2);
  CHECK_FALSE(queue.found(2, {7}));
  queue.ended(2);

  queue.accept(request_of(3, text(100, 3)));
  queue.begin(start);
  queue.found(3, {7, 8});
  dropped = queue.drop(3);
  CHECK(dropped.unused == std::vector<block_id>{7, 8});
  CHECK_FALSE(dropped.close);
  queue.ended(3);

  queue.accept(request_of(4, text(100, 4)));
  activate(queue, 4);
  CHECK(queue.drop(4).close);
  CHECK(queue.take(result_of(4, row_outcome::sampled)).empty());
  CHECK_FALSE(queue.drop(4).close);
  queue.ended(4);

  // Decode has it. What it asks for before it hears of the end is not begun.
  queue.accept(request_of(5, text(100, 5)));
  activate(queue, 5);
  queue.take(result_of(5, row_outcome::sampled));
  CHECK(queue.drop(5).close);
  CHECK_FALSE(queue.drop(5).close);
  queue.recompute(5, text(120, 5));
  CHECK(queue.begin(start).empty());
  queue.ended(5);
  CHECK(queue.size() == 0);
  CHECK(queue.active() == 0);
  CHECK(queue.queued() == 0);
}

TEST_CASE("a cache that does not answer is not waited for for ever") {
  prefill_queue queue({});
  queue.accept(request_of(1, text(100, 1)));
  queue.begin(start);
  queue.expire(start);
  CHECK(queue.looking_up());
  queue.expire(start + std::chrono::milliseconds(1));
  CHECK_FALSE(queue.looking_up());
  CHECK(queue.wishes().rows.size() == 1);
  CHECK_FALSE(queue.found(1, {7}));
}

TEST_CASE("a prompt whose blocks are brought waits for them, and begins with all") {
  prefill_queue queue({});
  queue.accept(request_of(1, text(100, 1)));
  queue.begin(start);
  CHECK(queue.answer(1, {.blocks = {7}, .loading = 3, .patience = std::chrono::seconds(1)}, start));
  CHECK(queue.looking_up());
  CHECK(queue.wishes().openings.empty());
  // The patience of the first answer is over, not that of the loading.
  CHECK(queue.expire(start + std::chrono::milliseconds(900), start + std::chrono::milliseconds(900)).empty());
  CHECK(queue.answer(1, {.blocks = {8, 9}, .first = 1, .host = 1, .disk = 1}, start));
  const auto wishes = queue.wishes();
  REQUIRE(wishes.openings.size() == 1);
  CHECK(wishes.openings[0].cached == std::vector<block_id>{7, 8, 9});
  CHECK(wishes.openings[0].cached_host == 16);
  CHECK(wishes.openings[0].cached_disk == 16);
  CHECK(wishes.rows[0].tokens == 100 - 48);
}

TEST_CASE("loading that takes longer than computing is not waited for, and what comes late is not taken") {
  prefill_queue queue({});
  queue.accept(request_of(1, text(100, 1)));
  queue.begin(start);
  queue.answer(1, {.blocks = {7}, .loading = 3, .patience = std::chrono::seconds(1)}, start);
  const auto late = start + std::chrono::seconds(1);
  CHECK(queue.expire(start, late) == std::vector<request_id>{1});
  CHECK(queue.wishes().rows.at(0).tokens == 84);
  CHECK_FALSE(queue.answer(1, {.blocks = {8}, .first = 1}, late));
}

TEST_CASE("a prompt that is dropped while blocks are brought leaves them to be forgone") {
  prefill_queue queue({});
  queue.accept(request_of(1, text(100, 1)));
  queue.begin(start);
  queue.answer(1, {.blocks = {7}, .loading = 3, .patience = std::chrono::seconds(1)}, start);
  const auto dropped = queue.drop(1);
  CHECK(dropped.forgo);
  CHECK(dropped.unused == std::vector<block_id>{7});
  CHECK_FALSE(queue.answer(1, {.blocks = {8}, .first = 1}, start));
}

TEST_CASE("blocks of an earlier question, at another place, are not taken") {
  prefill_queue queue({});
  queue.accept(request_of(1, text(100, 1)));
  queue.begin(start);
  CHECK_FALSE(queue.answer(1, {.blocks = {8, 9}, .first = 1}, start));
  CHECK(queue.answer(1, {.blocks = {7}}, start));
}

TEST_CASE("a prompt that starves before it began is looked up again if lower tiers have blocks of it") {
  prefill_queue queue({});
  queue.accept(request_of(1, text(100, 1)));
  queue.begin(start);
  queue.answer(1, {.blocks = {7}, .waiting = 3}, start);
  CHECK(queue.wishes().rows.at(0).tokens == room_only);
  queue.accept(request_of(2, text(100, 2)));
  queue.take(result_of(1, row_outcome::starved));
  CHECK(queue.take_closing() == std::vector<sequence_key>{1});
  CHECK(queue.take_closing().empty());
  // It keeps its place: nobody behind it begins.
  CHECK(queue.begin(start).empty());
  queue.unblock();
  CHECK(ids(queue.begin(start)) == std::vector<request_id>{1, 2});
  // Room was made: it is looked up at once, and does not ask for room again.
  queue.answer(1, {.blocks = {7}, .waiting = 3}, start);
  CHECK(queue.wishes().rows.at(0).tokens == room_only);
  queue.take(result_of(1, row_outcome::computed, 0));
  CHECK(queue.take_closing() == std::vector<sequence_key>{1});
  CHECK(ids(queue.begin(start)) == std::vector<request_id>{1});
  queue.answer(1, {.blocks = {7}, .waiting = 3}, start);
  CHECK(queue.wishes().rows.at(0).tokens == 84);
  queue.take(result_of(1, row_outcome::computed, 5));
  // Once it began it keeps what it has.
  queue.take(result_of(1, row_outcome::starved));
  CHECK(queue.take_closing().empty());
}

namespace {

constexpr auto second = std::chrono::seconds(1);

/// A prompt of 150 tokens: one block is on the device, two are to be computed, three are being brought.
void begin_with_gap(prefill_queue& queue) {
  REQUIRE(queue.accept(request_of(1, text(150, 1))));
  queue.begin(start);
  REQUIRE(queue.answer(1, {.blocks = {7}, .loading = 3, .patience = second, .gap = 2, .tail = 3}, start));
}

} // namespace

TEST_CASE("a prompt is computed up to what is being brought, waits there, and goes on behind it") {
  prefill_queue queue({});
  begin_with_gap(queue);
  CHECK(queue.looking_up());
  auto wishes = queue.wishes();
  REQUIRE(wishes.openings.size() == 1);
  CHECK(wishes.openings[0].cached == std::vector<block_id>{7});
  CHECK(wishes.openings[0].hole_at == 48);
  CHECK(wishes.rows.at(0).tokens == 32);
  const bool in_time = GENERATE(true, false);
  if (in_time)
    CHECK(queue.answer(1, {.blocks = {1, 2, 3}, .first = 3, .disk = 3}, start));
  queue.take(result_of(1, row_outcome::computed, 20));
  CHECK(queue.wishes().rows.at(0).tokens == 12);
  queue.take(result_of(1, row_outcome::computed, 12));
  if (!in_time) {
    CHECK(queue.wishes().rows.empty());
    CHECK(queue.expire(start, start + std::chrono::milliseconds(500)).empty());
    CHECK(queue.wishes().rows.empty());
    CHECK(queue.answer(1, {.blocks = {1, 2, 3}, .first = 3, .disk = 3}, start));
  }
  CHECK_FALSE(queue.looking_up());
  wishes = queue.wishes();
  REQUIRE(wishes.fillings.size() == 1);
  CHECK(wishes.fillings[0].key == 1);
  CHECK(wishes.fillings[0].at == 48);
  CHECK(wishes.fillings[0].blocks == std::vector<block_id>{1, 2, 3});
  CHECK(wishes.rows.at(0).tokens == 150 - 96);
  CHECK(queue.take_unused().empty());
  CHECK(queue.take_forgone().empty());
  // Once.
  wishes = queue.wishes();
  CHECK(wishes.fillings.empty());
  CHECK(wishes.rows.at(0).tokens == 150 - 96);
  CHECK_FALSE(queue.answer(1, {.blocks = {1, 2, 3}, .first = 3, .disk = 3}, start));
  CHECK(queue.take(result_of(1, row_outcome::sampled, 54)) == std::vector<request_id>{1});
}

TEST_CASE("blocks of the host come before the gap, and may come after what is behind it") {
  prefill_queue queue({});
  queue.accept(request_of(1, text(150, 1)));
  queue.begin(start);
  CHECK(queue.answer(1, {.blocks = {7}, .loading = 4, .patience = second, .gap = 2, .tail = 3}, start));
  CHECK(queue.wishes().openings.empty());
  CHECK(queue.answer(1, {.blocks = {1, 2, 3}, .first = 4, .loading = 1, .disk = 3}, start));
  CHECK(queue.wishes().openings.empty());
  CHECK(queue.answer(1, {.blocks = {8}, .first = 1, .host = 1}, start));
  auto wishes = queue.wishes();
  CHECK(wishes.openings.at(0).cached == std::vector<block_id>{7, 8});
  CHECK(wishes.openings[0].cached_host == 16);
  CHECK(wishes.openings[0].hole_at == 64);
  CHECK(wishes.rows.at(0).tokens == 32);
  queue.take(result_of(1, row_outcome::computed, 32));
  CHECK(queue.wishes().fillings.at(0).at == 64);
}

TEST_CASE("what is brought behind a gap is not waited for for ever, and fewer may come than were announced") {
  prefill_queue queue({});
  begin_with_gap(queue);
  queue.wishes();
  // Not while there is something to compute.
  CHECK(queue.expire(start + second, start + second).empty());
  queue.take(result_of(1, row_outcome::computed, 32));
  const int come = GENERATE(0, 1, 2);
  if (come == 2)
    CHECK(queue.expire(start + second, start + second) == std::vector<request_id>{1});
  else
    CHECK(queue.answer(1, {.blocks = std::vector<block_id>(come, 5), .first = 3}, start));
  const auto wishes = queue.wishes();
  const auto blocks = come == 1 ? 1U : 0U;
  REQUIRE(wishes.fillings.size() == 1);
  CHECK(wishes.fillings[0].blocks.size() == blocks);
  CHECK(wishes.rows.at(0).tokens == 150 - 48 - blocks * 16);
  CHECK_FALSE(queue.answer(1, {.blocks = {1, 2, 3}, .first = 3}, start));
  CHECK_FALSE(queue.looking_up());
}

TEST_CASE("a prompt that gets no pages, or loses them, gives up what is being brought for it") {
  prefill_queue queue({});
  begin_with_gap(queue);
  queue.wishes();
  const bool there = GENERATE(true, false);
  if (there)
    CHECK(queue.answer(1, {.blocks = {1, 2, 3}, .first = 3}, start));
  const auto what = GENERATE(row_outcome::starved, row_outcome::preempted, row_outcome::failed);
  queue.take(result_of(1, what));
  CHECK(queue.take_unused() == (there ? std::vector<block_id>{1, 2, 3} : std::vector<block_id>{}));
  CHECK(queue.take_forgone() == (there ? std::vector<request_id>{} : std::vector<request_id>{1}));
  CHECK(queue.take_unused().empty());
  CHECK(queue.take_forgone().empty());
  CHECK_FALSE(queue.looking_up());
  CHECK_FALSE(queue.answer(1, {.blocks = {1, 2, 3}, .first = 3}, start));
  if (what == row_outcome::starved) {
    CHECK(queue.wishes().rows.empty());
    queue.unblock();
    // Before it has come to the hole: there is none any more.
    const auto wishes = queue.wishes();
    CHECK(wishes.fillings.at(0).blocks.empty());
    CHECK(wishes.rows.at(0).tokens == 150 - 16);
  } else if (what == row_outcome::preempted) {
    CHECK(ids(queue.begin(start)) == std::vector<request_id>{1});
    queue.answer(1, {.blocks = {7}}, start);
    CHECK(queue.wishes().openings.at(0).hole_at == 0);
  }
}

TEST_CASE("a prompt that is dropped leaves what was brought behind a gap, or what is still to be forgone") {
  prefill_queue queue({});
  begin_with_gap(queue);
  SECTION("before it is opened") {
    const auto dropped = queue.drop(1);
    CHECK(dropped.forgo);
    CHECK_FALSE(dropped.close);
    CHECK(dropped.unused == std::vector<block_id>{7});
  }
  SECTION("while it computes") {
    queue.wishes();
    const auto dropped = queue.drop(1);
    CHECK(dropped.forgo);
    CHECK(dropped.close);
    CHECK(dropped.unused.empty());
  }
  SECTION("when all has come") {
    queue.wishes();
    queue.answer(1, {.blocks = {1, 2, 3}, .first = 3}, start);
    const auto dropped = queue.ended(1);
    CHECK_FALSE(dropped.forgo);
    CHECK(dropped.unused == std::vector<block_id>{1, 2, 3});
  }
  CHECK_FALSE(queue.answer(1, {.blocks = {1, 2, 3}, .first = 3}, start));
  CHECK_FALSE(queue.looking_up());
}

TEST_CASE("when the host's part takes too long, what is behind the gap is given up with it") {
  prefill_queue queue({});
  queue.accept(request_of(1, text(150, 1)));
  queue.begin(start);
  queue.answer(1, {.blocks = {7}, .loading = 4, .patience = second, .gap = 2, .tail = 3}, start);
  queue.answer(1, {.blocks = {1, 2, 3}, .first = 4}, start);
  CHECK(queue.expire(start, start + second) == std::vector<request_id>{1});
  CHECK(queue.take_unused() == std::vector<block_id>{1, 2, 3});
  const auto wishes = queue.wishes();
  CHECK(wishes.openings.at(0).hole_at == 0);
  CHECK(wishes.rows.at(0).tokens == 150 - 16);
}
