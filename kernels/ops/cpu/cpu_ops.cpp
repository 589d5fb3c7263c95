#include "kernels/ops/cpu/cpu_ops.hpp"

#include "kernels/ops/rope.hpp"
#include "kernels/quant/dequantize.hpp"
#include "messages/check.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace godwit::ops::cpu {

namespace {

/// Room for partial results of split attention.
constexpr std::uint32_t partial_slots = 8192;
/// Rows that every thread norms for itself: that takes less time than to wait for each other.
constexpr std::size_t most_alone = 4;
constexpr std::size_t segment_pages = segment_tokens / page_tokens;
/// Rows of a gated product whose two factors wait in the near caches.
constexpr std::size_t gated_rows = 512;

/// Matrices that share their input; outputs follow each other.
class packed_matrix final : public matrix {
 public:
  explicit packed_matrix(std::shared_ptr<const weight_arena> arena) : arena_{std::move(arena)} {}

  std::uint32_t outputs() const override { return outputs_; }
  std::uint32_t inputs() const override { return static_cast<std::uint32_t>(parts.front().inputs()); }

  void add(packed_part part) {
    outputs_ += static_cast<std::uint32_t>(part.outputs());
    tiles += part.tiles();
    parts.push_back(std::move(part));
  }

  std::vector<packed_part> parts;
  std::size_t tiles = 0;

 private:
  std::shared_ptr<const weight_arena> arena_; ///< that the parts may stand in
  std::uint32_t outputs_ = 0;
};

class float_gain final : public gain {
 public:
  explicit float_gain(std::size_t count) : values(count) {}
  aligned_array<float> values;
};

/// The values of a bias from an element on, or nullptr.
const float* values_from(const gain* bias, std::size_t element) {
  return bias == nullptr ? nullptr : static_cast<const float_gain*>(bias)->values.data() + element;
}

const packed_matrix& packed(const matrix& weights) {
  return static_cast<const packed_matrix&>(weights);
}

/// Calls `use(first, last)` for runs of tiles until all threads together have done all of them. Most of them
/// are a run of each thread's own, since the tile that it asks for ahead is the one behind the last. What is
/// left goes to whoever comes first, so that a slower thread does less.
template <class Use>
void for_tiles(worker& self, std::size_t tiles, Use&& use) {
  const std::size_t threads = self.count();
  const auto cut = [&](std::size_t thread) { return tiles * thread / threads; };
  const auto end_of_own = [&](std::size_t thread) {
    return threads == 1 ? tiles : cut(thread + 1) - (cut(thread + 1) - cut(thread)) / 4;
  };
  if (cut(self.index()) < end_of_own(self.index())) {
    use(cut(self.index()), end_of_own(self.index()));
  }
  const std::size_t grain = std::max<std::size_t>(1, tiles / (threads * 32));
  std::size_t thread = 0;
  std::size_t passed = 0; // items of threads before that one
  for (std::size_t item = self.take();; item = self.take()) {
    const auto items = [&] { return (cut(thread + 1) - end_of_own(thread) + grain - 1) / grain; };
    while (thread < threads && item - passed >= items()) {
      passed += items();
      ++thread;
    }
    if (thread == threads) {
      return;
    }
    const std::size_t first = end_of_own(thread) + (item - passed) * grain;
    use(first, std::min(first + grain, cut(thread + 1)));
  }
}

} // namespace

result<std::unique_ptr<op_set>> cpu_ops::make(
  const kernel_table& kernels, const op_shape& shape, team& threads) {
  if (shape.kv.head_dim % 16 != 0) {
    return fail(errc::unsupported, "the cpu ops need heads of a multiple of 16 elements, the model has "
                                     + std::to_string(shape.kv.head_dim));
  }
  auto decided = shape;
  decided.kv.type = shape.wanted_kv.value_or(own_kv);
  if (decided.kv.type == kv_type::f32) {
    return fail(errc::unsupported, "the cpu ops keep keys and values in fp16, bf16 or int8, not in fp32");
  }
  return std::unique_ptr<op_set>{new cpu_ops(kernels, decided, threads)};
}

cpu_ops::cpu_ops(const kernel_table& kernels, const op_shape& shape, team& threads)
  : kernels_{kernels}, pages_{kernels.pages(shape.kv.type)}, shape_{shape}, threads_{threads},
    arena_{std::make_shared<weight_arena>()}, x_{std::size_t{shape.max_rows} * shape.embedding},
    out_{std::size_t{shape.max_rows} * shape.output},
    turns_{shape.ropes.size() * shape.max_rows * shape.rotary}, plan_{shape, threads.size(), partial_slots},
    partials_{partial_slots * partial_size(shape.kv.head_dim)}, sequence_of_row_(shape.max_rows),
    scratch_(threads.size()) {
  const auto ran = std::ranges::find(
    compiled_targets(), kernels.compiled_for(), [](const kernel_table& table) { return table.target; });
  GODWIT_CHECK(ran != compiled_targets().end());
  name_ = "cpu:" + std::string{ran->name};

  for (auto& in : inputs_) {
    in = input_rows{shape.max_rows, padded(shape.input)};
  }
  const std::size_t queries = plan_.most_queries();
  const std::size_t factors = std::min<std::size_t>(shape.max_rows, gated_rows) * tile_outputs;
  for (auto& own : scratch_) {
    own.row = aligned_array<float>{padded(std::max(shape.input, shape.embedding))};
    own.normed = input_rows{std::min<std::size_t>(shape.max_rows, most_alone), padded(shape.embedding)};
    own.gates = aligned_array<float>{factors};
    own.ups = aligned_array<float>{factors};
    own.tile = aligned_buffer{product_scratch_bytes(padded(shape.input))};
    own.scores = aligned_array<float>{attention_scratch(queries, shape.kv.head_dim)};
    own.results = aligned_array<float>{queries * partial_size(shape.kv.head_dim)};
    own.later = aligned_array<float>{queries * partial_size(shape.kv.head_dim)};
    own.queries.resize(queries);
  }
}

std::size_t cpu_ops::resident_bytes() const {
  std::size_t bytes = weight_bytes_ + x_.bytes() + out_.bytes() + turns_.bytes() + partials_.bytes();
  for (const auto& in : inputs_) {
    bytes += in.bytes();
  }
  return bytes;
}

result<std::unique_ptr<matrix>> cpu_ops::load_matrix(
  const gguf::file& file, std::span<const gguf::tensor* const> parts) {
  auto made = std::make_unique<packed_matrix>(arena_);
  for (const auto* tensor : parts) {
    GODWIT_CHECK(tensor->columns() == parts.front()->columns());
    const weight_format format = packed_part::format_for(tensor->type);
    (traits(format).quantised ? needs_quants_ : needs_floats_) = true;
    packed_part part = load_part(*tensor, format);
    file.forget(*tensor);
    weight_bytes_ += part.bytes().size();
    made->add(std::move(part));
  }
  return made;
}

packed_part cpu_ops::load_part(const gguf::tensor& tensor, weight_format format) {
  const std::size_t outputs = tensor.rows();
  const std::size_t inputs = tensor.columns();
  if (kept_ != nullptr) {
    if (const auto found = kept_->find(tensor.name, format, outputs, inputs); !found.empty()) {
      return {format, outputs, inputs, found};
    }
  }
  packed_part part{format, outputs, inputs, *arena_};
  threads_.run([&](worker& self) {
    for (std::size_t tile = self.take(); tile < part.tiles(); tile = self.take()) {
      part.pack(tensor, tile);
    }
  });
  if (kept_ != nullptr) {
    kept_->add(tensor.name, format, outputs, inputs, part.bytes());
  }
  return part;
}

result<std::unique_ptr<gain>> cpu_ops::load_gain(const gguf::file&, const gguf::tensor& tensor) {
  auto made = std::make_unique<float_gain>(tensor.columns());
  dequantize_row(tensor.type, tensor.data, made->values.data(), tensor.columns());
  weight_bytes_ += made->values.bytes();
  return made;
}

void cpu_ops::begin(const step& what) {
  GODWIT_CHECK(what.tokens.size() <= shape_.max_rows);
  step_ = what;
  ++steps_;
  plan_.make(what);
  for (std::uint32_t s = 0; s < what.sequences.size(); ++s) {
    const auto& part = what.sequences[s];
    std::fill_n(sequence_of_row_.begin() + part.first_row, part.rows, s);
  }
}

product_input cpu_ops::input(const scratch& own, std::size_t width) const {
  return {own.in->quants.data(), own.in->blocks.data(), own.in->floats.data(), padded(width)};
}

void cpu_ops::quantise(input_rows& to, const float* values, std::size_t count, std::size_t row,
  std::size_t offset, std::size_t width) const {
  const std::size_t at = row * padded(width) + offset;
  const std::size_t whole = count / block_inputs * block_inputs;
  kernels_.quantise(values, whole, to.quants.data() + at, to.blocks.data() + at / block_inputs);
}

void cpu_ops::make_turns(std::size_t row) {
  for (std::size_t r = 0; r < shape_.ropes.size(); ++r) {
    const rope& by = shape_.ropes[r];
    float* to = turns(r, row);
    for (const double frequency : by.frequencies) {
      const turn made = turn_by(step_.positions[row] * frequency);
      *to++ = static_cast<float>(made.cosine * by.magnitude);
      *to++ = static_cast<float>(made.sine * by.magnitude);
    }
  }
}

void cpu_ops::embed(worker& self, const matrix& table, float scale) {
  const auto mine = self.share(rows());
  for (std::size_t row = mine.begin; row < mine.end; ++row) {
    std::size_t token = step_.tokens[row];
    for (const auto& part : packed(table).parts) {
      if (token < part.outputs()) {
        part.unpack(token, {x(row), shape_.embedding});
        break;
      }
      token -= part.outputs();
    }
    for (std::size_t i = 0; i < shape_.embedding && scale != 1.0F; ++i) {
      x(row)[i] *= scale;
    }
    make_turns(row);
  }
  self.sync();
}

void cpu_ops::norm_row(scratch& own, const gain& weight, std::size_t from, std::size_t to) {
  const std::size_t width = shape_.embedding;
  auto& in = *own.in;
  float* const y = needs_floats_ ? in.floats.data() + to * padded(width) : own.row.data();
  kernels_.norm(x(from), static_cast<const float_gain&>(weight).values.data(), width, shape_.norm_epsilon, y);
  if (needs_quants_) {
    quantise(in, y, width, to, 0, width);
  }
}

bool cpu_ops::norms_alone(const worker& self, std::size_t count) const {
  return self.count() > 1 && count <= most_alone;
}

void cpu_ops::norm(worker& self, const gain& weight) {
  auto& own = scratch_[self.index()];
  const bool alone = norms_alone(self, rows());
  own.in = alone ? &own.normed : &inputs_[0];
  const auto mine = alone ? item_range{0, rows()} : self.share(rows());
  for (std::size_t row = mine.begin; row < mine.end; ++row) {
    norm_row(own, weight, row, row);
  }
  if (!alone) {
    self.sync();
  }
}

void cpu_ops::multiply(worker& self, const matrix& weights, std::size_t count, const product_output& out) {
  const auto& all = packed(weights);
  const product_input in = input(scratch_[self.index()], all.inputs());
  for_tiles(self, all.tiles, [&](std::size_t first, std::size_t last) {
    std::size_t start = 0; // first tile of the part
    product_output to = out;
    for (const auto& part : all.parts) {
      const std::size_t begin = std::max(first, start);
      const std::size_t end = std::min(last, start + part.tiles());
      if (begin < end) {
        kernels_.product(
          part, in, 0, count, begin - start, end - start, to, scratch_[self.index()].tile.data());
      }
      start += part.tiles();
      to.data += part.outputs();
    }
  });
  self.sync();
}

void cpu_ops::product(worker& self, const matrix& weights) {
  multiply(self, weights, rows(), {out_.data(), weights.outputs(), false});
}

void cpu_ops::add_product(worker& self, const matrix& weights) {
  multiply(self, weights, rows(), {x_.data(), shape_.embedding, true});
}

void cpu_ops::add_norm(worker& self, const gain& weight) {
  const std::size_t width = shape_.embedding;
  const float* const weights = static_cast<const float_gain&>(weight).values.data();
  float* const normed = scratch_[self.index()].row.data();
  const auto mine = self.share(rows());
  for (std::size_t row = mine.begin; row < mine.end; ++row) {
    kernels_.norm(out_.data() + row * width, weights, width, shape_.norm_epsilon, normed);
    for (std::size_t i = 0; i < width; ++i) {
      x(row)[i] += normed[i];
    }
  }
  self.sync();
}

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

void cpu_ops::rotate_and_store(worker& self, std::uint32_t layer, const head_weights& weights) {
  const std::size_t dim = shape_.kv.head_dim;
  const std::size_t kv_heads = shape_.kv.kv_heads;
  const std::size_t group = shape_.heads / kv_heads;
  const std::size_t stride = (shape_.heads + 2 * kv_heads) * dim;
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
    const float* const first = partials_.data() + plan_.slot(row, h, 0) * size;
    std::copy_n(first, size, merged);
    for (std::uint32_t segment = 1; segment < segments; ++segment) {
      kernels_.merge(first + segment * size, dim, merged);
    }
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

void cpu_ops::gated_product(worker& self, const matrix& weights, activation act) {
  const auto& all = packed(weights);
  GODWIT_CHECK(all.parts.size() == 2 && all.parts[0].outputs() == all.parts[1].outputs());
  const auto gate = act == activation::silu ? kernels_.gate : kernels_.gate_gelu;
  auto& own = scratch_[self.index()];
  const product_input in = input(own, all.inputs());
  input_rows& to = inputs_[1];
  const std::size_t width = all.parts[0].outputs();
  const std::size_t tiles = all.parts[0].tiles();
  // A tile's outputs are a block of the next product's inputs.
  static_assert(tile_outputs == block_inputs);
  const auto finish_row = [&](std::size_t row, std::size_t at, std::size_t first, std::size_t count) {
    float* const y = needs_floats_ ? to.floats.data() + row * padded(width) + first : own.row.data();
    gate(own.gates.data() + at * tile_outputs, own.ups.data() + at * tile_outputs, count, y);
    if (needs_quants_) {
      quantise(to, y, count, row, first, width);
    }
  };
  const auto finish_tile = [&](std::size_t tile) {
    const std::size_t first = tile * tile_outputs;
    const std::size_t count = std::min(tile_outputs, width - first);
    for (std::size_t row = 0; row < rows(); row += gated_rows) {
      const std::size_t some = std::min(gated_rows, rows() - row);
      for (std::size_t part = 0; part < 2; ++part) {
        float* const factor = part == 0 ? own.gates.data() : own.ups.data();
        kernels_.product(all.parts[part], in.from(row), 0, some, tile, tile + 1,
          {factor, tile_outputs, false, first}, own.tile.data());
      }
      for (std::size_t r = 0; r < some; ++r) {
        finish_row(row + r, r, first, count);
      }
    }
  };
  for_tiles(self, tiles, [&](std::size_t first, std::size_t last) {
    for (std::size_t tile = first; tile < last; ++tile) {
      finish_tile(tile);
    }
  });
  self.sync();
  own.in = &to;
}

void cpu_ops::tap(worker& self, std::span<const std::uint32_t> rows, std::span<float> values) {
  const auto mine = self.share(rows.size());
  for (std::size_t i = mine.begin; i < mine.end; ++i) {
    std::copy_n(x(rows[i]), shape_.embedding, values.data() + i * shape_.embedding);
  }
  self.sync();
}

void cpu_ops::finish(
  worker& self, const gain& weight, const matrix& head, float cap, std::span<float> logits) {
  auto& own = scratch_[self.index()];
  const bool alone = norms_alone(self, step_.wanted.size());
  own.in = alone ? &own.normed : &inputs_[0];
  const auto mine = alone ? item_range{0, step_.wanted.size()} : self.share(step_.wanted.size());
  for (std::size_t i = mine.begin; i < mine.end; ++i) {
    norm_row(own, weight, step_.wanted[i], i);
  }
  if (!alone) {
    self.sync();
  }
  multiply(self, head, step_.wanted.size(), {logits.data(), head.outputs(), false});
  if (cap != 0) {
    const auto part = self.share(logits.size());
    kernels_.cap(logits.data() + part.begin, part.end - part.begin, cap);
    self.sync();
  }
}

} // namespace godwit::ops::cpu
