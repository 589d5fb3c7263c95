#include "kernels/models/model.hpp"
#include "kernels/models/model_facts.hpp"
#include "kernels/ops/dispatch.hpp"
#include "tests/support/tiny_llama.hpp"
#include "tests/unit/kernels/models/running.hpp"

#include <catch2/catch.hpp>

#include <atomic>
#include <cmath>
#include <limits>
#include <set>
#include <vector>

using namespace godwit;
using gguf::tensor_type;

namespace {

/// The failure to load what `from` writes.
error refusal(const gguf::writer& from) {
  const memory_model made{from};
  const auto loaded = model::load(made.file(), {.ops = ops_choice::cpu, .threads = 1});
  REQUIRE_FALSE(loaded.has_value());
  return loaded.error();
}

} // namespace

TEST_CASE("a model knows its numbers and what computes it") {
  const memory_model made{tiny_llama{}};
  const auto runs = load(made.file(), "cpu", 2);
  const auto& shape = runs->shape();
  CHECK(shape.architecture == "llama");
  CHECK(shape.context == 512);
  CHECK(shape.vocabulary == 99);
  CHECK(shape.embedding == 64);
  CHECK(shape.heads == 4);
  CHECK(shape.kv == kv_shape{.layers = 2, .kv_heads = 2, .head_dim = 16, .type = kv_type::f16});
  CHECK(shape.ops == ops::choose("cpu").value());
  CHECK(runs->max_rows() == 512);
  CHECK(load(made.file(), "reference")->shape().kv.type == kv_type::f32);
}

TEST_CASE("work on logits is shared out once each, between threads that each do one thing at a time") {
  const memory_model made{tiny_llama{}};
  for (const std::uint32_t threads : {1U, 2U, 3U}) {
    const auto runs = load(made.file(), "cpu", threads);
    REQUIRE(runs->threads() == threads);
    for (const std::size_t items : {0U, 1U, 2U, 64U}) {
      std::vector<int> times(items, 0);
      std::vector<std::atomic<int>> busy(threads);
      std::atomic<bool> alone{true};
      runs->share_out(items, [&](std::size_t item, std::uint32_t thread) {
        alone = alone && thread < threads && busy[thread]++ == 0;
        ++times[item];
        --busy[thread];
      });
      CHECK(times == std::vector<int>(items, 1));
      CHECK(alone);
    }
  }
}

TEST_CASE("the forced implementation is the one that runs") {
  const memory_model made{tiny_llama{}};
  for (const auto& line : ops::implementations("cpu")) {
    if (line.available) {
      CHECK(load(made.file(), line.name)->shape().ops == line.name);
    }
  }
  ::setenv("GODWIT_OPS", "cpu:scalar", 1);
  const auto runs = model::load(made.file(), {.threads = 1});
  ::setenv("GODWIT_OPS", "cpu:none", 1);
  const auto refused = model::load(made.file(), {.threads = 1});
  ::unsetenv("GODWIT_OPS");
  CHECK(runs.value()->shape().ops == "cpu:scalar");
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == errc::unsupported);
}

TEST_CASE("what is read without weights is what the loaded model says of itself") {
  const memory_model made{tiny_llama{}};
  for (const auto* ops : {"cpu", "reference"}) {
    for (const auto kv :
      {std::optional<kv_type>(), std::optional(kv_type::f16), std::optional(kv_type::int8)}) {
      const auto facts =
        read_model_facts(*made.file(), {.implementation = ops::choose(ops).value(), .threads = 2, .kv = kv});
      REQUIRE(facts);
      const auto runs = load(made.file(), ops, 1, 512, kv);
      CHECK(facts->fingerprint == runs->fingerprint());
      CHECK(facts->context == runs->shape().context);
      CHECK(facts->vocabulary == runs->shape().vocabulary);
    }
  }
  CHECK(read_model_facts(*made.file(), {.threads = 5000}).error().param == "threads");
}

TEST_CASE("a fingerprint names weights, numbers and the contract, and nothing else") {
  const memory_model made{tiny_llama{}};
  const auto fingerprint = [](const gguf::writer& from, const std::string& ops, std::uint32_t threads) {
    const memory_model other{from};
    return load(other.file(), ops, threads)->fingerprint();
  };
  const std::string first = load(made.file(), "cpu")->fingerprint();
  CHECK(first.size() == 32);
  CHECK(first.find_first_not_of("0123456789abcdef") == std::string::npos);
  CHECK(fingerprint(tiny_llama{}.write(), "cpu", 3) == first);
  CHECK(fingerprint(tiny_llama{}.write(), "cpu:scalar", 1) == first);
  CHECK(fingerprint(tiny_llama{}.write().add("general.name", "other"), "cpu", 1) == first);

  std::set<std::string> all{first};
  all.insert(fingerprint(tiny_llama{}.write(), "reference", 1));
  all.insert(fingerprint(tiny_llama{.seed = 2}.write(), "cpu", 1));
  all.insert(fingerprint(tiny_llama{.context = 256}.write(), "cpu", 1));
  all.insert(fingerprint(tiny_llama{}.write().add("llama.rope.dimension_count", 8U), "cpu", 1));
  CHECK(all.size() == 5);
}

TEST_CASE("the type of pages is part of the fingerprint, and the one that is taken anyway changes nothing") {
  const memory_model made{tiny_llama{}};
  const auto of = [&](const std::string& ops, std::optional<kv_type> kv) {
    const auto runs = load(made.file(), ops, 1, 512, kv);
    CHECK((!kv || runs->shape().kv.type == *kv));
    return runs->fingerprint();
  };
  CHECK(of("cpu", kv_type::f16) == of("cpu", std::nullopt));
  CHECK(of("reference", kv_type::f32) == of("reference", std::nullopt));
  std::set<std::string> all;
  for (const auto kv : {kv_type::f16, kv_type::bf16, kv_type::int8})
    all.insert({of("cpu", kv), of("reference", kv)});
  all.insert(of("reference", kv_type::f32));
  CHECK(all.size() == 7);
  for (const auto& fingerprint : all)
    CHECK(fingerprint.size() == 32);
  const auto refused = model::load(made.file(), {.ops = ops_choice::cpu, .threads = 1, .kv = kv_type::f32});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == errc::unsupported);
}

TEST_CASE("a missing or misshapen tensor is named") {
  const auto missing = refusal(tiny_llama{}.write().add("llama.vocab_size", 98U));
  CHECK(missing.code == errc::corrupt);
  CHECK(missing.message.find("token_embd.weight") != std::string::npos);

  gguf::writer lacks;
  lacks.add("general.architecture", "llama").add("llama.block_count", 1U).add("llama.context_length", 16U);
  lacks.add("llama.embedding_length", 64U).add("llama.feed_forward_length", 64U);
  lacks.add("llama.attention.head_count", 4U).add("llama.attention.layer_norm_rms_epsilon", 1e-5F);
  const auto blocks = random_blocks(tensor_type::q8_0, 64 * 8, 1);
  lacks.add_tensor("token_embd.weight", tensor_type::q8_0, {64, 8}, blocks);
  CHECK(refusal(lacks).message.find("blk.0.attn_norm.weight") != std::string::npos);
}

TEST_CASE("what the graph would get wrong is refused by name") {
  const auto named = [](const gguf::writer& from, const std::string& part) {
    const auto failure = refusal(from);
    CHECK(failure.code == errc::unsupported);
    CHECK(failure.message.find(part) != std::string::npos);
  };
  named(tiny_llama{}.write().add("llama.rope.scaling.type", "longrope"), "longrope");
  named(tiny_llama{}.write().add("llama.attention.sliding_window", 64U), "llama.attention.sliding_window");
  named(tiny_llama{}.write().add("llama.a.new.thing", "on"), "llama.a.new.thing");
  named(tiny_llama{}.write().add("llama.expert_count", 8U), "llama.expert_count");
  const auto floats = random_blocks(tensor_type::f32, 64, 1);
  named(tiny_llama{}.write().add_tensor("blk.0.attn_q.bias", tensor_type::f32, {64}, floats), "attn_q.bias");
  named(gguf::writer{}.add("general.architecture", "mamba"), "mamba");
}

TEST_CASE("metadata out of range is named") {
  const auto named = [](tiny_llama from, const std::string& part) {
    const auto failure = refusal(from.write());
    CHECK(failure.code == errc::corrupt);
    CHECK(failure.message.find(part) != std::string::npos);
  };
  named({.layers = 0}, "llama.block_count");
  named({.context = 0}, "llama.context_length");
  named({.context = 2'000'000}, "llama.context_length");
  CHECK(refusal(gguf::writer{}).code == errc::corrupt);
}

TEST_CASE("options out of range are refused") {
  const memory_model made{tiny_llama{}};
  CHECK(model::load(made.file(), {.threads = 100'000}).error().code == errc::invalid_argument);
  CHECK(model::load(made.file(), {.max_rows = 0}).error().code == errc::invalid_argument);
}

TEST_CASE("weights that are no numbers spoil the logits and nothing else") {
  auto bad = tiny_llama{}.write();
  // A second model whose last norm is NaN.
  const std::vector<float> gains(64, std::numeric_limits<float>::quiet_NaN());
  tiny_llama other;
  gguf::writer made;
  const memory_model whole{other};
  for (const auto& [key, item] : whole.file()->metadata()) {
    std::visit(
      [&](const auto& v) {
        if constexpr (requires { made.add(key, v); }) {
          made.add(key, v);
        }
      },
      item);
  }
  for (const auto& tensor : whole.file()->tensors()) {
    const bool last = tensor.name == "blk.1.ffn_norm.weight";
    made.add_tensor(
      tensor.name, tensor.type, tensor.shape, last ? std::as_bytes(std::span{gains}) : tensor.data);
  }
  const memory_model spoilt{made};
  for (const std::string ops : {"cpu", "cpu:scalar", "reference"}) {
    const auto runs = load(spoilt.file(), ops, 2);
    const auto pool = page_pool::create(runs->shape().kv, 8).value();
    sequence target{*pool};
    const auto logits = append(*runs, target, random_tokens(20, 1, 99));
    CHECK(std::ranges::all_of(logits, [](float v) { return std::isnan(v); }));
  }
}
