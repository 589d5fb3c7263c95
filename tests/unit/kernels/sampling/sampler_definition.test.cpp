// The sampler against its definition, written down again in double with the C library's exp and full sorts.
// The two may part only where the random number falls within rounding of a border between tokens.
#include "kernels/sampling/philox.hpp"
#include "kernels/sampling/sampler.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <vector>

using namespace godwit;

namespace {

struct outcome {
  token_id token;
  double margin; ///< how near another token, or another set of kept ones, was
};

std::vector<double> penalised(const std::vector<float>& logits, const sampling_settings& settings,
  const std::vector<token_id>& context, std::uint32_t prompt_length) {
  std::vector<double> out(logits.begin(), logits.end());
  for (const auto& [token, bias] : settings.bias)
    out[token] += static_cast<double>(bias);
  for (token_id token = 0; token < out.size(); ++token) {
    const auto window = std::min<std::size_t>(settings.penalty_window, context.size());
    if (std::count(context.end() - static_cast<std::ptrdiff_t>(window), context.end(), token) > 0)
      out[token] = out[token] > 0 ? out[token] / static_cast<double>(settings.repeat_penalty)
                                  : out[token] * static_cast<double>(settings.repeat_penalty);
    const auto times = std::count(context.begin() + prompt_length, context.end(), token);
    if (times > 0)
      out[token] -= static_cast<double>(times) * static_cast<double>(settings.frequency_penalty)
                    + static_cast<double>(settings.presence_penalty);
  }
  return out;
}

outcome defined(const std::vector<float>& logits, const sampling_settings& settings, position_t position,
  const std::vector<token_id>& context, std::uint32_t prompt_length) {
  const auto l = penalised(logits, settings, context, prompt_length);
  const double greatest = *std::ranges::max_element(l);
  std::vector<double> w(l.size());
  std::ranges::transform(l, w.begin(),
    [&](double x) { return std::exp((x - greatest) / static_cast<double>(settings.temperature)); });
  double margin = 1;

  std::vector<token_id> order(l.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, [&](token_id a, token_id b) { return l[a] > l[b]; });
  if (settings.top_k > 0 && settings.top_k < order.size()) {
    // Tokens closer than rounding may change places.
    margin = std::min(margin, l[order[settings.top_k - 1]] - l[order[settings.top_k]]);
    order.resize(settings.top_k);
  }
  const auto sum_of = [&] {
    return std::accumulate(
      order.begin(), order.end(), 0.0, [&](double sum, token_id t) { return sum + w[t]; });
  };
  if (settings.top_p < 1) {
    const double whole = sum_of();
    double sum = 0;
    std::size_t kept = 0;
    while (kept < order.size() && sum < static_cast<double>(settings.top_p) * whole) {
      sum += w[order[kept++]];
      margin = std::min(margin, std::abs(sum / whole - static_cast<double>(settings.top_p)));
    }
    // Equal ones are in the order of their ids on both sides.
    if (kept < order.size() && l[order[kept - 1]] != l[order[kept]])
      margin = std::min(margin, l[order[kept - 1]] - l[order[kept]]);
    order.resize(kept);
  }
  std::erase_if(order, [&](token_id t) {
    margin = std::min(margin, std::abs(w[t] - static_cast<double>(settings.min_p)));
    return w[t] < static_cast<double>(settings.min_p);
  });
  std::ranges::sort(order);
  const double whole = sum_of();
  const double u = uniform_at(settings.seed, position);
  double sum = 0;
  token_id chosen = order.back();
  for (const auto token : order) {
    sum += w[token] / whole;
    margin = std::min(margin, std::abs(sum - u));
    if (sum > u) {
      chosen = token;
      break;
    }
  }
  return {chosen, margin};
}

} // namespace

TEST_CASE("random settings over random logits choose the token that the definition chooses") {
  std::mt19937 random(11);
  const auto unit = [&] { return static_cast<float>(random() >> 8) * 0x1p-24F; };
  sampler_scratch scratch;
  int compared = 0;
  for (int round = 0; round < 1500; ++round) {
    const auto vocabulary = 1 + random() % 700;
    std::vector<float> logits(vocabulary);
    std::ranges::generate(logits, [&] { return (unit() + unit() + unit() - 1.5F) * 8; });
    std::vector<token_id> context(random() % 40);
    std::ranges::generate(context, [&] { return static_cast<token_id>(random() % vocabulary); });

    sampling_settings settings;
    settings.temperature = 0.2F + 1.5F * unit();
    settings.seed = random();
    if (random() % 2 == 0)
      settings.top_k = 1 + static_cast<std::uint32_t>(random() % 80);
    if (random() % 2 == 0)
      settings.top_p = 0.1F + 0.9F * unit();
    if (random() % 2 == 0)
      settings.min_p = 0.3F * unit();
    if (random() % 2 == 0)
      settings.repeat_penalty = 0.8F + 0.7F * unit();
    if (random() % 2 == 0)
      settings.frequency_penalty = 2 * unit() - 1;
    if (random() % 2 == 0)
      settings.presence_penalty = 2 * unit() - 1;
    if (random() % 2 == 0)
      settings.bias = {{static_cast<token_id>(random() % vocabulary), 10 * unit() - 5}};
    settings.penalty_window = static_cast<std::uint32_t>(random() % 30);
    const auto position = static_cast<position_t>(context.size());
    const auto prompt = context.empty() ? 0 : static_cast<std::uint32_t>(random() % context.size());

    const auto expected = defined(logits, settings, position, context, prompt);
    const auto real = sample(logits, settings, position, context, prompt, scratch);
    if (expected.margin < 1e-5)
      continue;
    ++compared;
    INFO("round " << round);
    REQUIRE(real.token == expected.token);
  }
  CHECK(compared > 1200);
}

TEST_CASE("a large vocabulary with a flat distribution is cut where the definition cuts it") {
  std::mt19937 random(5);
  std::vector<float> logits(49'152);
  std::ranges::generate(logits, [&] { return static_cast<float>(random() >> 8) * 0x1p-24F; });
  sampler_scratch scratch;
  for (const std::uint32_t top_k : {0U, 3000U})
    for (const float top_p : {0.3F, 0.95F, 1.0F}) {
      sampling_settings settings;
      settings.top_k = top_k;
      settings.top_p = top_p;
      const auto expected = defined(logits, settings, 5, {}, 0);
      if (expected.margin > 1e-7)
        CHECK(sample(logits, settings, 5, {}, 0, scratch).token == expected.token);
    }
}

TEST_CASE("top_p of a large vocabulary is cut where the definition cuts it, from steep to flat") {
  // An odd size, and some weights that are equal.
  std::mt19937 random(8);
  std::normal_distribution<float> normal(0, 1);
  sampler_scratch scratch;
  int compared = 0;
  for (const float spread : {0.05F, 0.7F, 3.0F, 12.0F}) {
    std::vector<float> logits(20'001);
    std::ranges::generate(logits, [&] { return std::round(normal(random) * 4096) / 4096 * spread; });
    logits[20'000] = std::nanf("");
    for (const float top_p : {0.01F, 0.2F, 0.5F, 0.9F, 0.99F, 0.9999F})
      for (const float min_p : {0.0F, 0.02F})
        for (const float temperature : {0.3F, 1.0F}) {
          sampling_settings settings;
          settings.top_p = top_p;
          settings.min_p = min_p;
          settings.temperature = temperature;
          settings.seed = random();
          auto finite = logits;
          finite[20'000] = -1e4F;
          const auto expected = defined(finite, settings, 5, {}, 0);
          if (expected.margin < 1e-6)
            continue;
          ++compared;
          INFO("spread " << spread << ", top_p " << top_p << ", min_p " << min_p << ", temperature "
                         << temperature);
          CHECK(sample(logits, settings, 5, {}, 0, scratch).token == expected.token);
        }
  }
  CHECK(compared > 50);
}

TEST_CASE("of equal logits top_p keeps those of the lowest ids, in a vocabulary of any size") {
  sampler_scratch scratch;
  for (const std::size_t size : {1U, 2U, 255U, 257U, 1023U}) {
    const std::vector<float> logits(size, -3.25F);
    sampling_settings settings;
    settings.top_p = 0.5F;
    const auto kept = (size + 1) / 2; // whose weights reach half
    std::size_t greatest = 0;
    for (settings.seed = 0; settings.seed < 6000; ++settings.seed) {
      const auto token = sample(logits, settings, 1, {}, 0, scratch).token;
      REQUIRE(token < kept);
      greatest = std::max<std::size_t>(greatest, token);
    }
    // Some draw of so many takes the last one, but for once in 100,000 vocabularies.
    CHECK(greatest + 1 == kept);
  }
}

TEST_CASE("log-probabilities of a large vocabulary are the log-softmax in double") {
  std::mt19937 random(6);
  std::vector<float> logits(49'152);
  std::ranges::generate(logits, [&] { return static_cast<float>(random() >> 8) * 0x1p-20F; });
  double sum = 0;
  for (const float logit : logits)
    sum += std::exp(static_cast<double>(logit));
  sampling_settings settings;
  settings.top_logprobs = 20;
  sampler_scratch scratch;
  const auto out = sample(logits, settings, 3, {}, 0, scratch);
  CHECK(std::abs(static_cast<double>(out.logprob) - (static_cast<double>(logits[out.token]) - std::log(sum)))
        < 2e-6);
  auto sorted = logits;
  std::ranges::sort(sorted, std::greater{});
  REQUIRE(out.top.size() == 20);
  for (std::size_t i = 0; i < 20; ++i) {
    CHECK(logits[out.top[i].first] == sorted[i]);
    CHECK(std::abs(static_cast<double>(out.top[i].second) - (static_cast<double>(sorted[i]) - std::log(sum)))
          < 2e-6);
  }
}
