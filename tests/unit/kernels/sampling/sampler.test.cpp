#include "kernels/sampling/sampler.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <vector>

using namespace godwit;

namespace {

constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();
constexpr float infinity = std::numeric_limits<float>::infinity();

sampled draw(const std::vector<float>& logits, const sampling_settings& settings, position_t position = 0,
  const std::vector<token_id>& context = {}, std::uint32_t prompt_length = 0) {
  sampler_scratch scratch;
  return sample(logits, settings, position, context, prompt_length, scratch);
}

token_id greedy(const std::vector<float>& logits, sampling_settings settings = {},
  const std::vector<token_id>& context = {}, std::uint32_t prompt_length = 0) {
  settings.temperature = 0;
  return draw(logits, settings, 0, context, prompt_length).token;
}

/// The tokens that 2,000 positions give.
std::set<token_id> support(const std::vector<float>& logits, const sampling_settings& settings) {
  std::set<token_id> seen;
  for (position_t p = 0; p < 2000; ++p)
    seen.insert(draw(logits, settings, p).token);
  return seen;
}

using ids = std::set<token_id>;

} // namespace

TEST_CASE("temperature 0 takes the greatest logit, the lowest id among equals") {
  CHECK(greedy({1, 3, 2, 3}) == 1);
  CHECK(greedy({-5}) == 0);
  CHECK(greedy(std::vector<float>(49'153, 2.5F)) == 0);
}

TEST_CASE("logits that are no numbers are never chosen while there is another") {
  CHECK(greedy({not_a_number, -7, not_a_number, -infinity}) == 1);
  CHECK(greedy({not_a_number, infinity, 5, infinity}) == 1);
  CHECK(greedy({std::numeric_limits<float>::max(), infinity}) == 0);
  CHECK(support({not_a_number, 0, -infinity, 0, -not_a_number}, {}) == ids{1, 3});
  CHECK(support({0, infinity, not_a_number}, {}) == ids{1});
}

TEST_CASE("without any finite logit the token is 0") {
  for (const float temperature : {0.0F, 1.0F}) {
    sampling_settings settings;
    settings.temperature = temperature;
    settings.top_logprobs = 2;
    for (const float x : {not_a_number, -infinity}) {
      const auto out = draw({x, x, x}, settings);
      CHECK(out.token == 0);
      CHECK(out.logprob == least_logprob);
      CHECK(out.top == std::vector<std::pair<token_id, float>>{{0, least_logprob}, {1, least_logprob}});
    }
  }
}

TEST_CASE("the same seed and position give the same token, whatever was drawn before") {
  const std::vector<float> logits(1000, 0.0F);
  sampling_settings settings;
  settings.seed = 42;
  sampler_scratch used;
  std::vector<token_id> forwards, backwards;
  for (position_t p = 0; p < 50; ++p)
    forwards.push_back(sample(logits, settings, p, {}, 0, used).token);
  for (position_t p = 50; p-- > 0;)
    backwards.push_back(draw(logits, settings, p).token);
  CHECK(std::vector<token_id>(backwards.rbegin(), backwards.rend()) == forwards);
  CHECK(std::set<token_id>(forwards.begin(), forwards.end()).size() > 40);
  settings.seed = 43;
  CHECK(draw(logits, settings, 0).token != forwards[0]);
}

TEST_CASE("equal logits are drawn equally often") {
  // Chi-square over an odd vocabulary of 37; 67.99 is its 0.999 quantile for 36 degrees of freedom.
  const std::vector<float> logits(37, -3.0F);
  std::vector<int> counts(37);
  for (position_t p = 0; p < 37'000; ++p)
    ++counts[draw(logits, {}, p).token];
  double chi = 0;
  for (const int count : counts)
    chi += (count - 1000.0) * (count - 1000.0) / 1000.0;
  CHECK(chi < 67.99);
}

TEST_CASE("tokens are drawn as often as the softmax at the temperature says") {
  const std::vector<float> logits{0, 1, 2, -1, 0.5F};
  for (const float temperature : {0.5F, 1.0F, 2.0F}) {
    sampling_settings settings;
    settings.temperature = temperature;
    settings.seed = 7;
    std::vector<double> expected;
    for (const float logit : logits)
      expected.push_back(std::exp(static_cast<double>(logit / temperature)));
    const double sum = std::accumulate(expected.begin(), expected.end(), 0.0);
    std::vector<int> counts(5);
    constexpr int draws = 20'000;
    for (position_t p = 0; p < draws; ++p)
      ++counts[draw(logits, settings, p).token];
    double chi = 0;
    for (std::size_t i = 0; i < 5; ++i) {
      const double mean = expected[i] / sum * draws;
      chi += (counts[i] - mean) * (counts[i] - mean) / mean;
    }
    CHECK(chi < 18.47); // 0.999 quantile, 4 degrees of freedom
  }
}

TEST_CASE("extreme temperatures give the greedy and the even choice") {
  sampling_settings settings;
  settings.temperature = 1e-30F;
  CHECK(support({1, 2, 3, 2.9999F}, settings) == ids{2});
  settings.temperature = 1e30F;
  CHECK(support({-100, 0, 100}, settings) == ids{0, 1, 2});
  settings.temperature = std::numeric_limits<float>::denorm_min();
  CHECK(support({1, 2, -infinity}, settings) == ids{1});
}

TEST_CASE("top_k keeps the k greatest, lowest ids among equals") {
  sampling_settings settings;
  settings.top_k = 2;
  CHECK(support({0, 2, 1, 2, 2}, settings) == ids{1, 3});
  settings.top_k = 1;
  CHECK(support({0, 0, 0}, settings) == ids{0});
  settings.top_k = 100;
  CHECK(support({0, 0, 0}, settings) == ids{0, 1, 2});
}

TEST_CASE("top_p keeps the fewest tokens that reach it") {
  // Probabilities 0.5, 0.3, 0.15, 0.05.
  const std::vector<float> logits{std::log(0.05F), std::log(0.5F), std::log(0.15F), std::log(0.3F)};
  sampling_settings settings;
  const auto kept = [&](float top_p) {
    settings.top_p = top_p;
    return support(logits, settings);
  };
  CHECK(kept(0.01F) == ids{1});
  CHECK(kept(0.49F) == ids{1});
  CHECK(kept(0.51F) == ids{1, 3});
  CHECK(kept(0.79F) == ids{1, 3});
  CHECK(kept(0.81F) == ids{1, 2, 3});
  CHECK(kept(0.96F) == ids{0, 1, 2, 3});
  CHECK(kept(1.0F) == ids{0, 1, 2, 3});
  // After top_k its share is of what is left: 0.5 / 0.8 and 0.3 / 0.8.
  settings.top_k = 2;
  CHECK(kept(0.61F) == ids{1});
  CHECK(kept(0.64F) == ids{1, 3});
}

TEST_CASE("min_p keeps what is at least that likely in proportion to the likeliest") {
  const std::vector<float> logits{std::log(0.05F), std::log(0.5F), std::log(0.15F), std::log(0.3F)};
  sampling_settings settings;
  settings.min_p = 0.35F;
  CHECK(support(logits, settings) == ids{1, 3});
  settings.min_p = 0.25F;
  CHECK(support(logits, settings) == ids{1, 2, 3});
  settings.min_p = 1.0F;
  CHECK(support(logits, settings) == ids{1});
}

TEST_CASE("one token is always left, whatever is filtered") {
  sampling_settings settings;
  settings.top_k = 1;
  settings.top_p = 1e-30F;
  settings.min_p = 1;
  CHECK(support({-50, -49, -51}, settings) == ids{1});
  CHECK(support({3}, settings) == ids{0});
}

TEST_CASE("bias moves a logit before everything else") {
  sampling_settings settings;
  settings.bias = {{2, 5.0F}, {0, -100.0F}};
  CHECK(greedy({4, 3, 0}, settings) == 2);
  settings.bias = {{1, -100.0F}, {2, -100.0F}};
  CHECK(support({0, 3, 3}, settings) == ids{0});
  settings.bias = {{1, 2.0F}, {1, 2.0F}};
  CHECK(greedy({3, 0, 3.5F}, settings) == 1);
}

TEST_CASE("the repetition penalty divides positive and multiplies other logits once in its window") {
  sampling_settings settings;
  settings.repeat_penalty = 2.0F;
  // 4 / 2 is below 2.5; twice in the window still counts once, or 4 / 4 would be below 1.5.
  CHECK(greedy({4, 2.5F, 0}, settings, {0}, 1) == 1);
  CHECK(greedy({4, 1.5F, 0}, settings, {0, 0}, 2) == 0);
  CHECK(greedy({-1, -1.5F}, settings, {0}, 0) == 1);
  CHECK(greedy({-1, -2.5F}, settings, {0}, 0) == 0);
  settings.penalty_window = 2;
  CHECK(greedy({4, 2.5F, 0}, settings, {0, 2, 2}, 3) == 0);
  CHECK(greedy({4, 2.5F, 0}, settings, {2, 0, 2}, 3) == 1);
  settings.penalty_window = 0;
  CHECK(greedy({4, 2.5F, 0}, settings, {0, 0, 0}, 3) == 0);
}

TEST_CASE("frequency and presence penalties count generated tokens only") {
  sampling_settings settings;
  settings.frequency_penalty = 0.5F;
  CHECK(greedy({4, 3.1F}, settings, {0, 0, 0, 0}, 4) == 0);
  CHECK(greedy({4, 3.1F}, settings, {0, 0, 0, 0}, 3) == 0); // 4 - 0.5
  CHECK(greedy({4, 3.1F}, settings, {0, 0, 0, 0}, 2) == 1); // 4 - 1
  settings.frequency_penalty = 0;
  settings.presence_penalty = 1.0F;
  CHECK(greedy({4, 3.1F}, settings, {0}, 0) == 1);
  CHECK(greedy({4, 2.9F}, settings, {0, 0, 0}, 0) == 0); // once, however often
  settings.frequency_penalty = -2;
  settings.presence_penalty = -2;
  CHECK(greedy({4, 0.5F}, settings, {1}, 0) == 1);
}

TEST_CASE("penalties leave nothing behind in the scratch memory") {
  sampling_settings settings;
  settings.temperature = 0;
  settings.repeat_penalty = 2.0F;
  settings.frequency_penalty = 1.0F;
  sampler_scratch scratch;
  const std::vector<float> logits{4, 3.5F, 0};
  const std::vector<token_id> context{0, 0};
  CHECK(sample(logits, settings, 0, context, 0, scratch).token == 1);
  CHECK(sample(logits, settings, 0, {}, 0, scratch).token == 0);
}

TEST_CASE("penalties of huge logits do not make infinities win") {
  sampling_settings settings;
  settings.repeat_penalty = 1e-30F;
  settings.bias = {{0, 100.0F}};
  CHECK(greedy({infinity, infinity, 1e38F}, settings, {2}, 0) == 0);
}

TEST_CASE("log-probabilities are those of the logits as they came") {
  sampling_settings settings;
  settings.temperature = 0;
  settings.logprobs = true;
  settings.top_logprobs = 2;
  settings.bias = {{2, 100.0F}};
  const std::vector<float> logits{std::log(0.1F), std::log(0.6F), std::log(0.3F)};
  const auto out = draw(logits, settings);
  CHECK(out.token == 2);
  CHECK(out.logprob == Approx(std::log(0.3)).epsilon(1e-6));
  REQUIRE(out.top.size() == 2);
  CHECK(out.top[0].first == 1);
  CHECK(out.top[0].second == Approx(std::log(0.6)).epsilon(1e-6));
  CHECK(out.top[1].first == 2);
}

TEST_CASE("log-probabilities come only when asked for, and more than the vocabulary is the vocabulary") {
  CHECK(draw({0, 0}, {}).logprob == 0);
  sampling_settings settings;
  settings.logprobs = true;
  CHECK(draw({0, 0}, settings).logprob == Approx(-std::log(2.0)));
  CHECK(draw({0, 0}, settings).top.empty());
  settings.top_logprobs = 20;
  const auto out = draw({0, 0, 1}, settings);
  REQUIRE(out.top.size() == 3);
  CHECK(out.top[0].first == 2);
  CHECK(out.top[1].first == 0);
  CHECK(out.top[2].first == 1);
  CHECK(out.top[1].second == out.top[2].second);
}

TEST_CASE("log-probabilities are finite, however unlikely the token") {
  sampling_settings settings;
  settings.logprobs = true;
  settings.top_logprobs = 3;
  settings.temperature = 0;
  settings.bias = {{0, 100.0F}};
  const auto out = draw({-50, not_a_number, 50}, settings);
  CHECK(out.token == 0);
  CHECK(out.logprob == Approx(-100.0));
  CHECK(out.top[2] == std::pair<token_id, float>{1, least_logprob});
  CHECK(draw({0, infinity}, settings).top[1].second == least_logprob);
}
