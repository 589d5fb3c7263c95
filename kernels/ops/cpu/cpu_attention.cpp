// The part of cpu_ops between the products of a layer's attention.
#include "kernels/ops/cpu/cpu_ops.hpp"
#include "kernels/ops/cpu/loaded.hpp"

#include <algorithm>

namespace godwit::ops::cpu {

namespace {

/// Rows from which on products leave the memory time for more than weights.
constexpr std::size_t asking_rows = 7;
constexpr std::size_t segment_pages = segment_tokens / page_tokens;

} // namespace

void cpu_ops::prepare_heads(
  float* heads, std::size_t count, const float* bias, const gain* norm, const float* turns) const {
  const std::size_t dim = shape_.kv.head_dim;
  for (std::size_t i = 0; i < count * dim && bias != nullptr; ++i) {
    heads[i] += bias[i];
  }
  for (float* head = heads; head != heads + count * dim; head += dim) {
    if (norm != nullptr) {
      kernels_.norm(
        head, static_cast<const float_gain*>(norm)->values.data(), dim, shape_.norm_epsilon, head);
    }
    if (shape_.pairs == rope_pairs::halves) {
      kernels_.rotate_halves(head, turns, shape_.rotary);
    } else {
      kernels_.rotate(head, turns, shape_.rotary);
    }
  }
}

std::span<const page_id> cpu_ops::pages_of(const attention_task& task, std::uint32_t layer) const {
  const auto& part = step_.sequences[task.sequence];
  const auto pages = part.target->pages(layer, task.kv_head);
  const std::size_t seen = first_seen(part, layer, task.kv_head, step_.positions[task.first_row] + 1);
  const std::size_t first = std::max(seen / segment_tokens, std::size_t{task.first_segment}) * segment_pages;
  const std::size_t last = task.split ? task.last_segment * segment_pages : pages.size();
  return first < std::min(last, pages.size()) ? pages.subspan(first, std::min(last, pages.size()) - first)
                                              : std::span<const page_id>{};
}

void cpu_ops::list_coming(worker& self, std::uint32_t layer) {
  auto& own = scratch_[self.index()];
  own.coming.clear();
  own.list = {};
  if (rows() < asking_rows || layer >= shape_.kv.layers) {
    return;
  }
  const auto tasks = plan_.tasks();
  const std::size_t bytes = shape_.kv.page_bytes();
  for (std::size_t i = self.index(); i < tasks.size(); i += self.count()) {
    auto& pool = step_.sequences[tasks[i].sequence].target->pool();
    for (const page_id page : pages_of(tasks[i], layer)) {
      if ((own.coming.size() + 1) * bytes > most_coming) {
        break;
      }
      own.coming.push_back(reinterpret_cast<const std::byte*>(pool.data(page)));
    }
  }
  // Evenly over the products until then, a little faster so that some is left over for the last ones.
  const std::size_t lines = own.coming.size() * bytes / 64;
  const std::size_t uses =
    weight_blocks_ / shape_.kv.layers / self.count() * (rows() / (asking_rows - 1)) + 1;
  own.list = {own.coming.data(), own.coming.size(), bytes, lines * 4 / 3 / uses + 1};
}

void cpu_ops::rotate_and_store(worker& self, std::uint32_t layer, const head_weights& weights) {
  const std::size_t dim = shape_.kv.head_dim;
  const std::size_t kv_heads = shape_.kv.kv_heads;
  const std::size_t group = shape_.heads / kv_heads;
  const std::size_t stride = (shape_.heads + 2 * kv_heads) * dim;
  const auto tasks = plan_.tasks();
  if (rows() < asking_rows && self.index() < tasks.size()) {
    // What the thread will attend to first.
    auto& pool = step_.sequences[tasks[self.index()].sequence].target->pool();
    const auto pages = pages_of(tasks[self.index()], layer);
    for (const page_id page : pages.first(std::min(pages.size(), segment_pages))) {
      ask_for(reinterpret_cast<const std::byte*>(pool.data(page)), shape_.kv.page_bytes());
    }
  }
  const auto mine = self.share(rows() * kv_heads);
  for (std::size_t item = mine.begin; item < mine.end; ++item) {
    const std::size_t row = item / kv_heads;
    const auto head = static_cast<std::uint32_t>(item % kv_heads);
    float* const q = out_.data() + row * stride + head * group * dim;
    float* const k = out_.data() + row * stride + (shape_.heads + head) * dim;
    float* const v = k + kv_heads * dim;
    const float* const by = turns(shape_.layers[layer].rope, row);
    prepare_heads(q, group, values_from(weights.query_bias, head * group * dim), weights.query_norm, by);
    prepare_heads(k, 1, values_from(weights.key_bias, head * dim), weights.key_norm, by);
    const float* const bias = values_from(weights.value_bias, head * dim);
    for (std::size_t d = 0; d < dim && bias != nullptr; ++d) {
      v[d] += bias[d];
    }

    const auto& part = step_.sequences[sequence_of_row_[row]];
    const std::size_t slot = part.target->kept(layer, head) + (row - part.first_row);
    const page_id page = part.target->pages(layer, head)[slot / page_tokens];
    auto* const to = reinterpret_cast<std::byte*>(part.target->pool().data(page));
    pages_.store(k, v, dim, to, slot % page_tokens);
  }
  self.sync();
}

std::size_t cpu_ops::first_seen(
  const step_sequence& part, std::uint32_t layer, std::uint32_t head, position_t end) const {
  // By true positions: a sequence may not have kept all that the window spans.
  const std::uint32_t window = shape_.layers[layer].window;
  return window != 0 && end > window ? part.target->slot_from(layer, head, end - window) : 0;
}

void cpu_ops::attend_task(
  scratch& own, const attention_task& task, const attention_task* next, std::uint32_t layer) {
  const std::size_t dim = shape_.kv.head_dim;
  const std::size_t group = shape_.heads / shape_.kv.kv_heads;
  const std::size_t stride = (shape_.heads + 2 * std::size_t{shape_.kv.kv_heads}) * dim;
  const auto& part = step_.sequences[task.sequence];
  auto& pool = part.target->pool();
  kv_pages kv{reinterpret_cast<const std::byte*>(pool.base()), shape_.kv.page_bytes(),
    part.target->pages(layer, task.kv_head), dim};
  const std::size_t kept = part.target->kept(layer, task.kv_head);

  std::size_t visible = 0;
  for (std::size_t r = 0; r < task.rows; ++r) {
    const std::size_t row = task.first_row + r;
    visible = kept + (row - part.first_row) + 1;
    const std::size_t first = first_seen(part, layer, task.kv_head, step_.positions[row] + 1);
    for (std::size_t g = 0; g < group; ++g) {
      const std::size_t head = task.kv_head * group + g;
      own.queries[r * group + g] = {out_.data() + row * stride + head * dim, visible, first};
    }
  }
  const std::span<const attention_query> queries{own.queries.data(), task.rows * group};
  const attention_score score{
    static_cast<float>(shape_.attention_scale), static_cast<float>(shape_.score_cap)};
  const std::size_t size = partial_size(dim);

  const std::size_t segments = (visible + segment_tokens - 1) / segment_tokens;
  const std::size_t last = task.split ? task.last_segment : segments;
  kv.asked = std::min(kv.pages.size(), last * segment_tokens / page_tokens);
  if (next != nullptr) {
    const auto& then = step_.sequences[next->sequence];
    const std::size_t first = first_seen(then, layer, next->kv_head, step_.positions[next->first_row] + 1);
    const auto pages = then.target->pages(layer, next->kv_head);
    kv.next_base = reinterpret_cast<const std::byte*>(then.target->pool().base());
    kv.next = pages.subspan(std::min(
      pages.size(), std::max(first, next->first_segment * segment_tokens) / segment_tokens * segment_pages));
  }

  for (std::uint32_t segment = task.first_segment; segment < task.last_segment; ++segment) {
    pages_.attend(kv, queries, segment, score, own.scores.data(), own.results.data());
    for (std::uint32_t q = 0; q < queries.size(); ++q) {
      const auto row = static_cast<std::uint32_t>(task.first_row + q / group);
      const auto head = static_cast<std::uint32_t>(task.kv_head * group + q % group);
      std::copy_n(
        own.results.data() + q * size, size, partials_.data() + plan_.slot(row, head, segment) * size);
    }
  }
  if (task.split) {
    return;
  }
  // Segments before the first row's window have nothing to see.
  const std::size_t start = own.queries.front().first / segment_tokens;
  pages_.attend(kv, queries, start, score, own.scores.data(), own.results.data());
  for (std::size_t segment = start + 1; segment < segments; ++segment) {
    pages_.attend(kv, queries, segment, score, own.scores.data(), own.later.data());
    for (std::size_t q = 0; q < queries.size(); ++q) {
      kernels_.merge(own.later.data() + q * size, dim, own.results.data() + q * size);
    }
  }
  for (std::size_t q = 0; q < queries.size(); ++q) {
    const std::size_t row = task.first_row + q / group;
    const std::size_t head = task.kv_head * group + q % group;
    kernels_.normalise(own.results.data() + q * size, dim, attended(own, row, head));
  }
  if (needs_quants_ && !heads_share_blocks(group)) {
    for (std::size_t r = 0; r < task.rows; ++r) {
      quantise_heads(own, task.first_row + r, task.kv_head * group, group);
    }
  }
}

void cpu_ops::quantise_heads(const scratch& own, std::size_t row, std::size_t head, std::size_t count) {
  const std::size_t dim = shape_.kv.head_dim;
  quantise(*own.in, attended(own, row, head), count * dim, row, head * dim, shape_.heads * dim);
}

void cpu_ops::merge_heads(scratch& own, std::uint32_t row, std::uint32_t head, std::uint32_t count) {
  const std::size_t dim = shape_.kv.head_dim;
  const std::size_t size = partial_size(dim);
  const std::uint32_t segments = plan_.segments_of(row);
  for (std::uint32_t h = head; h < head + count && segments != 0; ++h) {
    float* const merged = own.results.data();
    kernels_.merge_run(partials_.data() + plan_.slot(row, h, 0) * size, segments, dim, merged);
    kernels_.normalise(merged, dim, attended(own, row, h));
  }
  const bool done = segments == 0 && !heads_share_blocks(shape_.heads / shape_.kv.kv_heads);
  if (needs_quants_ && !done) {
    quantise_heads(own, row, head, count);
  }
}

void cpu_ops::attend(worker& self, std::uint32_t layer) {
  auto& own = scratch_[self.index()];
  own.in = &inputs_[0];
  const auto tasks = plan_.tasks();
  for (std::size_t i = self.take(); i < tasks.size(); i = self.take()) {
    // As long as the tasks are alike the threads take turns.
    const std::size_t next = i + self.count();
    attend_task(own, tasks[i], next < tasks.size() ? &tasks[next] : nullptr, layer);
  }
  if (own.next != nullptr) {
    own.next->ask_for_first(self);
  }
  list_coming(self, layer + 1);
  self.sync();
  if (!plan_.any_split() && !heads_share_blocks(shape_.heads / shape_.kv.kv_heads)) {
    return; // the tasks have finished their rows
  }
  const std::uint32_t unit = heads_share_blocks(1) ? 2 : 1;
  const std::uint32_t units = (shape_.heads + unit - 1) / unit;
  const auto mine = self.share(rows() * units);
  for (std::size_t item = mine.begin; item < mine.end; ++item) {
    const auto head = static_cast<std::uint32_t>(item % units * unit);
    merge_heads(own, static_cast<std::uint32_t>(item / units), head, std::min(unit, shape_.heads - head));
  }
  self.sync();
}

} // namespace godwit::ops::cpu
