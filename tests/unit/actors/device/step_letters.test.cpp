#include "actors/device/step_letters.hpp"

#include <catch2/catch.hpp>

using namespace godwit;

TEST_CASE("a submission reads back as it was packed, with all tokens so far") {
  opening_order order;
  order.ask = letter<schema::GenerateRequest>::make([](schema::GenerateRequest::Builder b) {
    b.setRequest(7);
    b.setTenant("t");
    b.initTokens(2).set(1, 5);
    b.setPromptLength(2);
    b.setPriority(-3);
    auto sampling = b.initSampling();
    sampling.setTemperature(0.5F);
    sampling.setTopK(9);
    sampling.setSeed(1234567890123456789U);
    sampling.initBias(1)[0].setToken(3);
    sampling.getBias()[0].setBias(-2.5F);
  });
  order.tokens = {0, 5, 6};
  order.arrival = 11;
  order.cached = {4, 2};
  order.cached_at_most = 17;
  order.hole_at = 48;
  const std::vector<row_offer> rows{{7, 64}, {9, 1}};
  const std::vector<hole_filling> fillings{{7, 48, {5, 3}}, {9, 16, {}}};
  const auto mail = pack_submission(step_role::decode, 42, rows, std::span(&order, 1), fillings);
  const auto back = unpack(mail.read());
  CHECK(back.role == step_role::decode);
  CHECK(back.seen == 42);
  REQUIRE(back.rows.size() == 2);
  CHECK(back.rows[0].tokens == 64);
  CHECK(back.rows[1].sequence == 9);
  REQUIRE(back.openings.size() == 1);
  const auto& opening = back.openings[0];
  CHECK(opening.key == 7);
  CHECK(opening.order == rank{-3, 11});
  CHECK(opening.tenant == "t");
  CHECK(opening.tokens == std::vector<token_id>{0, 5, 6});
  CHECK(opening.prompt_length == 2);
  CHECK(opening.cached == std::vector<block_id>{4, 2});
  CHECK(opening.cached_at_most == 17);
  CHECK(opening.hole_at == 48);
  REQUIRE(back.fillings.size() == 2);
  CHECK(back.fillings[0].key == 7);
  CHECK(back.fillings[0].at == 48);
  CHECK(back.fillings[0].blocks == std::vector<block_id>{5, 3});
  CHECK(back.fillings[1].blocks.empty());
  CHECK(opening.sampling.temperature == 0.5F);
  CHECK(opening.sampling.top_k == 9);
  CHECK(opening.sampling.seed == 1234567890123456789U);
  CHECK(opening.sampling.bias == std::vector<std::pair<token_id, float>>{{3, -2.5F}});
}

TEST_CASE("a result reads back as it was packed") {
  step_result result;
  result.step = 3;
  row_result row;
  row.sequence = 5;
  row.outcome = row_outcome::sampled;
  row.prompt = true;
  row.computed = 17;
  row.cached = 32;
  row.position = 49;
  row.token.token = 8;
  row.token.logprob = -0.25F;
  row.token.top = {{8, -0.25F}, {2, -3.0F}};
  result.rows.push_back(row);
  row.outcome = row_outcome::failed;
  row.failure = {errc::internal, "why", {}, {}};
  result.rows.push_back(row);
  const auto mail = pack(result);
  const auto back = unpack(mail.read());
  CHECK(back.step == 3);
  REQUIRE(back.rows.size() == 2);
  CHECK(back.rows[0].outcome == row_outcome::sampled);
  CHECK(back.rows[0].prompt);
  CHECK(back.rows[0].computed == 17);
  CHECK(back.rows[0].cached == 32);
  CHECK(back.rows[0].position == 49);
  CHECK(back.rows[0].token.logprob == -0.25F);
  CHECK(back.rows[0].token.top == row.token.top);
  CHECK(back.rows[1].failure.code == errc::internal);
  CHECK(back.rows[1].failure.message == "why");
}

TEST_CASE("row outcomes have the same numbers in letters") {
  CHECK(static_cast<int>(row_outcome::computed) == static_cast<int>(schema::RowOutcome::COMPUTED));
  CHECK(static_cast<int>(row_outcome::sampled) == static_cast<int>(schema::RowOutcome::SAMPLED));
  CHECK(static_cast<int>(row_outcome::starved) == static_cast<int>(schema::RowOutcome::STARVED));
  CHECK(static_cast<int>(row_outcome::preempted) == static_cast<int>(schema::RowOutcome::PREEMPTED));
  CHECK(static_cast<int>(row_outcome::failed) == static_cast<int>(schema::RowOutcome::FAILED));
}
