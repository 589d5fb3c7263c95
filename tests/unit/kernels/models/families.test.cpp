// What files of each family may and may not say, and that their parts keep the same bits everywhere.
#include "kernels/models/transformer_form.hpp"
#include "kernels/ops/dispatch.hpp"
#include "tests/support/tiny_llama.hpp"
#include "tests/unit/kernels/models/running.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <cstring>
#include <functional>

using namespace godwit;
using gguf::tensor_type;

namespace {

const std::string folder = std::string{GODWIT_SOURCE_DIR} + "/tests/golden/models/";

/// A golden file with some of its content left out or added.
class changed_model {
 public:
  /// @param without key or tensor to leave out
  explicit changed_model(const std::string& name, const std::string& without = {},
    const std::function<void(gguf::writer&)>& add = {}) {
    const auto from = gguf::file::open(folder + name + ".gguf").value();
    gguf::writer made;
    for (const auto& [key, item] : from->metadata()) {
      if (key != without && key != "general.alignment") {
        std::visit(
          [&](const auto& v) {
            if constexpr (requires { made.add(key, v); }) {
              made.add(key, v);
            }
          },
          item);
      }
    }
    for (const auto& tensor : from->tensors()) {
      if (tensor.name != without) {
        made.add_tensor(tensor.name, tensor.type, tensor.shape, tensor.data);
      }
    }
    if (add) {
      add(made);
    }
    bytes_ = made.finish();
    file_ = gguf::file::parse(bytes_).value();
  }

  const std::shared_ptr<const gguf::file>& file() const { return file_; }

 private:
  std::vector<std::byte> bytes_;
  std::shared_ptr<const gguf::file> file_;
};

void refuses(const changed_model& made, errc code, const std::string& part) {
  const auto loaded = model::load(made.file(), {.ops = ops_choice::reference, .threads = 1});
  REQUIRE_FALSE(loaded.has_value());
  INFO(loaded.error().message);
  CHECK(loaded.error().code == code);
  CHECK(loaded.error().message.find(part) != std::string::npos);
}

template <class T>
std::function<void(gguf::writer&)> key(std::string name, T item) {
  return [=](gguf::writer& to) { to.add(name, item); };
}

} // namespace

TEST_CASE("a golden file that is only written again is the same model") {
  for (const std::string name : {"llama3", "qwen2", "qwen3", "gemma3"}) {
    const auto original = load(gguf::file::open(folder + name + ".gguf").value(), "reference");
    const changed_model again{name};
    CHECK(load(again.file(), "reference")->fingerprint() == original->fingerprint());
  }
}

TEST_CASE("what a family needs and a file lacks is named") {
  refuses(changed_model{"qwen2", "blk.1.attn_k.bias"}, errc::corrupt, "blk.1.attn_k.bias");
  refuses(changed_model{"qwen3", "blk.0.attn_q_norm.weight"}, errc::corrupt, "blk.0.attn_q_norm.weight");
  refuses(changed_model{"gemma3", "blk.3.post_ffw_norm.weight"}, errc::corrupt, "blk.3.post_ffw_norm.weight");
  refuses(changed_model{"gemma3", "gemma3.attention.sliding_window"}, errc::corrupt,
    "gemma3.attention.sliding_window");
}

TEST_CASE("what a family does not have is refused by name") {
  const auto values = [](std::size_t count) { return random_blocks(tensor_type::f32, count, 1); };
  refuses(
    changed_model{"qwen3", {},
      [&](gguf::writer& to) { to.add_tensor("blk.0.attn_q.bias", tensor_type::f32, {128}, values(128)); }},
    errc::unsupported, "blk.0.attn_q.bias");
  refuses(changed_model{"qwen2", {}, key("qwen2.attention.sliding_window", 4096U)}, errc::unsupported,
    "qwen2.attention.sliding_window");
  refuses(changed_model{"qwen3", {}, key("qwen3.expert_count", 8U)}, errc::unsupported, "qwen3.expert_count");
  refuses(changed_model{"gemma3", {}, key("gemma3.attention.key_length_swa", 16U)}, errc::unsupported,
    "gemma3.attention.key_length_swa");
  CHECK(form_of(*changed_model{"qwen3", {}, key("qwen3.expert_count", 0U)}.file()).has_value());
}

TEST_CASE("numbers out of range are named with their bounds") {
  const auto bad = [](const std::string& name, const std::string& what, auto item, const std::string& part) {
    refuses(changed_model{name, what, key(what, item)}, errc::corrupt, part);
  };
  bad("gemma3", "gemma3.attention.sliding_window", 0U, "gemma3.attention.sliding_window is 0");
  bad("gemma3", "gemma3.attention.sliding_window_pattern", 0U, "outside of 1 to 1024");
  bad("gemma3", "gemma3.attention.scale", 0.0F, "gemma3.attention.scale");
  bad("gemma3", "gemma3.rope.freq_base_swa", std::nanf(""), "gemma3.rope.freq_base_swa is no number");
  bad("gemma3_capped", "gemma3.final_logit_softcapping", -1.0F, "gemma3.final_logit_softcapping is -1");
  bad("qwen3", "qwen3.attention.key_length", 4096U, "qwen3.attention.key_length");
  bad("qwen3", "qwen3.rope.freq_base", 0.0F, "qwen3.rope.freq_base");
  bad("llama_linear", "llama.rope.scaling.factor", 0.5F, "llama.rope.scaling.factor is 0.5");
  bad("llama_yarn", "llama.rope.scaling.original_context_length", 0U, "original_context_length");
  bad("llama_yarn", "llama.rope.scaling.yarn_beta_slow", 40.0F, "yarn_beta_fast");
  bad("llama", "llama.context_length", "many", "llama.context_length");
}

TEST_CASE("divisors of frequencies are checked") {
  const auto with = [](std::vector<float> factors) {
    return [=](gguf::writer& to) {
      to.add_tensor(
        "rope_freqs.weight", tensor_type::f32, {factors.size()}, std::as_bytes(std::span{factors}));
    };
  };
  refuses(changed_model{"llama3", "rope_freqs.weight", with(std::vector<float>(7, 1.0F))}, errc::corrupt,
    "each of the 8 pairs");
  refuses(changed_model{"llama3", "rope_freqs.weight", with(std::vector<float>(8, 0.0F))}, errc::corrupt,
    "rope_freqs.weight");
  refuses(changed_model{"llama3", "rope_freqs.weight", with(std::vector<float>(8, std::nanf("")))},
    errc::corrupt, "rope_freqs.weight");
}

TEST_CASE("a form tells what it is made of") {
  const auto facts = [](const std::string& name) {
    std::string text;
    for (const auto& [fact, value] :
      form_of(*gguf::file::open(folder + name + ".gguf").value()).value().facts()) {
      text += fact + ": " + value + '\n';
    }
    return text;
  };
  CHECK(facts("llama3")
        == "head: 16 elements, 16 turned in neighbouring pairs\n"
           "positions: base 10000, divided by rope_freqs.weight\n"
           "parts: SiLU gate\n");
  CHECK(facts("qwen3_yarn")
        == "head: 32 elements, 32 turned in halves\n"
           "positions: base 10000, YaRN by 4\n"
           "parts: SiLU gate, norms of queries and keys\n");
  CHECK(facts("gemma3")
        == "head: 16 elements, 16 turned in halves\n"
           "positions: base 1000000, linear by 8; base 10000\n"
           "windows: 6 of 7 layers see the last 37 positions\n"
           "parts: GELU gate, norms of queries and keys, norms behind blocks, scaled embeddings\n");
}

TEST_CASE("windows, caps, biases and norms keep their bits in every batch, chunk, thread and target") {
  const auto tokens = random_tokens(200, 3, 96);
  const auto other = random_tokens(77, 4, 96);
  for (const std::string name : {"qwen2", "qwen3", "gemma3", "gemma3_capped"}) {
    const auto file = gguf::file::open(folder + name + ".gguf").value();
    std::vector<float> expected;
    for (const auto& line : ops::implementations("cpu")) {
      if (!line.available || line.name == "reference") {
        continue;
      }
      // More threads than cores meet slowly: they get few steps.
      for (const auto& [threads, step] : {std::pair{1U, 1U}, {1U, 7U}, {3U, 64U}, {3U, 512U}}) {
        const bool slow = line.name == "cpu:scalar" || line.name == "cpu:sse4";
        if (slow && step != 64) {
          continue;
        }
        INFO(name << " on " << line.name << ", " << threads << " threads, chunks of " << step);
        const auto runs = load(file, line.name, threads);
        const auto pool = page_pool::create(runs->shape().kv, 32).value();
        sequence target{*pool};
        const auto logits = append(*runs, target, tokens, step);
        if (expected.empty()) {
          expected = logits;
        }
        CHECK(std::memcmp(logits.data(), expected.data(), expected.size() * sizeof(float)) == 0);
      }
    }
    // Beside another sequence, in one step.
    const auto runs = load(file, "cpu", 2);
    const auto pool = page_pool::create(runs->shape().kv, 64).value();
    sequence one{*pool};
    sequence two{*pool};
    append(*runs, two, std::span{other}.first(40));
    REQUIRE(one.reserve(200).has_value());
    REQUIRE(two.reserve(37).has_value());
    const chunk chunks[] = {
      {&two, std::span{other}.subspan(40), logits_wanted::none}, {&one, tokens, logits_wanted::all}};
    std::vector<float> logits(200 * 96);
    runs->forward(chunks, logits);
    CHECK(std::memcmp(logits.data(), expected.data(), expected.size() * sizeof(float)) == 0);
  }
}

TEST_CASE("every number of a family that files may change changes the logits") {
  const auto tokens = random_tokens(150, 5, 96);
  const auto last = [&](const std::shared_ptr<const gguf::file>& file) {
    const auto runs = load(file, "reference");
    const auto pool = page_pool::create(runs->shape().kv, 16).value();
    sequence target{*pool};
    const auto logits = append(*runs, target, tokens);
    return std::vector<float>(logits.end() - 96, logits.end());
  };
  const auto changes = [&](const std::string& name, const std::string& what, auto item) {
    const auto before = last(gguf::file::open(folder + name + ".gguf").value());
    const auto after = last(changed_model{name, what, key(what, item)}.file());
    double worst = 0;
    for (std::size_t i = 0; i < before.size(); ++i) {
      worst = std::max<double>(worst, std::abs(before[i] - after[i]));
    }
    INFO(name << ", " << what);
    CHECK(worst > 0.02);
  };
  changes("gemma3", "gemma3.attention.sliding_window", 36U);
  changes("gemma3", "gemma3.attention.sliding_window_pattern", 5U);
  changes("gemma3", "gemma3.attention.scale", 0.25F);
  changes("gemma3", "gemma3.rope.freq_base_swa", 11000.0F);
  changes("gemma3", "gemma3.rope.scaling.factor", 4.0F);
  changes("gemma3_capped", "gemma3.attn_logit_softcapping", 0.0F);
  changes("gemma3_capped", "gemma3.final_logit_softcapping", 0.0F);
  changes("llama_yarn", "llama.rope.scaling.original_context_length", 4096U);
  changes("llama_yarn", "llama.rope.scaling.yarn_attn_factor", 1.1F);
  changes("llama_yarn", "llama.rope.scaling.yarn_beta_fast", 1.5F);
  changes("llama_linear", "llama.rope.scaling.type", "none");
}
