#include "tools/bench/model_bench.hpp"

#include "kernels/gguf/file.hpp"
#include "kernels/memory/page_pool.hpp"
#include "kernels/memory/sequence.hpp"
#include "kernels/models/model.hpp"
#include "tools/bench/measuring.hpp"
#include "tools/bench/model_work.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <memory>

namespace godwit::bench {

namespace {

/// Positions that are read at a time for a loss: each has a row of logits.
constexpr std::size_t loss_rows = 128;

/// A model and what its steps have to do.
struct opened {
  std::unique_ptr<model> runs;
  model_work work;

  model* operator->() const { return runs.get(); }
  model& operator*() const { return *runs; }
};

result<opened> open(const model_settings& settings) {
  auto made = load(settings);
  if (!made) {
    return fail(made);
  }
  const model_work work = work_of(*made->file, made->runs->shape());
  return opened{std::move(made->runs), work};
}

result<void> check_sizes(std::span<const std::uint32_t> sizes, std::uint32_t most, const std::string& param) {
  for (const auto size : sizes) {
    if (size == 0 || size > most) {
      return fail(errc::invalid_argument,
        param + " is " + std::to_string(size) + ", outside of 1 to " + std::to_string(most), param);
    }
  }
  return {};
}

/// A sequence with the same contents in pages of its own, as streams without a common prefix have them.
result<sequence> copy_of(const sequence& from, page_pool& pool) {
  sequence made{pool};
  if (auto room = made.reserve(from.length()); !room) {
    return fail(room);
  }
  const auto& shape = pool.shape();
  for (std::uint32_t layer = 0; layer < shape.layers; ++layer) {
    for (std::uint32_t head = 0; head < shape.kv_heads; ++head) {
      const auto source = from.pages(layer, head);
      const auto target = made.pages(layer, head);
      for (std::size_t i = 0; i < target.size(); ++i) {
        std::memcpy(pool.data(target[i]), pool.data(source[i]), shape.page_bytes());
      }
    }
  }
  made.advance(from.length());
  return made;
}

/// Seconds of one round: `decode_steps` tokens for each stream, which are cut off again.
result<double> decode_round(
  model& runs, std::vector<sequence>& streams, const std::vector<token_id>& tokens, std::span<float> logits) {
  const position_t length = streams.front().length();
  std::vector<chunk> chunks;
  const auto start = std::chrono::steady_clock::now();
  for (std::uint32_t step = 0; step < decode_steps; ++step) {
    chunks.clear();
    for (std::size_t i = 0; i < streams.size(); ++i) {
      if (auto room = streams[i].reserve(1); !room) {
        return fail(room);
      }
      const auto token = std::span{tokens}.subspan((step + i) % tokens.size(), 1);
      chunks.push_back({&streams[i], token, logits_wanted::last});
    }
    runs.forward(chunks, logits);
  }
  const double seconds = seconds_since(start);
  for (auto& stream : streams) {
    stream.truncate(length);
  }
  return seconds;
}

double loss(std::span<const float> logits, token_id next) {
  const double greatest = *std::ranges::max_element(logits);
  double sum = 0;
  for (const float logit : logits) {
    sum += std::exp(logit - greatest);
  }
  return greatest + std::log(sum) - logits[next];
}

} // namespace

result<std::vector<prefill_rate>> prefill(
  const model_settings& settings, std::span<const std::uint32_t> tokens) {
  auto runs = open(settings);
  if (!runs) {
    return fail(runs);
  }
  const auto& shape = (*runs)->shape();
  if (auto valid = check_sizes(tokens, shape.context, "tokens"); !valid) {
    return fail(valid);
  }
  if (tokens.empty()) {
    return std::vector<prefill_rate>{};
  }
  const auto prompt = any_tokens(*std::ranges::max_element(tokens), shape.vocabulary);
  auto pool = page_pool::create(shape.kv, blocks_for(prompt.size()));
  if (!pool) {
    return fail(pool);
  }
  std::vector<float> logits(shape.vocabulary);
  std::vector<std::vector<double>> rates(tokens.size());
  for (std::uint32_t round = 0; round <= settings.rounds; ++round) {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      sequence target{**pool};
      const auto start = std::chrono::steady_clock::now();
      if (auto read = read_prompt(**runs, target, std::span{prompt}.first(tokens[i]), logits); !read) {
        return fail(read);
      }
      if (round != 0) {
        rates[i].push_back(tokens[i] / seconds_since(start));
      }
    }
  }
  std::vector<prefill_rate> made;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const double rate = median(rates[i]);
    made.push_back({tokens[i], rate, runs->work.prefill_operations(tokens[i]) / tokens[i] * rate});
  }
  return made;
}

result<std::vector<decode_rate>> decode(const model_settings& settings,
  std::span<const std::uint32_t> contexts, std::span<const std::uint32_t> batches) {
  auto runs = open(settings);
  if (!runs) {
    return fail(runs);
  }
  const auto& shape = (*runs)->shape();
  const std::uint32_t most = shape.context > decode_steps ? shape.context - decode_steps : 0;
  if (auto valid = check_sizes(contexts, most, "context"); !valid) {
    return fail(valid);
  }
  if (auto valid = check_sizes(batches, (*runs)->max_rows(), "batch"); !valid) {
    return fail(valid);
  }
  std::vector<decode_rate> made;
  for (const auto context : contexts) {
    if (batches.empty()) {
      break;
    }
    const auto prompt = any_tokens(context, shape.vocabulary);
    const std::uint32_t widest = *std::ranges::max_element(batches);
    auto pool = page_pool::create(shape.kv, widest * blocks_for(context + decode_steps));
    if (!pool) {
      return fail(pool);
    }
    std::vector<float> logits(std::size_t{widest} * shape.vocabulary);
    std::vector<sequence> streams;
    streams.emplace_back(**pool);
    if (auto read = read_prompt(**runs, streams.front(), prompt, std::span{logits}.first(shape.vocabulary));
        !read) {
      return fail(read);
    }
    std::vector<std::vector<double>> rates(batches.size());
    for (std::uint32_t round = 0; round <= settings.rounds; ++round) {
      for (std::size_t i = 0; i < batches.size(); ++i) {
        while (streams.size() > batches[i]) {
          streams.pop_back();
        }
        while (streams.size() < batches[i]) {
          auto copied = copy_of(streams.front(), **pool);
          if (!copied) {
            return fail(copied);
          }
          streams.push_back(std::move(*copied));
        }
        const auto seconds = decode_round(
          **runs, streams, prompt, std::span{logits}.first(std::size_t{batches[i]} * shape.vocabulary));
        if (!seconds) {
          return fail(seconds);
        }
        if (round != 0) {
          rates[i].push_back(decode_steps * batches[i] / *seconds);
        }
      }
    }
    for (std::size_t i = 0; i < batches.size(); ++i) {
      const double rate = median(rates[i]);
      made.push_back(
        {context, batches[i], rate, runs->work.decode_bytes(context, batches[i]) / batches[i] * rate});
    }
  }
  return made;
}

result<std::vector<verify_time>> verify(const model_settings& settings,
  std::span<const std::uint32_t> contexts, std::span<const std::uint32_t> tokens) {
  auto runs = open(settings);
  if (!runs) {
    return fail(runs);
  }
  const auto& shape = (*runs)->shape();
  if (auto valid = check_sizes(tokens, std::min((*runs)->max_rows(), shape.context - 1), "tokens"); !valid) {
    return fail(valid);
  }
  const std::uint32_t widest = tokens.empty() ? 1 : *std::ranges::max_element(tokens);
  if (auto valid = check_sizes(contexts, shape.context - widest, "context"); !valid) {
    return fail(valid);
  }
  std::vector<verify_time> made;
  for (const auto context : contexts) {
    const auto prompt = any_tokens(context, shape.vocabulary);
    const auto block = any_tokens(widest, shape.vocabulary);
    auto pool = page_pool::create(shape.kv, blocks_for(context + widest));
    if (!pool) {
      return fail(pool);
    }
    std::vector<float> logits(std::size_t{widest} * shape.vocabulary);
    sequence target{**pool};
    if (auto read = read_prompt(**runs, target, prompt, std::span{logits}.first(shape.vocabulary)); !read) {
      return fail(read);
    }
    std::vector<std::vector<double>> seconds(tokens.size());
    for (std::uint32_t round = 0; round <= settings.rounds; ++round) {
      for (std::size_t i = 0; i < tokens.size(); ++i) {
        const auto start = std::chrono::steady_clock::now();
        for (std::uint32_t step = 0; step < decode_steps; ++step) {
          if (auto room = target.reserve(tokens[i]); !room) {
            return fail(room);
          }
          const chunk part{&target, std::span{block}.first(tokens[i]), logits_wanted::all};
          (*runs)->forward({&part, 1}, std::span{logits}.first(std::size_t{tokens[i]} * shape.vocabulary));
          target.truncate(context);
        }
        if (round != 0) {
          seconds[i].push_back(seconds_since(start) / decode_steps);
        }
      }
    }
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      made.push_back({context, tokens[i], median(seconds[i])});
    }
  }
  return made;
}

result<text_loss> nll(const model_settings& settings, std::span<const token_id> text) {
  if (text.size() < 2) {
    return fail(errc::invalid_argument, "a loss needs a text of at least two tokens", "text");
  }
  auto runs = open(settings);
  if (!runs) {
    return fail(runs);
  }
  const auto& shape = (*runs)->shape();
  for (const auto token : text) {
    if (token >= shape.vocabulary) {
      return fail(errc::invalid_argument, "a token beyond the model's vocabulary", "text");
    }
  }
  auto pool = page_pool::create(shape.kv, blocks_for(std::min<std::size_t>(text.size(), shape.context)));
  if (!pool) {
    return fail(pool);
  }
  const std::size_t rows = std::min<std::size_t>(loss_rows, (*runs)->max_rows());
  std::vector<float> logits(rows * shape.vocabulary);
  double sum = 0;
  std::uint64_t counted = 0;
  for (std::size_t begin = 0; begin < text.size(); begin += shape.context) {
    const auto piece = text.subspan(begin, std::min<std::size_t>(shape.context, text.size() - begin));
    sequence target{**pool};
    for (std::size_t start = 0; start < piece.size(); start += rows) {
      const auto part = piece.subspan(start, std::min(rows, piece.size() - start));
      if (auto room = target.reserve(static_cast<std::uint32_t>(part.size())); !room) {
        return fail(room);
      }
      const chunk all{&target, part, logits_wanted::all};
      (*runs)->forward({&all, 1}, std::span{logits}.first(part.size() * shape.vocabulary));
      for (std::size_t i = 0; i < part.size() && start + i + 1 < piece.size(); ++i) {
        sum += loss(std::span{logits}.subspan(i * shape.vocabulary, shape.vocabulary), piece[start + i + 1]);
        ++counted;
      }
    }
  }
  return text_loss{text.size(), sum / static_cast<double>(counted)};
}

} // namespace godwit::bench
