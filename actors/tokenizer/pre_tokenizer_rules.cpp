#include "actors/tokenizer/pre_tokenizer.hpp"

#include <algorithm>
#include <array>

namespace godwit {

namespace {

using std::string_view;

// As published with the models: OpenAI's GPT-2 encoder, and the tokenizer.json of Llama 3 and Qwen2.
constexpr string_view gpt2_words =
  R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr string_view llama3_words = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|)"
                                     R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr string_view qwen2_words = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|)"
                                    R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr string_view one_digit = R"(\p{N})";
// What llama.cpp takes for "default".
constexpr string_view punctuation = R"([\p{P}\$\+<=>\^~\|]+)";
constexpr string_view digits = R"(\p{N}+)";
constexpr string_view three_digits = R"([0-9][0-9][0-9])";

constexpr std::array gpt2{gpt2_words};
constexpr std::array smollm{one_digit, gpt2_words};
constexpr std::array llama3{llama3_words};
constexpr std::array qwen2{qwen2_words};
constexpr std::array fallback{punctuation, gpt2_words, digits, three_digits};

struct entry {
  string_view name;
  pre_tokenizer_rules rules;
};

constexpr pre_tokenizer_rules gpt2_rules{gpt2};
constexpr pre_tokenizer_rules smollm_rules{smollm};
constexpr pre_tokenizer_rules llama3_rules{llama3, true, true};
constexpr pre_tokenizer_rules llama3_merging_rules{llama3};
constexpr pre_tokenizer_rules qwen2_rules{qwen2};

constexpr auto table = std::to_array<entry>({
  {"default", {fallback}},
  {"gpt-2", gpt2_rules},
  {"phi-2", gpt2_rules},
  {"mpt", gpt2_rules},
  {"olmo", gpt2_rules},
  {"jais", gpt2_rules},
  {"smollm", smollm_rules},
  {"starcoder", smollm_rules},
  {"refact", smollm_rules},
  {"command-r", smollm_rules},
  {"codeshell", smollm_rules},
  {"exaone", smollm_rules},
  {"llama-bpe", llama3_rules},
  {"llama3", llama3_rules},
  {"llama-v3", llama3_rules},
  {"falcon3", llama3_rules},
  {"lfm2", llama3_rules},
  {"dbrx", llama3_merging_rules},
  {"smaug-bpe", llama3_merging_rules},
  {"qwen2", qwen2_rules},
  {"deepseek-r1-qwen", qwen2_rules},
  {"stablelm2", qwen2_rules},
});

} // namespace

const pre_tokenizer_rules* find_pre_tokenizer(string_view name) {
  const auto* found = std::ranges::find(table, name, &entry::name);
  return found != table.end() ? &found->rules : nullptr;
}

} // namespace godwit
