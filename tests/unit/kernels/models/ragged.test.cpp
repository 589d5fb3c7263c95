// Models over sequences whose heads keep different positions.
#include "kernels/ops/dispatch.hpp"
#include "tests/support/tiny_llama.hpp"
#include "tests/unit/kernels/models/running.hpp"

#include <catch2/catch.hpp>

#include <cstring>
#include <numeric>

using namespace godwit;

namespace {

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

std::vector<position_t> from_to(position_t first, position_t end) {
  std::vector<position_t> made(end - first);
  std::iota(made.begin(), made.end(), first);
  return made;
}

/// Each head keeps a random part of its own.
void cut(sequence& target, std::uint32_t seed) {
  std::mt19937 dice(seed);
  const auto& shape = target.pool().shape();
  for (std::uint32_t layer = 0; layer < shape.layers; ++layer)
    for (std::uint32_t head = 0; head < shape.kv_heads; ++head) {
      const auto share = dice() % 5; // of 4: some heads keep nothing, some everything
      std::vector<position_t> wanted;
      for (std::uint32_t slot = 0; slot < target.kept(layer, head); ++slot)
        if (dice() % 4 < share)
          wanted.push_back(target.ragged() ? target.positions(layer, head)[slot] : slot);
      REQUIRE(target.keep(layer, head, wanted));
    }
}

} // namespace

TEST_CASE("windowed layers may drop what their windows have passed: no bit of the logits changes") {
  const auto file =
    gguf::file::open(std::string{GODWIT_SOURCE_DIR} + "/tests/golden/models/gemma3.gguf").value();
  const auto tokens = random_tokens(240, 11, 96);
  constexpr position_t cut_at = 200;
  for (const auto& line : ops::implementations("cpu")) {
    if (!line.available)
      continue;
    INFO(line.name);
    const auto runs = load(file, line.name);
    const auto pool = page_pool::create(runs->shape().kv, 64).value();
    sequence whole(*pool);
    const auto expected = append(*runs, whole, tokens);
    sequence less(*pool);
    append(*runs, less, std::span(tokens).first(cut_at));
    // The reference sums one by one; the sums of the cpu ops have segments of 128 positions, which then have
    // to hold the same ones.
    const position_t first = line.name == "reference" ? cut_at - 36 : 128;
    std::uint32_t freed = 0;
    for (const std::uint32_t layer : {0U, 1U, 2U, 3U, 4U, 6U})
      for (std::uint32_t head = 0; head < runs->shape().kv.kv_heads; ++head)
        freed += less.keep(layer, head, from_to(first, cut_at)).value();
    CHECK(freed == first / page_tokens * 6 * runs->shape().kv.kv_heads);
    CHECK(same_bits(
      append(*runs, less, std::span(tokens).subspan(cut_at), 9), std::span(expected).subspan(cut_at * 96)));
  }
}

TEST_CASE("a ragged sequence gets the same bits in every batch, chunk and thread, and as a fork") {
  const memory_model made{tiny_llama{}};
  const auto tokens = random_tokens(330, 12, 99);
  const auto start = std::span(tokens).first(190);
  const auto rest = std::span(tokens).subspan(190);
  for (const std::string ops : {"cpu", "reference"}) {
    std::vector<float> expected;
    for (const std::uint32_t threads : {1U, 3U})
      for (const std::size_t step : {1U, 7U, 512U}) {
        // Threads wait for each other at every op: on a busy machine that takes long.
        if (threads != 1 && step == 1)
          continue;
        const auto runs = load(made.file(), ops, threads);
        const auto pool = page_pool::create(runs->shape().kv, 64).value();
        sequence target(*pool);
        append(*runs, target, start, 50);
        cut(target, 1);
        auto twin = target.fork();
        const auto logits = append(*runs, target, rest, step);
        expected = expected.empty() ? logits : expected;
        CHECK(same_bits(logits, expected));
        CHECK(same_bits(append(*runs, twin, rest, 40), expected));
        twin.truncate(220);
        CHECK(same_bits(append(*runs, twin, rest.subspan(30)), std::span(expected).subspan(30 * 99)));
      }
    // Beside a sequence that keeps everything, in one step; that one does not notice.
    const auto runs = load(made.file(), ops, 2);
    const auto pool = page_pool::create(runs->shape().kv, 64).value();
    sequence ragged(*pool);
    append(*runs, ragged, start);
    auto plain = ragged.fork();
    cut(ragged, 1);
    REQUIRE(ragged.reserve(140));
    REQUIRE(plain.reserve(140));
    const chunk chunks[] = {{&plain, rest, logits_wanted::last}, {&ragged, rest, logits_wanted::all}};
    std::vector<float> logits(141 * 99);
    runs->forward(chunks, logits);
    CHECK(same_bits(std::span(logits).subspan(99), expected));
    sequence alone(*pool);
    const auto untouched = append(*runs, alone, tokens);
    CHECK(same_bits(std::span(logits).first(99), std::span(untouched).subspan(329 * 99)));
    CHECK_FALSE(same_bits(std::span(expected).first(99), std::span(untouched).subspan(190 * 99, 99)));
  }
}
