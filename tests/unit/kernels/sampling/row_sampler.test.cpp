#include "kernels/sampling/row_sampler.hpp"

#include "kernels/threads/team.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <random>
#include <set>
#include <stdexcept>
#include <vector>

using namespace godwit;

namespace {

constexpr std::size_t vocabulary = 3001;

/// Rows of many kinds, with what they point to.
struct batch {
  explicit batch(std::size_t count) : logits(count * vocabulary), settings(count) {
    std::mt19937 random(3);
    std::normal_distribution<float> normal(0, 3);
    std::ranges::generate(logits, [&] { return normal(random); });
    context.resize(90);
    std::ranges::generate(context, [&] { return static_cast<token_id>(random() % vocabulary); });
    for (std::size_t i = 0; i < count; ++i) {
      auto& how = settings[i];
      how.seed = random();
      how.temperature = i % 5 == 0 ? 0.0F : 0.5F + 0.1F * static_cast<float>(i % 7);
      how.top_p = i % 2 == 0 ? 1.0F : 0.8F;
      how.top_k = i % 3 == 0 ? 50 : 0;
      how.repeat_penalty = i % 4 == 0 ? 1.2F : 1.0F;
      how.top_logprobs = static_cast<std::uint8_t>(i % 6);
      const auto length = 1 + i % context.size();
      rows.push_back(
        {std::span(logits).subspan(i * vocabulary, vocabulary), &how, static_cast<position_t>(length),
          std::span(context).first(length), static_cast<std::uint32_t>(length / 2)});
    }
  }

  std::vector<float> logits;
  std::vector<sampling_settings> settings;
  std::vector<token_id> context;
  std::vector<sampling_row> rows;
};

} // namespace

TEST_CASE("rows get the tokens that each would get alone, whichever thread takes them") {
  const batch all(150);
  std::vector<sampled> alone;
  std::set<token_id> different;
  for (const auto& row : all.rows) {
    sampler_scratch fresh;
    alone.push_back(sample(row.logits, *row.settings, row.position, row.context, row.prompt_length, fresh));
    different.insert(alone.back().token);
  }
  CHECK(different.size() > 100); // rows that were mixed up would show

  for (const std::uint32_t threads : {1U, 2U, 4U}) {
    team workers{threads};
    row_sampler sampler;
    for (const std::size_t count : {std::size_t{150}, std::size_t{1}, std::size_t{0}, std::size_t{64}}) {
      std::vector<sampled> chosen(count);
      sampler.sample(std::span(all.rows).first(count), chosen, threads,
        [&](std::size_t rows, const row_sampler::job& job) {
          workers.run([&](worker& self) {
            for (auto row = self.take(); row < rows; row = self.take())
              job(row, self.index());
          });
        });
      for (std::size_t i = 0; i < count; ++i) {
        INFO(threads << " threads, row " << i);
        REQUIRE(chosen[i].token == alone[i].token);
        REQUIRE(chosen[i].logprob == alone[i].logprob);
        REQUIRE(chosen[i].top == alone[i].top);
      }
    }
  }
}

TEST_CASE("what goes wrong in a row is thrown when all rows are done") {
  const batch all(5);
  std::vector<sampled> chosen(5);
  row_sampler sampler;
  std::size_t done = 0;
  // A thread that was not announced has no memory to work with.
  const auto share_out = [&](std::size_t rows, const row_sampler::job& job) {
    for (std::size_t row = 0; row < rows; ++row, ++done)
      job(row, row == 1 ? 7 : 0);
  };
  CHECK_THROWS_AS(sampler.sample(all.rows, chosen, 1, share_out), std::out_of_range);
  CHECK(done == 5);
}
