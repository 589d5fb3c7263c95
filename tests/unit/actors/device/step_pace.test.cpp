#include "actors/device/step_pace.hpp"

#include <catch2/catch.hpp>

#include <vector>

using namespace godwit;
using namespace std::chrono_literals;

namespace {

/// A machine on which a step takes `base` and each prompt token `token` more.
struct machine {
  step_pace::duration base;
  step_pace::duration token;

  step_pace::duration step(std::uint32_t prompt) const { return base + prompt * token; }
};

} // namespace

TEST_CASE("without a target prompts take all that they may") {
  step_pace pace(0ms);
  pace.learn(4, 0, 1s);
  pace.learn(4, 512, 10s);
  CHECK(pace.prompt_tokens(16, 512) == 512);
}

TEST_CASE("before anything is known the first step with prompts is short") {
  CHECK(step_pace(100ms).prompt_tokens(16, 512) == 16);
}

TEST_CASE("the tokens of a step converge to what fits into the target") {
  const machine slow{.base = 10ms, .token = 2ms};
  step_pace pace(100ms);
  std::vector<std::uint32_t> given;
  for (int i = 0; i < 40; ++i) {
    pace.learn(4, 0, slow.step(0));
    given.push_back(pace.prompt_tokens(16, 512));
    pace.learn(4, given.back(), slow.step(given.back()));
  }
  CHECK(given.back() == 45); // (100 - 10) / 2
}

TEST_CASE("a machine that slows down is followed") {
  step_pace pace(100ms);
  const auto run = [&](const machine& on) {
    std::uint32_t tokens = 0;
    for (int i = 0; i < 60; ++i) {
      tokens = pace.prompt_tokens(16, 512);
      pace.learn(2, 0, on.step(0));
      pace.learn(2, tokens, on.step(tokens));
    }
    return tokens;
  };
  CHECK(run({5ms, 200us}) == Approx(475).margin(2));
  CHECK(run({20ms, 1ms}) == Approx(80).margin(2));
  CHECK(run({5ms, 200us}) == Approx(475).margin(2));
}

TEST_CASE("a target that the streams alone miss still leaves the least to the prompts") {
  step_pace pace(10ms);
  for (int i = 0; i < 10; ++i) {
    pace.learn(64, 0, 50ms);
    pace.learn(64, 16, 60ms);
  }
  CHECK(pace.prompt_tokens(16, 512) == 16);
}

TEST_CASE("a fast machine takes no more than it may") {
  step_pace pace(100ms);
  pace.learn(1, 0, 1ms);
  pace.learn(1, 16, 1100us);
  CHECK(pace.prompt_tokens(16, 300) == 300);
  CHECK(pace.prompt_tokens(16, 8) == 8);
}

TEST_CASE("prompts without streams teach the cost of a token too") {
  step_pace pace(100ms);
  pace.learn(0, 512, 512ms);
  CHECK(pace.prompt_tokens(16, 512) == 100);
}

TEST_CASE("noise never makes a prompt token free") {
  step_pace pace(100ms);
  pace.learn(1, 0, 50ms);
  pace.learn(1, 20, 40ms);                      // faster than the streams alone were
  CHECK(pace.prompt_tokens(16, 10'000) == 250); // a tenth of 2 ms each
}
