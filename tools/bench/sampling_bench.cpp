#include "tools/bench/sampling_bench.hpp"

#include "kernels/gguf/file.hpp"
#include "kernels/memory/page_pool.hpp"
#include "kernels/memory/sequence.hpp"
#include "kernels/models/model.hpp"
#include "kernels/sampling/row_sampler.hpp"
#include "tools/bench/measuring.hpp"

#include <algorithm>
#include <chrono>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace godwit::bench {

namespace {

constexpr std::uint32_t context = 128;

struct way {
  std::string name;
  sampling_settings settings;
};

std::vector<way> ways() {
  std::vector<way> made;
  const auto add = [&](std::string name, auto change) {
    sampling_settings settings;
    change(settings);
    made.push_back({std::move(name), std::move(settings)});
  };
  add("greedy", [](auto& s) { s.temperature = 0; });
  add("temperature 0.8", [](auto& s) { s.temperature = 0.8F; });
  add("top_k 40", [](auto& s) { s.top_k = 40; });
  add("top_p 0.9", [](auto& s) { s.top_p = 0.9F; });
  add("min_p 0.05", [](auto& s) { s.min_p = 0.05F; });
  add("top_k 40, top_p 0.9, repeat_penalty 1.1", [](auto& s) {
    s.top_k = 40;
    s.top_p = 0.9F;
    s.repeat_penalty = 1.1F;
  });
  add("top_p 0.9, 20 logprobs", [](auto& s) {
    s.top_p = 0.9F;
    s.logprobs = true;
    s.top_logprobs = 20;
  });
  return made;
}

} // namespace

result<sampling_rates> sampling(const model_settings& settings, std::uint32_t rows) {
  const auto loaded = load(settings);
  if (!loaded) {
    return fail(loaded);
  }
  const auto& runs = loaded->runs;
  const auto& shape = runs->shape();
  if (rows == 0 || rows > runs->max_rows()) {
    return fail(errc::invalid_argument,
      "rows is " + std::to_string(rows) + ", outside of 1 to " + std::to_string(runs->max_rows()), "rows");
  }
  const std::uint32_t length = std::min(context, shape.context - 1);
  auto pool = page_pool::create(shape.kv, blocks_for(length + 1) + rows);
  if (!pool) {
    return fail(pool);
  }
  const auto prompt = any_tokens(length, shape.vocabulary);
  const auto last = any_tokens(rows, shape.vocabulary, 2);
  std::vector<float> logits(std::size_t{rows} * shape.vocabulary);
  sequence trunk{**pool};
  if (auto read = read_prompt(*runs, trunk, prompt, std::span{logits}.first(shape.vocabulary)); !read) {
    return fail(read);
  }
  std::vector<sequence> streams;
  for (std::uint32_t i = 0; i < rows; ++i) {
    streams.push_back(trunk.fork());
  }

  const auto all = ways();
  std::vector<double> steps;
  std::vector<std::vector<double>> seconds(all.size());
  row_sampler sampler;
  std::vector<sampled> tokens(rows);
  std::uint64_t chosen = 0; // keeps the compiler from leaving the work out
  for (std::uint32_t round = 0; round <= settings.rounds; ++round) {
    std::vector<chunk> chunks;
    for (std::uint32_t i = 0; i < rows; ++i) {
      if (auto room = streams[i].reserve(1); !room) {
        return fail(room);
      }
      chunks.push_back({&streams[i], std::span{last}.subspan(i, 1), logits_wanted::last});
    }
    const auto begin = std::chrono::steady_clock::now();
    runs->forward(chunks, logits);
    steps.push_back(seconds_since(begin));
    for (std::size_t w = 0; w < all.size(); ++w) {
      std::vector<sampling_row> wanting;
      for (std::uint32_t i = 0; i < rows; ++i) {
        wanting.push_back({std::span{logits}.subspan(std::size_t{i} * shape.vocabulary, shape.vocabulary),
          &all[w].settings, length + 1, prompt, length / 2});
      }
      const auto start = std::chrono::steady_clock::now();
      sampler.sample(wanting, tokens, runs->threads(),
        [&](std::size_t items, const row_sampler::job& job) { runs->share_out(items, job); });
      seconds[w].push_back(seconds_since(start));
      chosen += tokens.back().token;
    }
    for (auto& stream : streams) {
      stream.truncate(length);
    }
    if (round == 0) {
      steps.clear();
      for (auto& each : seconds) {
        each.clear();
      }
    }
  }
  sampling_rates made{.rows = rows, .step_seconds = median(steps), .ways = {}};
  asm volatile("" : : "r"(chosen));
  for (std::size_t w = 0; w < all.size(); ++w) {
    made.ways.push_back({all[w].name, median(seconds[w])});
  }
  return made;
}

} // namespace godwit::bench
