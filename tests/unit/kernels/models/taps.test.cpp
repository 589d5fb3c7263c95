// What taps read, against models that end where the tap stands.
#include "tests/support/tiny_llama.hpp"
#include "tests/unit/kernels/models/running.hpp"

#include <catch2/catch.hpp>

#include <array>
#include <cmath>
#include <cstring>

using namespace godwit;

namespace {

constexpr std::uint32_t width = 64;
constexpr std::uint32_t vocabulary = 99;

struct run_result {
  std::vector<float> logits; ///< [tokens, vocabulary]
  std::vector<float> hidden; ///< [layers, tokens, width]
};

/// Runs a prompt in chunks, all of its rows tapped.
run_result tapped(model& runs, std::span<const token_id> tokens, std::span<const std::uint32_t> layers,
  std::size_t step = 512) {
  const auto pool = page_pool::create(runs.shape().kv, 64).value();
  sequence target{*pool};
  run_result out{std::vector<float>(tokens.size() * vocabulary),
    std::vector<float>(layers.size() * tokens.size() * width)};
  for (std::size_t start = 0; start < tokens.size(); start += step) {
    const auto count = std::min(step, tokens.size() - start);
    REQUIRE(target.reserve(static_cast<std::uint32_t>(count)));
    const chunk part{&target, tokens.subspan(start, count), logits_wanted::all, logits_wanted::all};
    std::vector<float> values(layers.size() * count * width);
    runs.forward(
      {&part, 1}, std::span{out.logits}.subspan(start * vocabulary, count * vocabulary), {layers, values});
    for (std::size_t layer = 0; layer < layers.size(); ++layer)
      std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(layer * count * width), count * width,
        out.hidden.begin() + static_cast<std::ptrdiff_t>((layer * tokens.size() + start) * width));
  }
  return out;
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

} // namespace

TEST_CASE("a tap reads what a model of so many layers hands to its last norm") {
  // The tiny models draw their tensors one after the other, so that the layers of a shorter one are the first
  // of a longer one. Its logits are computed by hand from the hidden state, in double.
  const memory_model long_one{tiny_llama{.layers = 4, .table_type = gguf::tensor_type::f32}};
  const auto tokens = random_tokens(40, 3, vocabulary);
  const std::array<std::uint32_t, 2> layers{1, 3};
  const auto runs = load(long_one.file(), "reference");
  const auto made = tapped(*runs, tokens, layers);
  const memory_model short_one{tiny_llama{.layers = 2, .table_type = gguf::tensor_type::f32}};
  const auto expected = tapped(*load(short_one.file(), "reference"), tokens, std::array<std::uint32_t, 1>{1});
  CHECK(same_bits(std::span{made.hidden}.first(expected.hidden.size()), expected.hidden));

  const auto& file = *long_one.file();
  const auto floats = [&](std::string_view name) {
    const auto* tensor = file.find_tensor(name);
    REQUIRE(tensor != nullptr);
    return reinterpret_cast<const float*>(tensor->data.data());
  };
  const auto* gain = floats("output_norm.weight");
  const auto* table = floats("token_embd.weight");
  double worst = 0;
  for (std::size_t row = 0; row < tokens.size(); ++row) {
    const auto* x = made.hidden.data() + (tokens.size() + row) * width;
    double squares = 0;
    for (std::size_t i = 0; i < width; ++i)
      squares += static_cast<double>(x[i]) * static_cast<double>(x[i]);
    const double scale = 1 / std::sqrt(squares / width + 1e-5);
    for (std::size_t token = 0; token < vocabulary; ++token) {
      double sum = 0;
      for (std::size_t i = 0; i < width; ++i)
        sum += static_cast<double>(x[i]) * scale * static_cast<double>(gain[i])
               * static_cast<double>(table[token * width + i]);
      worst = std::max(worst, std::abs(sum - static_cast<double>(made.logits[row * vocabulary + token])));
    }
  }
  CHECK(worst < 1e-4);
}

TEST_CASE("taps have the same bits in every chunk size and on every number of threads, and change no logit") {
  const memory_model made{tiny_llama{.layers = 3}};
  const auto tokens = random_tokens(70, 4, vocabulary);
  const std::array<std::uint32_t, 3> layers{0, 1, 2};
  for (const std::string ops : {"cpu", "reference"}) {
    const auto plain = load(made.file(), ops);
    const auto pool = page_pool::create(plain->shape().kv, 64).value();
    sequence target{*pool};
    const auto logits = append(*plain, target, tokens);
    const auto expected = tapped(*plain, tokens, layers);
    CHECK(same_bits(expected.logits, logits));
    for (const std::uint32_t threads : {1U, 3U})
      for (const std::size_t step : {1U, 7U, 64U}) {
        // More threads than cores meet slowly.
        if (threads != 1 && step == 1)
          continue;
        const auto other = tapped(*load(made.file(), ops, threads), tokens, layers, step);
        CHECK(same_bits(other.hidden, expected.hidden));
        CHECK(same_bits(other.logits, expected.logits));
      }
  }
}

TEST_CASE("only the rows of chunks that ask are tapped, in order") {
  const memory_model made{tiny_llama{}};
  const auto tokens = random_tokens(30, 5, vocabulary);
  const std::array<std::uint32_t, 1> layers{1};
  const auto runs = load(made.file(), "cpu", 2);
  const auto expected = tapped(*runs, tokens, layers);
  const auto pool = page_pool::create(runs->shape().kv, 64).value();
  sequence none{*pool};
  sequence last{*pool};
  sequence all{*pool};
  for (auto* each : {&none, &last, &all})
    REQUIRE(each->reserve(30));
  const chunk chunks[] = {{&none, tokens, logits_wanted::none, logits_wanted::none},
    {&last, std::span{tokens}.first(20), logits_wanted::none, logits_wanted::last},
    {&all, std::span{tokens}.first(3), logits_wanted::none, logits_wanted::all}};
  std::vector<float> values(4 * width);
  runs->forward(chunks, {}, {layers, values});
  CHECK(same_bits(std::span{values}.first(width), std::span{expected.hidden}.subspan(19 * width, width)));
  CHECK(same_bits(std::span{values}.subspan(width), std::span{expected.hidden}.first(3 * width)));
}
