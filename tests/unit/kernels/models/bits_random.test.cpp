// Properties over random histories: whatever joins, leaves, is cut back, forked or verified in one block, a
// row's logits are those of its sequence alone.
#include "tests/support/tiny_llama.hpp"
#include "tests/unit/kernels/models/running.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <cstring>
#include <limits>
#include <list>
#include <map>
#include <random>

using namespace godwit;
using gguf::tensor_type;

namespace {

constexpr std::uint32_t vocabulary = 99;

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

/// The logits of each prefix of token lists, each computed alone and once.
class alone {
 public:
  explicit alone(const memory_model& made) : runs_{load(made.file(), "cpu")} {
    pool_ = page_pool::create(runs_->shape().kv, 64).value();
  }

  /// Logits behind the last of the tokens.
  const std::vector<float>& behind(const std::vector<token_id>& tokens) {
    auto& found = known_[tokens];
    if (found.empty()) {
      sequence target{*pool_};
      REQUIRE(target.reserve(static_cast<std::uint32_t>(tokens.size())));
      found.resize(vocabulary);
      const chunk part{&target, tokens, logits_wanted::last};
      runs_->forward({&part, 1}, found);
    }
    return found;
  }

 private:
  std::unique_ptr<model> runs_;
  std::unique_ptr<page_pool> pool_;
  std::map<std::vector<token_id>, std::vector<float>> known_;
};

struct stream {
  sequence target;
  std::vector<token_id> tokens;
};

/// Steps over streams that come and go at random.
void random_history(const memory_model& made, alone& oracle, std::uint32_t seed, std::uint32_t threads) {
  std::mt19937 random{seed};
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  const auto runs = load(made.file(), "cpu", threads, 128);
  const auto pool = page_pool::create(runs->shape().kv, 400).value();
  std::list<stream> streams;
  for (int step = 0; step < 12; ++step) {
    // Some leave, some are cut back, some are forked, some join.
    for (auto it = streams.begin(); it != streams.end();) {
      const auto fate = below(12);
      if (fate == 0) {
        it = streams.erase(it);
        continue;
      }
      if (fate == 1 && it->tokens.size() > 1) {
        it->tokens.resize(1 + below(it->tokens.size() - 1));
        it->target.truncate(static_cast<position_t>(it->tokens.size()));
      }
      if (fate == 2 && streams.size() < 12) {
        streams.push_front({it->target.fork(), it->tokens});
      }
      ++it;
    }
    for (auto joining = below(4); joining > 0 && streams.size() < 12; --joining) {
      streams.push_back({sequence{*pool}, {}});
    }
    std::vector<chunk> chunks;
    std::vector<const stream*> which;
    std::size_t budget = runs->max_rows();
    for (auto& each : streams) {
      constexpr std::size_t sizes[] = {1, 1, 1, 2, 5, 8, 16, 40};
      const std::size_t count = std::min({sizes[below(8)], budget, 200 - each.tokens.size()});
      if (count == 0 || below(5) == 0) {
        continue;
      }
      for (std::size_t i = 0; i < count; ++i) {
        each.tokens.push_back(static_cast<token_id>(below(vocabulary)));
      }
      REQUIRE(each.target.reserve(static_cast<std::uint32_t>(count)));
      chunks.push_back({&each.target, std::span{each.tokens}.last(count), logits_wanted::last});
      which.push_back(&each);
      budget -= count;
    }
    std::vector<float> logits(chunks.size() * vocabulary);
    runs->forward(chunks, logits);
    for (std::size_t i = 0; i < which.size(); ++i) {
      INFO("seed " << seed << ", step " << step << ", chunk " << i);
      REQUIRE(
        same_bits(std::span{logits}.subspan(i * vocabulary, vocabulary), oracle.behind(which[i]->tokens)));
    }
  }
}

} // namespace

TEST_CASE("streams that join, leave, fork and are cut back at random get the bits of each alone") {
  const memory_model made{tiny_llama{.embedding = 128, .heads = 8, .kv_heads = 2}};
  alone oracle{made};
  for (std::uint32_t seed = 1; seed <= 8; ++seed) {
    random_history(made, oracle, seed, 1 + seed % 4);
  }
}

TEST_CASE("a row in a batch of 2, 7 or 64 has the bits of the row alone, on 1 to 4 threads") {
  const memory_model made{tiny_llama{}};
  alone oracle{made};
  for (const std::uint32_t threads : {1U, 2U, 3U, 4U}) {
    const auto runs = load(made.file(), "cpu", threads);
    for (const std::size_t batch : {1U, 2U, 7U, 64U}) {
      const auto pool = page_pool::create(runs->shape().kv, 256).value();
      std::list<stream> streams;
      std::vector<chunk> prompts;
      for (std::size_t i = 0; i < batch; ++i) {
        auto& each = streams.emplace_back(stream{sequence{*pool}, {}});
        each.tokens = random_tokens(1 + i % 5, static_cast<std::uint32_t>(i + 1), vocabulary);
        REQUIRE(each.target.reserve(8));
        prompts.push_back({&each.target, each.tokens, logits_wanted::none});
      }
      runs->forward(prompts, {});
      std::vector<chunk> next;
      for (auto& each : streams) {
        each.tokens.push_back(static_cast<token_id>(each.tokens.front() * 7 % vocabulary));
        next.push_back({&each.target, std::span{each.tokens}.last(1), logits_wanted::last});
      }
      std::vector<float> logits(batch * vocabulary);
      runs->forward(next, logits);
      std::size_t row = 0;
      for (const auto& each : streams) {
        INFO("batch of " << batch << ", row " << row << ", " << threads << " threads");
        REQUIRE(
          same_bits(std::span{logits}.subspan(row++ * vocabulary, vocabulary), oracle.behind(each.tokens)));
      }
    }
  }
}

TEST_CASE("a block that is verified has the bits of single steps, and so has what follows a cut") {
  const memory_model made{tiny_llama{}};
  const auto tokens = random_tokens(60, 3, vocabulary);
  const auto runs = load(made.file(), "cpu", 2);
  const auto pool = page_pool::create(runs->shape().kv, 64).value();
  sequence steps{*pool};
  const auto expected = append(*runs, steps, tokens, 1);
  for (const std::size_t block : {2U, 3U, 8U, 13U}) {
    sequence target{*pool};
    append(*runs, target, std::span{tokens}.first(20));
    // Every block is followed by wrong tokens, which are cut off again.
    for (std::size_t at = 20; at + block <= tokens.size(); at += block) {
      const auto right = append(*runs, target, std::span{tokens}.subspan(at, block));
      REQUIRE(same_bits(right, std::span{expected}.subspan(at * vocabulary, block * vocabulary)));
      append(*runs, target, random_tokens(5, static_cast<std::uint32_t>(at), vocabulary));
      target.truncate(static_cast<position_t>(at + block));
    }
  }
}

TEST_CASE("behind a prefix that a cache kept the bits are those behind one computed anew") {
  const memory_model made{tiny_llama{}};
  const auto tokens = random_tokens(150, 12, vocabulary);
  const auto runs = load(made.file(), "cpu", 2);
  const auto pool = page_pool::create(runs->shape().kv, 64).value();
  std::vector<float> expected;
  std::vector<block_id> kept;
  {
    sequence cold{*pool};
    expected = append(*runs, cold, tokens);
    const auto blocks = cold.blocks();
    kept.assign(blocks.begin(), blocks.begin() + 8);
    pool->retain_blocks(kept);
  }
  for (const std::size_t step : {1U, 7U, 512U}) {
    for (const std::size_t blocks : {1U, 5U, 8U}) {
      const auto found = std::span{kept}.first(blocks);
      pool->retain_blocks(found);
      sequence warm{*pool};
      warm.adopt(found);
      const std::size_t start = blocks * page_tokens;
      const auto made_warm = append(*runs, warm, std::span{tokens}.subspan(start), step);
      INFO(blocks << " blocks from the cache, chunks of " << step);
      CHECK(same_bits(made_warm, std::span{expected}.subspan(start * vocabulary)));
    }
  }
  pool->release_blocks(kept);
  CHECK(pool->used_pages() == 0);
}

TEST_CASE("the last page of 8,192 positions is like every other") {
  const memory_model made{
    tiny_llama{.layers = 1, .context = 8192, .embedding = 32, .feed_forward = 32, .heads = 2, .kv_heads = 1}};
  const auto tokens = random_tokens(8192, 4, vocabulary);
  const auto runs = load(made.file(), "cpu", 2);
  const auto pool = page_pool::create(runs->shape().kv, 2 * 512 + 1).value();
  const auto read = [&](std::size_t step, std::size_t singles) {
    sequence target{*pool};
    std::vector<float> logits(vocabulary);
    for (std::size_t at = 0; at < tokens.size();) {
      const std::size_t left = tokens.size() - at;
      const std::size_t count = left <= singles ? 1 : std::min(step, left - singles);
      REQUIRE(target.reserve(static_cast<std::uint32_t>(count)));
      const chunk part{&target, std::span{tokens}.subspan(at, count), logits_wanted::last};
      runs->forward({&part, 1}, logits);
      at += count;
    }
    CHECK(target.length() == 8192);
    return logits;
  };
  const auto expected = read(512, 0);
  CHECK(same_bits(read(500, 17), expected));
}

TEST_CASE("weights of one token that are no numbers spoil only rows that read them") {
  // Token 5's row of the table holds what is no number: its own logit is none for everybody, the rest is for
  // sequences without it as before.
  tiny_llama form{.table_type = tensor_type::f32};
  const memory_model good{form};
  auto bytes = form.write().finish();
  auto file = gguf::file::parse(bytes).value();
  const auto table = file->find_tensor("token_embd.weight")->data;
  const auto offset = static_cast<std::size_t>(table.data() - bytes.data());
  const float values[] = {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()};
  std::memcpy(bytes.data() + offset + 5 * form.embedding * sizeof(float), values, sizeof values);
  file = gguf::file::parse(bytes).value();

  const auto runs = load(file, "cpu", 2);
  const auto pool = page_pool::create(runs->shape().kv, 64).value();
  alone oracle{good};
  sequence spoilt{*pool};
  sequence clean{*pool};
  const std::vector<token_id> bad{1, 7, 5};
  const std::vector<token_id> tokens{1, 6, 7};
  REQUIRE(spoilt.reserve(3));
  REQUIRE(clean.reserve(3));
  const chunk chunks[] = {{&spoilt, bad, logits_wanted::last}, {&clean, tokens, logits_wanted::last}};
  std::vector<float> logits(2 * vocabulary);
  runs->forward(chunks, logits);
  CHECK(std::all_of(logits.begin(), logits.begin() + vocabulary, [](float x) { return std::isnan(x); }));
  CHECK(std::isnan(logits[vocabulary + 5]));
  auto expected = oracle.behind(tokens);
  expected[5] = logits[vocabulary + 5] = 0;
  CHECK(same_bits(std::span{logits}.subspan(vocabulary), expected));
}
