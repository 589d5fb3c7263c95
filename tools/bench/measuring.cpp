#include "tools/bench/measuring.hpp"

#include <algorithm>
#include <utility>

namespace godwit::bench {

result<subject> load(const model_settings& settings) {
  if (settings.rounds == 0) {
    return fail(errc::invalid_argument, "at least one round", "rounds");
  }
  auto file = gguf::file::open(settings.model);
  if (!file) {
    return fail(file);
  }
  auto runs = model::load(
    *file, {.implementation = settings.implementation, .threads = settings.threads, .kv = settings.kv});
  if (!runs) {
    return fail(runs);
  }
  return subject{std::move(*file), std::move(*runs)};
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

std::uint32_t blocks_for(std::size_t tokens) {
  return static_cast<std::uint32_t>((tokens + page_tokens - 1) / page_tokens);
}

std::vector<token_id> any_tokens(std::size_t count, std::uint32_t vocabulary, std::uint32_t state) {
  std::vector<token_id> made(count);
  for (auto& token : made) {
    state = state * 1664525 + 1013904223; // Numerical Recipes' generator
    token = (state >> 8U) % vocabulary;
  }
  return made;
}

result<void> read_prompt(
  model& runs, sequence& target, std::span<const token_id> prompt, std::span<float> logits) {
  while (!prompt.empty()) {
    const auto count = static_cast<std::uint32_t>(std::min<std::size_t>(prompt.size(), runs.max_rows()));
    if (auto room = target.reserve(count); !room) {
      return room;
    }
    const bool last = count == prompt.size();
    const chunk part{&target, prompt.first(count), last ? logits_wanted::last : logits_wanted::none};
    runs.forward({&part, 1}, last ? logits : std::span<float>{});
    prompt = prompt.subspan(count);
  }
  return {};
}

} // namespace godwit::bench
