#include "tools/bench/model_bench.hpp"

#include "tests/support/temporary_folder.hpp"
#include "tests/support/tiny_llama.hpp"

#include <catch2/catch.hpp>

#include <array>
#include <cmath>
#include <fstream>

using namespace godwit;
using namespace godwit::bench;

namespace {

/// A tiny model as a file.
struct model_file {
  temporary_folder folder;
  model_settings settings;

  explicit model_file(const tiny_llama& made) {
    settings = {.model = folder.path() / "tiny.gguf", .threads = 2, .rounds = 2};
    const auto bytes = made.write().finish();
    std::ofstream{settings.model, std::ios::binary}.write(
      reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }
};

} // namespace

TEST_CASE("prefill gives a rate for every size, in their order") {
  const model_file made{tiny_llama{.context = 64}};
  const auto rates = prefill(made.settings, std::array{40U, 1U, 64U}).value();
  REQUIRE(rates.size() == 3);
  CHECK(rates[0].tokens == 40);
  CHECK(rates[2].tokens == 64);
  for (const auto& rate : rates) {
    CHECK(rate.tokens_per_s > 0);
    CHECK(std::isfinite(rate.tokens_per_s));
  }
  CHECK(prefill(made.settings, {}).value().empty());
}

TEST_CASE("decode gives a rate for every context and batch") {
  const model_file made{tiny_llama{.context = 64}};
  const auto rates = decode(made.settings, std::array{20U, 48U}, std::array{1U, 5U, 2U}).value();
  REQUIRE(rates.size() == 6);
  CHECK(rates[1].context == 20);
  CHECK(rates[1].batch == 5);
  CHECK(rates[5].context == 48);
  CHECK(rates[5].batch == 2);
  for (const auto& rate : rates) {
    CHECK(rate.tokens_per_s > 0);
  }
}

TEST_CASE("sizes beyond the context are refused with the limit") {
  const model_file made{tiny_llama{.context = 64}};
  const auto prompt = prefill(made.settings, std::array{65U});
  REQUIRE_FALSE(prompt.has_value());
  CHECK(prompt.error().code == errc::invalid_argument);
  CHECK(prompt.error().message.find("64") != std::string::npos);
  CHECK(decode(made.settings, std::array{49U}, std::array{1U}).error().code == errc::invalid_argument);
  CHECK(decode(made.settings, std::array{8U}, std::array{0U}).error().code == errc::invalid_argument);
  CHECK(prefill({.model = made.folder.path() / "none"}, std::array{1U}).error().code == errc::not_found);
}

TEST_CASE("a model whose logits are all equal loses the logarithm of its vocabulary, over any length") {
  const model_file made{tiny_llama{.context = 64, .mute = true}};
  for (const std::size_t length : {2U, 64U, 300U}) {
    std::vector<token_id> text(length);
    for (std::size_t i = 0; i < length; ++i) {
      text[i] = static_cast<token_id>(i % 99);
    }
    const auto loss = nll(made.settings, text).value();
    CHECK(loss.tokens == length);
    CHECK(loss.mean_nll == Approx(std::log(99)));
  }
  CHECK_FALSE(nll(made.settings, std::array<token_id, 1>{1}).has_value());
  CHECK_FALSE(nll(made.settings, std::array<token_id, 2>{1, 99}).has_value());
}
