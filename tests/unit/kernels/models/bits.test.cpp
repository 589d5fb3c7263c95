// A row's logits are the same bits whatever ran beside it and however its sequence came to be.
#include "kernels/ops/dispatch.hpp"
#include "tests/support/tiny_llama.hpp"
#include "tests/unit/kernels/models/running.hpp"

#include <catch2/catch.hpp>

#include <cstring>

using namespace godwit;
using gguf::tensor_type;

namespace {

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

std::vector<std::string> implementations_here() {
  std::vector<std::string> names;
  for (const auto& line : ops::implementations("cpu")) {
    if (line.available) {
      names.push_back(line.name);
    }
  }
  return names;
}

/// The logits of a prompt, run at once on one thread.
std::vector<float> alone(const memory_model& made, const std::string& ops, std::span<const token_id> tokens,
  std::optional<kv_type> kv = std::nullopt) {
  const auto runs = load(made.file(), ops, 1, 512, kv);
  const auto pool = page_pool::create(runs->shape().kv, 64).value();
  sequence target{*pool};
  return append(*runs, target, tokens);
}

} // namespace

TEST_CASE("chunks, threads and targets do not change a bit") {
  const memory_model made{tiny_llama{}};
  const auto tokens = random_tokens(200, 1, 99);
  for (const std::string family : {"cpu:", "reference"}) {
    std::vector<float> expected;
    for (const auto& ops : implementations_here()) {
      if (!ops.starts_with(family)) {
        continue;
      }
      if (expected.empty()) {
        expected = alone(made, ops, tokens);
      }
      for (const std::uint32_t threads : {1U, 2U, 3U, 4U}) {
        const bool slow = ops == "cpu:scalar" || ops == "cpu:sse4";
        if (slow && threads != 2) {
          continue;
        }
        const auto runs = load(made.file(), ops, threads);
        for (const std::size_t step : {1U, 5U, 16U, 64U, 512U}) {
          // More threads than cores meet slowly.
          if ((slow && step != 5 && step != 512) || (threads > 2 && step < 16)
              || (threads > 3 && step < 64)) {
            continue;
          }
          INFO(ops << ", " << threads << " threads, chunks of " << step);
          const auto pool = page_pool::create(runs->shape().kv, 64).value();
          sequence target{*pool};
          CHECK(same_bits(append(*runs, target, tokens, step), expected));
        }
      }
    }
  }
}

TEST_CASE(
  "every type of weights gives the same bits on every target, with long contexts split into segments") {
  for (const auto type :
    {tensor_type::f32, tensor_type::f16, tensor_type::bf16, tensor_type::q4_0, tensor_type::q5_0,
      tensor_type::q5_1, tensor_type::q8_0, tensor_type::q4_k, tensor_type::q5_k, tensor_type::q6_k}) {
    const memory_model made{tiny_llama{.layers = 1,
      .vocabulary = 40,
      .embedding = 256,
      .feed_forward = 256,
      .heads = 8,
      .kv_heads = 2,
      .type = type,
      .value_type = tensor_type::q4_1,
      .table_type = type,
      .tied = false}};
    const auto tokens = random_tokens(140, 2, 40);
    std::vector<float> expected;
    for (const auto& ops : implementations_here()) {
      if (!ops.starts_with("cpu:")) {
        continue;
      }
      INFO(gguf::to_string(type) << " on " << ops);
      if (expected.empty()) {
        expected = alone(made, ops, tokens);
      }
      const auto runs = load(made.file(), ops, 2);
      const auto pool = page_pool::create(runs->shape().kv, 16).value();
      sequence target{*pool};
      CHECK(same_bits(append(*runs, target, tokens, 7), expected));
    }
  }
}

TEST_CASE("sequences that run together get what each gets alone") {
  const memory_model made{tiny_llama{}};
  for (const std::string ops : {"cpu", "reference"}) {
    std::vector<std::vector<token_id>> prompts;
    std::vector<std::vector<float>> expected;
    for (const std::uint32_t length : {200U, 1U, 16U, 33U, 150U, 90U, 17U}) {
      prompts.push_back(random_tokens(length, length, 99));
      expected.push_back(alone(made, ops, prompts.back()));
    }
    for (const std::uint32_t threads : {1U, 2U}) {
      const auto runs = load(made.file(), ops, threads);
      const auto pool = page_pool::create(runs->shape().kv, 64).value();
      std::vector<sequence> targets;
      for (std::size_t i = 0; i < prompts.size(); ++i) {
        targets.emplace_back(*pool);
      }
      // Sequence i joins at step i and appends 1 + i * 7 tokens a step, so that lengths are mixed at random.
      std::vector<std::size_t> done(prompts.size());
      for (std::size_t round = 0;; ++round) {
        std::vector<chunk> chunks;
        std::vector<std::size_t> which;
        for (std::size_t i = 0; i < prompts.size() && i <= round; ++i) {
          const std::size_t count = std::min(1 + i * 7, prompts[i].size() - done[i]);
          if (count != 0) {
            REQUIRE(targets[i].reserve(static_cast<std::uint32_t>(count)).has_value());
            chunks.push_back(
              {&targets[i], std::span{prompts[i]}.subspan(done[i], count), logits_wanted::last});
            done[i] += count;
            which.push_back(i);
          }
        }
        if (chunks.empty() && round >= prompts.size()) {
          break;
        }
        std::vector<float> logits(chunks.size() * 99);
        runs->forward(chunks, logits);
        for (std::size_t c = 0; c < chunks.size(); ++c) {
          const std::size_t i = which[c];
          REQUIRE(same_bits(
            std::span{logits}.subspan(c * 99, 99), std::span{expected[i]}.subspan((done[i] - 1) * 99, 99)));
        }
      }
    }
  }
}

TEST_CASE("forks and cut-back sequences go on as if they had been computed alone") {
  const memory_model made{tiny_llama{}};
  const auto tokens = random_tokens(150, 5, 99);
  const auto other = random_tokens(30, 6, 99);
  auto joined = std::vector<token_id>(tokens.begin(), tokens.begin() + 140);
  joined.insert(joined.end(), other.begin(), other.end());
  for (const std::string ops : {"cpu", "reference"}) {
    const auto expected = alone(made, ops, tokens);
    const auto branched = alone(made, ops, joined);
    const auto runs = load(made.file(), ops, 2);
    const auto pool = page_pool::create(runs->shape().kv, 64).value();
    sequence trunk{*pool};
    append(*runs, trunk, std::span{tokens}.first(140));
    auto branch = trunk.fork();
    // The branch writes into a copy of the shared last block; the trunk does not notice.
    CHECK(same_bits(append(*runs, branch, other, 3), std::span{branched}.subspan(140 * 99)));
    CHECK(
      same_bits(append(*runs, trunk, std::span{tokens}.subspan(140)), std::span{expected}.subspan(140 * 99)));
    branch.truncate(140);
    CHECK(same_bits(
      append(*runs, branch, std::span{tokens}.subspan(140)), std::span{expected}.subspan(140 * 99)));
  }
}

TEST_CASE("pages of fewer bits change no bit with chunks, threads, targets, forks and cuts") {
  const memory_model made{tiny_llama{}};
  const auto tokens = random_tokens(200, 11, 99);
  for (const auto kv : {kv_type::bf16, kv_type::int8}) {
    for (const std::string family : {"cpu:", "reference"}) {
      std::vector<float> expected;
      for (const auto& ops : implementations_here()) {
        if (!ops.starts_with(family)) {
          continue;
        }
        if (expected.empty()) {
          expected = alone(made, ops, tokens, kv);
          CHECK_FALSE(same_bits(expected, alone(made, ops, tokens)));
        }
        for (const std::uint32_t threads : {1U, 2U}) {
          const auto runs = load(made.file(), ops, threads, 512, kv);
          CHECK(runs->shape().kv.type == kv);
          for (const std::size_t step : {7U, 16U, 64U, 512U}) {
            if ((ops == "cpu:scalar" || ops == "cpu:sse4") && step != 16 && step != 512) {
              continue;
            }
            INFO(to_string(kv) << ", " << ops << ", " << threads << " threads, chunks of " << step);
            const auto pool = page_pool::create(runs->shape().kv, 64).value();
            sequence target{*pool};
            CHECK(same_bits(append(*runs, target, tokens, step), expected));
            // Cut into the middle of a page and gone on; a fork writes into a copy of the shared one.
            auto branch = target.fork();
            branch.truncate(150);
            CHECK(same_bits(append(*runs, branch, std::span{tokens}.subspan(150), step),
              std::span{expected}.subspan(150 * 99)));
          }
        }
      }
    }
  }
}

TEST_CASE("logits come for the rows that want them, in order, up to the last position of the context") {
  const memory_model made{tiny_llama{.context = 48}};
  const auto tokens = random_tokens(48, 8, 99);
  const auto expected = alone(made, "cpu", tokens);
  const auto runs = load(made.file(), "cpu", 2);
  const auto pool = page_pool::create(runs->shape().kv, 8).value();
  sequence one{*pool};
  sequence two{*pool};
  REQUIRE(one.reserve(20).has_value());
  REQUIRE(two.reserve(48).has_value());
  const chunk chunks[] = {{&one, std::span{tokens}.first(20), logits_wanted::none},
    {&two, std::span{tokens}.first(45), logits_wanted::last}};
  std::vector<float> logits(99);
  runs->forward(chunks, logits);
  CHECK(one.length() == 20);
  CHECK(two.length() == 45);
  CHECK(same_bits(logits, std::span{expected}.subspan(44 * 99, 99)));
  CHECK(same_bits(append(*runs, two, std::span{tokens}.subspan(45)), std::span{expected}.subspan(45 * 99)));
  CHECK(same_bits(append(*runs, one, std::span{tokens}.subspan(20)), std::span{expected}.subspan(20 * 99)));
}

TEST_CASE("the quantised ops stay near the reference") {
  const memory_model made{tiny_llama{}};
  const auto tokens = random_tokens(200, 9, 99);
  const auto exact = alone(made, "reference", tokens);
  const auto fast = alone(made, "cpu", tokens);
  double error = 0;
  double size = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    error += (fast[i] - exact[i]) * (fast[i] - exact[i]);
    size += exact[i] * exact[i];
  }
  // Each of the model's products is off by about half a percent (8 bits for the greatest of 32 activations),
  // and random gains and softmax amplify that on the way.
  CHECK(error < 0.05 * 0.05 * size);
}

TEST_CASE("float weights leave only the rounding of float sums and of keys and values") {
  const memory_model made{
    tiny_llama{.type = tensor_type::f32, .value_type = tensor_type::f16, .table_type = tensor_type::bf16}};
  const auto tokens = random_tokens(100, 10, 99);
  const auto exact = alone(made, "reference", tokens);
  const auto fast = alone(made, "cpu", tokens);
  double worst = 0;
  double size = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    worst = std::max<double>(worst, std::abs(fast[i] - exact[i]));
    size = std::max<double>(size, std::abs(exact[i]));
  }
  CHECK(worst < size * 0x1p-10 * 4);
}
