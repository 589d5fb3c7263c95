#include "kernels/ops/cpu/cpu_ops.hpp"

#include "kernels/ops/cpu/loaded.hpp"
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
constexpr std::size_t most_alone = 8;
/// Rows of a gated product whose two factors wait in the near caches.
constexpr std::size_t gated_rows = 512;

/// Of those, rows that are gated and quantised together: what is between stays in the first cache.
constexpr std::size_t finished_rows = 64;

/// Calls `use(first, last)` for runs of tiles until all threads together have done all of them. Most of them
/// are a run of each thread's own, since the tile that it asks for ahead is the one behind the last. What is
/// left goes to whoever comes first, so that a slower thread does less.
template <class Use>
void for_tiles(worker& self, std::size_t tiles, Use&& use) {
  const std::size_t threads = self.count();
  const auto cut = [&](std::size_t thread) { return first_of_share(tiles, thread, threads); };
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
    own.coming.reserve(most_coming / shape.kv.page_bytes() + 1);
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
    weight_blocks_ += part.tiles() * part.blocks();
    made->add(std::move(part));
  }
  if (loaded_last_) {
    loaded_last_->set(made->parts);
  }
  loaded_last_ = made->following;
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
  for (auto& own : scratch_) {
    own.next = nullptr; // matrices live at least as long as a step
  }
  for (std::uint32_t s = 0; s < what.sequences.size(); ++s) {
    const auto& part = what.sequences[s];
    std::fill_n(sequence_of_row_.begin() + part.first_row, part.rows, s);
  }
}

product_input cpu_ops::input(scratch& own, std::size_t width) const {
  return {own.in->quants.data(), own.in->blocks.data(), own.in->floats.data(), padded(width),
    own.list.count != 0 ? &own.list : nullptr};
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
  list_coming(self, 0);
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
  auto& own = scratch_[self.index()];
  own.next = all.following.get();
  own.next->ask_for_first(self);
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
  /// @param at their first among the rows whose factors wait
  const auto finish_rows = [&](std::size_t row, std::size_t at, std::size_t some, std::size_t first,
                             std::size_t count) {
    // Of a last tile that is not whole the rest is computed from what was there, and not used.
    float* const y = own.gates.data() + at * tile_outputs;
    gate(y, own.ups.data() + at * tile_outputs, some * tile_outputs, y);
    const std::size_t start = row * padded(width) + first;
    for (std::size_t r = 0; r < some && needs_floats_; ++r) {
      std::copy_n(y + r * tile_outputs, count, to.floats.data() + start + r * padded(width));
    }
    if (needs_quants_ && count == block_inputs) {
      const quantise_to blocks{to.quants.data() + start, padded(width),
        to.blocks.data() + start / block_inputs, padded(width) / block_inputs};
      kernels_.quantise_blocks({y, tile_outputs}, blocks, some);
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
      for (std::size_t r = 0; r < some; r += finished_rows) {
        finish_rows(row + r, r, std::min(finished_rows, some - r), first, count);
      }
    }
  };
  for_tiles(self, tiles, [&](std::size_t first, std::size_t last) {
    for (std::size_t tile = first; tile < last; ++tile) {
      finish_tile(tile);
    }
  });
  all.following->ask_for_first(self);
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
