// The real model through the actors: the same bytes alone, in a batch, in any chunks and on any number of
// threads.

#include "actors/engine/engine.hpp"
#include "actors/tokenizer/token_text.hpp"
#include "tests/support/test_model.hpp"
#include "tests/unit/actors/engine/threaded_engine.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <map>

using namespace godwit;
using namespace godwit::test;

namespace {

/// Ends answers where SmolLM2 does.
class end_of_turn final : public token_text {
 public:
  token_id size() const override { return 49152; }
  std::string_view bytes(token_id) const override { return ""; }
  bool is_control(token_id id) const override { return id < 17; }
  bool is_end(token_id id) const override { return id == 2 || id == 0; }
};

struct golden_answer {
  std::vector<token_id> prompt;
  std::vector<token_id> answer;
  std::vector<bool> certain; ///< by token: the best two logits lie clearly apart
};

std::vector<golden_answer> read_golden() {
  std::ifstream file(std::string(GODWIT_SOURCE_DIR) + "/tests/golden/smollm2.json");
  const auto json = nlohmann::json::parse(file);
  std::vector<golden_answer> list;
  for (const auto& item : json.at("greedy")) {
    golden_answer one;
    one.prompt = item.at("prompt_ids").get<std::vector<token_id>>();
    for (const auto& step : item.at("steps")) {
      one.answer.push_back(step.at("id").get<token_id>());
      const auto& top = step.at("top");
      one.certain.push_back(top[0][1].get<double>() - top[1][1].get<double>() > 0.5);
    }
    list.push_back(std::move(one));
  }
  return list;
}

std::unique_ptr<model> load_model(std::uint32_t threads) {
  auto file = gguf::file::open(test_model_path());
  REQUIRE(file);
  auto loaded = model::load(*file, {.threads = threads});
  REQUIRE(loaded);
  return std::move(*loaded);
}

model_card card_of_the_model() {
  model_card card;
  card.id = "smollm2";
  card.text = std::make_shared<end_of_turn>();
  return card;
}

std::vector<ask> asks_of(const std::vector<golden_answer>& golden) {
  std::vector<ask> asks;
  for (request_id id = 1; id <= 8; ++id) {
    const auto& from = golden[(id - 1) % golden.size()];
    ask what;
    what.request = id;
    what.tokens = from.prompt;
    what.max_tokens = 24;
    what.model = "smollm2";
    what.ignore_end = false;
    what.credit = 5;
    // Twice greedy for every prompt that is there once; the others draw their tokens.
    what.temperature = id <= golden.size() ? 0 : 1;
    what.seed = id;
    asks.push_back(what);
  }
  return asks;
}

struct outcome {
  std::vector<std::vector<token_id>> answers;
  std::uint64_t preemptions = 0;
  std::uint64_t swapped_blocks = 0;
  std::uint64_t host_hits = 0;
};

/// Answers to all asks; `together` or one after the other.
outcome run(
  const engine_options& options, std::uint32_t threads, const std::vector<ask>& asks, bool together) {
  threaded_engine at(load_model(threads), card_of_the_model(), options);
  std::size_t ends = 0;
  for (const auto& what : asks) {
    at.post(what);
    ++ends;
    if (!together)
      REQUIRE(at.box->wait_for_ends(ends));
  }
  REQUIRE(at.box->wait_for_ends(ends));
  const auto& counters = *at.all.counters;
  outcome out{{}, counters.preemptions, counters.swapped_blocks, counters.host_hits};
  for (const auto& what : asks)
    out.answers.push_back(at.box->of(what.request).tokens);
  const auto steps = static_cast<double>(counters.steps);
  WARN("threads " << threads << ", chunk " << options.chunk << (together ? ", together: " : ", alone: ")
                  << steps << " steps of " << static_cast<double>(counters.step_nanoseconds) / steps / 1e6
                  << " ms, pause "
                  << static_cast<double>(counters.pause_nanoseconds)
                       / std::max(1.0, static_cast<double>(counters.pauses)) / 1e3
                  << " us");
  return out;
}

} // namespace

TEST_CASE("after every golden token the actors give the next one, where it is certain") {
  threaded_engine at(load_model(2), card_of_the_model(), {});
  std::map<request_id, token_id> expected;
  for (const auto& from : read_golden())
    for (std::size_t i = 0; i < from.answer.size(); ++i) {
      if (!from.certain[i])
        continue;
      ask what;
      what.request = expected.size() + 1;
      what.tokens = from.prompt;
      what.tokens.insert(
        what.tokens.end(), from.answer.begin(), from.answer.begin() + static_cast<std::ptrdiff_t>(i));
      what.max_tokens = 1;
      what.temperature = 0;
      what.model = "smollm2";
      expected[what.request] = from.answer[i];
      at.post(what);
    }
  REQUIRE(expected.size() > 100);
  REQUIRE(at.box->wait_for_ends(expected.size()));
  for (const auto& [id, token] : expected) {
    INFO("request " << id);
    CHECK(at.box->of(id).tokens == std::vector{token});
  }
}

TEST_CASE(
  "the same bytes alone, in a batch of eight, in chunks of 16, 64 and 512, on one thread and on two") {
  const auto asks = asks_of(read_golden());
  const auto alone = run({.cache_share = 0}, 2, asks, false).answers;
  for (const std::uint32_t chunk : {16U, 64U, 512U})
    for (const std::uint32_t threads : {1U, 2U}) {
      INFO("chunk " << chunk << ", threads " << threads);
      CHECK(run({.budget = chunk, .chunk = chunk}, threads, asks, true).answers == alone);
    }
}

TEST_CASE("a pool that is too small for all of them changes no byte") {
  auto asks = asks_of(read_golden());
  // So long that two of them have no room together.
  for (auto& what : asks) {
    what.max_tokens = 72;
    what.ignore_end = true;
  }
  const auto alone = run({.cache_share = 0}, 2, asks, false).answers;
  const auto computed = run({.kv_tokens = 160}, 2, asks, true);
  CHECK(computed.answers == alone);
  CHECK(computed.preemptions > 0);
  CHECK(computed.swapped_blocks == 0);
  // And when those that lost their pages, and nothing else, are brought back from host memory.
  const tier_options tiers{.host_bytes = std::uint64_t{1} << 26, .reuse = 255, .mode = onboarding::always};
  const auto swapped = run({.kv_tokens = 160, .tiers = tiers}, 2, asks, true);
  CHECK(swapped.answers == alone);
  CHECK(swapped.preemptions > 0);
  CHECK(swapped.swapped_blocks > 0);
  CHECK(swapped.host_hits > 0);
}
