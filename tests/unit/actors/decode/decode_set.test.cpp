#include "actors/decode/decode_set.hpp"

#include "tests/unit/actors/device/fake_model.hpp"

#include <catch2/catch.hpp>

using namespace godwit;
using schema::FinishReason;

namespace {

constexpr std::uint32_t longest = 100;

letter<schema::GenerateRequest> request_of(
  request_id id, std::uint32_t credit, std::uint32_t max_tokens = 10, unsigned tokens = 5) {
  return letter<schema::GenerateRequest>::make([&](schema::GenerateRequest::Builder b) {
    b.setRequest(id);
    b.initTokens(tokens);
    b.setPromptLength(tokens);
    b.setMaxTokens(max_tokens);
    b.setCredit(credit);
    b.initStopTokens(1).set(0, 9);
  });
}

step_result sampled_row(request_id id, token_id token, bool prompt = false) {
  row_result row;
  row.sequence = id;
  row.outcome = row_outcome::sampled;
  row.prompt = prompt;
  row.cached = 16;
  row.token.token = token;
  return {1, {row}};
}

step_result row_of(request_id id, row_outcome outcome, bool prompt = false) {
  row_result row;
  row.sequence = id;
  row.outcome = outcome;
  row.prompt = prompt;
  row.failure = {errc::internal, "x", {}, {}};
  return {1, {row}};
}

decode_set fresh_set() {
  return {std::make_shared<test::fake_text>(), longest};
}

} // namespace

TEST_CASE("a stream runs from its first token on, and each token goes out at once") {
  auto set = fresh_set();
  CHECK(set.announce(request_of(1, 5)).batches.empty());
  CHECK(set.rows().empty());
  const auto first = set.take(sampled_row(1, 42, true));
  REQUIRE(first.batches.size() == 1);
  CHECK(first.batches[0].position == 5);
  CHECK(first.batches[0].tokens[0].token == 42);
  CHECK(first.batches[0].usage);
  CHECK(first.batches[0].prompt_tokens == 5);
  CHECK(first.batches[0].cached_tokens == 5);
  CHECK(first.prefilled == std::vector<request_id>{1});
  REQUIRE(set.rows().size() == 1);
  const auto second = set.take(sampled_row(1, 43));
  CHECK(second.batches[0].position == 6);
  CHECK_FALSE(second.batches[0].usage);
  CHECK(second.prefilled.empty());
}

TEST_CASE("a stream ends on the end token, a stop token, its length and the longest sequence") {
  struct end {
    token_id token;
    std::uint32_t max_tokens;
    unsigned prompt;
    FinishReason why;
  };
  for (const auto& [token, max_tokens, prompt, why] :
    {end{0, 10, 5, FinishReason::STOP}, end{9, 10, 5, FinishReason::STOP},
      end{42, 1, 5, FinishReason::LENGTH}, end{42, 10, 99, FinishReason::LENGTH}}) {
    auto set = fresh_set();
    set.announce(request_of(1, 5, max_tokens, prompt));
    const auto out = set.take(sampled_row(1, token, true));
    REQUIRE(out.batches.size() == 1);
    CHECK(out.batches[0].finish == why);
    CHECK(out.batches[0].tokens.size() == 1);
    CHECK(out.close == std::vector<sequence_key>{1});
    CHECK(out.ended == std::vector<request_id>{1});
    CHECK(set.size() == 0);
  }
}

TEST_CASE(
  "without credit one token is held, no row runs, and pages go back as soon as the answer is complete") {
  auto set = fresh_set();
  set.announce(request_of(1, 0));
  CHECK(set.take(sampled_row(1, 42, true)).batches.empty());
  CHECK(set.rows().empty());
  auto out = set.grant(1, 2);
  REQUIRE(out.batches.size() == 1);
  CHECK(out.batches[0].position == 5);
  CHECK(set.rows().size() == 1);
  set.take(sampled_row(1, 43));
  CHECK(set.rows().empty());

  set.announce(request_of(2, 0, 1));
  out = set.take(sampled_row(2, 42, true));
  CHECK(out.close == std::vector<sequence_key>{2});
  CHECK(out.ended.empty());
  out = set.grant(2, 1);
  CHECK(out.batches[0].finish == FinishReason::LENGTH);
  CHECK(out.batches[0].tokens.size() == 1);
  CHECK(out.close.empty());
}

TEST_CASE("a cancel ends a stream with an empty batch at the next position") {
  auto set = fresh_set();
  set.announce(request_of(1, 1));
  set.take(sampled_row(1, 42, true));
  const std::vector<request_id> ids{1, 99};
  const auto out = set.cancel(ids, schema::EndCause::INTERRUPTED);
  REQUIRE(out.batches.size() == 1);
  CHECK(out.batches[0].finish == FinishReason::CANCELLED);
  CHECK(out.batches[0].tokens.empty());
  CHECK(out.batches[0].position == 6);
  CHECK(out.close == std::vector<sequence_key>{1});
  CHECK(set.cancel(ids, schema::EndCause::CANCELLED).batches.empty());
}

TEST_CASE("causes that no client asked for are failures with their own code") {
  for (const auto& [cause, code] : {std::pair{schema::EndCause::DRAINING, errc::draining},
         std::pair{schema::EndCause::DEADLINE, errc::deadline},
         std::pair{schema::EndCause::OVERLOADED, errc::overloaded},
         std::pair{schema::EndCause::PEER_LOST, errc::peer_lost}}) {
    auto set = fresh_set();
    set.announce(request_of(1, 1));
    const std::vector<request_id> ids{1};
    const auto out = set.cancel(ids, cause);
    CHECK(out.batches[0].finish == FinishReason::FAILED);
    CHECK(out.batches[0].failure.code == code);
  }
}

TEST_CASE("a stream that loses its pages asks for them again with all of its tokens, once it may send") {
  auto set = fresh_set();
  set.announce(request_of(1, 2));
  set.take(sampled_row(1, 42, true));
  auto out = set.take(row_of(1, row_outcome::preempted));
  REQUIRE(out.lost.size() == 1);
  CHECK(out.lost[0].tokens == std::vector<token_id>{0, 0, 0, 0, 0, 42});
  CHECK(set.rows().empty());
  CHECK(set.take(sampled_row(1, 43, true)).batches[0].position == 6);

  out = set.take(row_of(1, row_outcome::preempted));
  CHECK(out.lost.empty());
  out = set.grant(1, 1);
  REQUIRE(out.lost.size() == 1);
  CHECK(out.lost[0].tokens.size() == 7);
}

TEST_CASE("a prompt that loses its pages is prefill's to start again") {
  auto set = fresh_set();
  set.announce(request_of(1, 2));
  CHECK(set.take(row_of(1, row_outcome::preempted, true)).lost.empty());
  CHECK(set.size() == 1);
}

TEST_CASE("a starved stream is not offered until pages came free") {
  auto set = fresh_set();
  set.announce(request_of(1, 5));
  set.take(sampled_row(1, 42, true));
  set.take(row_of(1, row_outcome::starved));
  CHECK(set.rows().empty());
  set.unblock();
  CHECK(set.rows().size() == 1);
}

TEST_CASE("a failed row ends its stream with the failure") {
  auto set = fresh_set();
  set.announce(request_of(1, 5));
  const auto out = set.take(row_of(1, row_outcome::failed, true));
  CHECK(out.batches[0].finish == FinishReason::FAILED);
  CHECK(out.batches[0].failure.code == errc::internal);
}

TEST_CASE("a token for a stream that has ended closes its sequence") {
  auto set = fresh_set();
  CHECK(set.take(sampled_row(1, 42, true)).close == std::vector<sequence_key>{1});
}

TEST_CASE("nothing to generate is an end at once") {
  auto set = fresh_set();
  CHECK(set.announce(request_of(1, 5, 0)).batches[0].finish == FinishReason::LENGTH);
  CHECK(set.announce(request_of(2, 5, 10, longest)).batches[0].finish == FinishReason::LENGTH);
  CHECK(set.size() == 0);
}
