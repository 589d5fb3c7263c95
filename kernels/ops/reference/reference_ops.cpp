#include "kernels/ops/reference/reference_ops.hpp"

#include "kernels/ops/reference/page_codec.hpp"
#include "kernels/ops/rope.hpp"
#include "kernels/quant/dequantize.hpp"
#include "messages/check.hpp"

#include <algorithm>
#include <cmath>

namespace godwit::ops::reference {

namespace {

/// Weights stay in the file and are dequantised row by row as they are used.
class file_matrix final : public matrix {
 public:
  explicit file_matrix(std::span<const gguf::tensor* const> parts) : parts_(parts.begin(), parts.end()) {
    for (const auto* part : parts_) {
      outputs_ += static_cast<std::uint32_t>(part->rows());
    }
  }
  std::uint32_t outputs() const override { return outputs_; }
  std::uint32_t inputs() const override { return static_cast<std::uint32_t>(parts_.front()->columns()); }

  void row(std::size_t output, double* to) const {
    for (const auto* part : parts_) {
      if (output < part->rows()) {
        const auto bytes = part->data.subspan(output * part->row_bytes(), part->row_bytes());
        dequantize_row(part->type, bytes, to, part->columns());
        return;
      }
      output -= part->rows();
    }
  }

 private:
  std::vector<const gguf::tensor*> parts_;
  std::uint32_t outputs_ = 0;
};

class double_gain final : public gain {
 public:
  std::vector<double> values;
};

const std::vector<double>& values_of(const gain& weight) {
  return static_cast<const double_gain&>(weight).values;
}

/// 1 / rms(x)
double inverse_rms(const double* x, std::size_t width, double epsilon) {
  double squares = 0;
  for (std::size_t i = 0; i < width; ++i) {
    squares += x[i] * x[i];
  }
  return 1 / std::sqrt(squares / static_cast<double>(width) + epsilon);
}

/// Adds a bias to several heads; nullptr adds nothing.
void add_bias(double* x, const gain* bias) {
  if (bias != nullptr) {
    for (const double value : values_of(*bias)) {
      *x++ += value;
    }
  }
}

/// Norms each of `heads` heads; nullptr changes nothing.
void norm_heads(double* x, std::size_t heads, const gain* weight, double epsilon) {
  if (weight == nullptr) {
    return;
  }
  const auto& gains = values_of(*weight);
  for (std::size_t head = 0; head < heads; ++head, x += gains.size()) {
    const double inverse = inverse_rms(x, gains.size(), epsilon);
    for (std::size_t d = 0; d < gains.size(); ++d) {
      x[d] = x[d] * inverse * gains[d];
    }
  }
}

double capped(double x, double cap) {
  return cap == 0 ? x : cap * std::tanh(x / cap);
}

double activated(double a, activation act) {
  if (act == activation::silu) {
    return a / (1 + std::exp(-a));
  }
  return a / 2 * (1 + std::tanh(0.79788456080286535588 * (a + 0.044715 * a * a * a)));
}

} // namespace

reference_ops::reference_ops(const op_shape& shape, team& threads)
  : loops_{loops_here()}, shape_{shape}, x_(std::size_t{shape.max_rows} * shape.embedding),
    in_((shape.max_rows + group - 1) / group * group * std::size_t{shape.input}),
    out_(std::size_t{shape.max_rows} * std::max(shape.output, 2 * shape.gated)),
    sequence_of_row_(shape.max_rows), scratch_(threads.size()), pages_(threads.size()) {
  shape_.kv.type = shape.wanted_kv.value_or(own_kv);
  for (auto& page : pages_) {
    page.resize(shape.kv.page_elements() / 2);
  }
  for (auto& own : scratch_) {
    own.resize(std::max({shape.context + page_tokens + shape.kv.head_dim, shape.input, shape.embedding}));
  }
}

std::size_t reference_ops::resident_bytes() const {
  return (x_.size() + in_.size() + out_.size()) * sizeof(double);
}

result<std::unique_ptr<matrix>> reference_ops::load_matrix(
  const gguf::file&, std::span<const gguf::tensor* const> parts) {
  return std::make_unique<file_matrix>(parts);
}

result<std::unique_ptr<gain>> reference_ops::load_gain(const gguf::file&, const gguf::tensor& tensor) {
  auto made = std::make_unique<double_gain>();
  made->values.resize(tensor.columns());
  dequantize_row(tensor.type, tensor.data, made->values.data(), tensor.columns());
  return made;
}

void reference_ops::begin(const step& what) {
  GODWIT_CHECK(what.tokens.size() <= shape_.max_rows);
  step_ = what;
  ++steps_;
  for (std::uint32_t s = 0; s < what.sequences.size(); ++s) {
    const auto& part = what.sequences[s];
    std::fill_n(sequence_of_row_.begin() + part.first_row, part.rows, s);
  }
}

void reference_ops::embed(worker& self, const matrix& table, float scale) {
  const auto mine = self.share(rows());
  for (std::size_t row = mine.begin; row < mine.end; ++row) {
    double* const x = &x_[row * shape_.embedding];
    static_cast<const file_matrix&>(table).row(step_.tokens[row], x);
    for (std::size_t i = 0; i < shape_.embedding; ++i) {
      x[i] *= static_cast<double>(scale);
    }
  }
  self.sync();
}

void reference_ops::norm_row(const gain& weight, std::size_t from, std::size_t to) {
  const std::size_t width = shape_.embedding;
  const double* const x = &x_[from * width];
  const double inverse = inverse_rms(x, width, shape_.norm_epsilon);
  const auto& gains = values_of(weight);
  for (std::size_t i = 0; i < width; ++i) {
    input(to, width, i) = x[i] * inverse * gains[i];
  }
}

void reference_ops::norm(worker& self, const gain& weight) {
  const auto mine = self.share(rows());
  for (std::size_t row = mine.begin; row < mine.end; ++row) {
    norm_row(weight, row, row);
  }
  self.sync();
}

template <class Take>
void reference_ops::multiply(worker& self, const matrix& weights, std::size_t count, Take&& take) {
  const auto& all = static_cast<const file_matrix&>(weights);
  const std::size_t width = all.inputs();
  double* const w = scratch_[self.index()].data();
  const auto mine = self.share(all.outputs());
  for (std::size_t output = mine.begin; output < mine.end && count != 0; ++output) {
    all.row(output, w);
    for (std::size_t first = 0; first < count; first += group) {
      const double* const in = &in_[first * width];
      double sums[group] = {};
      if (count - first == 1) {
        for (std::size_t i = 0; i < width; ++i) {
          sums[0] += w[i] * in[i * group];
        }
      } else {
        loops_.multiply(w, in, width, sums);
      }
      for (std::size_t r = 0; r < std::min(group, count - first); ++r) {
        take(first + r, output, sums[r]);
      }
    }
  }
  self.sync();
}

void reference_ops::product(worker& self, const matrix& weights) {
  const std::size_t stride = weights.outputs();
  multiply(self, weights, rows(),
    [&](std::size_t row, std::size_t output, double sum) { out_[row * stride + output] = sum; });
}

void reference_ops::add_product(worker& self, const matrix& weights) {
  multiply(self, weights, rows(),
    [&](std::size_t row, std::size_t output, double sum) { x_[row * shape_.embedding + output] += sum; });
}

void reference_ops::add_norm(worker& self, const gain& weight) {
  const std::size_t width = shape_.embedding;
  const auto& gains = values_of(weight);
  const auto mine = self.share(rows());
  for (std::size_t row = mine.begin; row < mine.end; ++row) {
    const double* const from = &out_[row * width];
    const double inverse = inverse_rms(from, width, shape_.norm_epsilon);
    for (std::size_t i = 0; i < width; ++i) {
      x_[row * width + i] += from[i] * inverse * gains[i];
    }
  }
  self.sync();
}

void reference_ops::prepare_heads(double* heads, const head_weights& weights) const {
  double* const keys = heads + std::size_t{shape_.heads} * shape_.kv.head_dim;
  add_bias(heads, weights.query_bias);
  add_bias(keys, weights.key_bias);
  add_bias(keys + std::size_t{shape_.kv.kv_heads} * shape_.kv.head_dim, weights.value_bias);
  norm_heads(heads, shape_.heads, weights.query_norm, shape_.norm_epsilon);
  norm_heads(keys, shape_.kv.kv_heads, weights.key_norm, shape_.norm_epsilon);
}

void reference_ops::rotate(double* x, position_t position, const rope& by) const {
  const std::size_t pairs = by.frequencies.size();
  const bool halves = shape_.pairs == rope_pairs::halves;
  for (std::size_t i = 0; i < pairs; ++i) {
    const turn made = turn_by(position * by.frequencies[i]);
    double& first = x[halves ? i : 2 * i];
    double& second = x[halves ? i + pairs : 2 * i + 1];
    const double x0 = first * by.magnitude;
    const double x1 = second * by.magnitude;
    first = x0 * made.cosine - x1 * made.sine;
    second = x0 * made.sine + x1 * made.cosine;
  }
}

void reference_ops::rotate_and_store(worker& self, std::uint32_t layer, const head_weights& weights) {
  const rope& by = shape_.ropes[shape_.layers[layer].rope];
  const std::size_t dim = shape_.kv.head_dim;
  const std::size_t stride = (shape_.heads + 2 * std::size_t{shape_.kv.kv_heads}) * dim;
  const auto mine = self.share(rows());
  for (std::size_t row = mine.begin; row < mine.end; ++row) {
    double* const heads = &out_[row * stride];
    const auto& part = step_.sequences[sequence_of_row_[row]];
    prepare_heads(heads, weights);
    for (std::size_t head = 0; head < shape_.heads + shape_.kv.kv_heads; ++head) {
      rotate(heads + head * dim, step_.positions[row], by);
    }
    for (std::uint32_t head = 0; head < shape_.kv.kv_heads; ++head) {
      const double* const k = heads + (shape_.heads + head) * dim;
      const double* const v = k + shape_.kv.kv_heads * dim;
      const std::size_t slot = part.target->kept(layer, head) + (row - part.first_row);
      const page_id page = part.target->pages(layer, head)[slot / page_tokens];
      auto* const to = reinterpret_cast<std::byte*>(part.target->pool().data(page));
      store_position(shape_.kv, k, v, to, slot % page_tokens);
    }
  }
  self.sync();
}

void reference_ops::attend_head(
  std::uint32_t layer, std::size_t row, std::size_t head, std::uint32_t thread) {
  auto& scores = scratch_[thread];
  const std::size_t dim = shape_.kv.head_dim;
  const std::size_t kv_heads = shape_.kv.kv_heads;
  const auto kv_head = static_cast<std::uint32_t>(head / (shape_.heads / kv_heads));
  const auto& part = step_.sequences[sequence_of_row_[row]];
  const auto pages = part.target->pages(layer, kv_head);
  const std::size_t visible = part.target->kept(layer, kv_head) + (row - part.first_row) + 1;
  const auto page = [&](std::size_t index) {
    return reinterpret_cast<const std::byte*>(part.target->pool().data(pages[index]));
  };
  float* const room = pages_[thread].data();
  const double* const q = &out_[row * (shape_.heads + 2 * kv_heads) * dim + head * dim];

  const std::uint32_t window = shape_.layers[layer].window;
  // By true positions: a sequence may not have kept all that the window spans.
  const position_t end = step_.positions[row] + 1;
  const std::size_t first =
    window != 0 && end > window ? part.target->slot_from(layer, kv_head, end - window) : 0;
  const std::size_t first_page = first / page_tokens * page_tokens;
  for (std::size_t start = first_page; start < visible; start += page_tokens) {
    double sums[page_tokens];
    loops_.score(q, load_keys(shape_.kv, page(start / page_tokens), room), dim, sums);
    for (std::size_t j = 0; j < page_tokens; ++j) {
      scores[start + j] = capped(sums[j] * shape_.attention_scale, shape_.score_cap);
    }
  }
  const double maximum = *std::max_element(scores.begin() + static_cast<std::ptrdiff_t>(first),
    scores.begin() + static_cast<std::ptrdiff_t>(visible));
  double total = 0;
  for (std::size_t j = first; j < visible; ++j) {
    scores[j] = std::exp(scores[j] - maximum);
    total += scores[j];
  }
  const std::size_t width = shape_.heads * dim;
  // The sums stand behind the scores.
  double* const sums = scores.data() + (visible + page_tokens - 1) / page_tokens * page_tokens;
  std::fill_n(sums, dim, 0.0);
  for (std::size_t start = first_page; start < visible; start += page_tokens) {
    const float* const values = load_values(shape_.kv, page(start / page_tokens), room);
    const std::size_t from = std::max(start, first);
    const std::size_t to = std::min<std::size_t>(start + page_tokens, visible);
    loops_.add(&scores[from], values + (from - start) * dim, to - from, dim, sums);
  }
  for (std::size_t d = 0; d < dim; ++d) {
    input(row, width, head * dim + d) = sums[d] / total;
  }
}

void reference_ops::attend(worker& self, std::uint32_t layer) {
  for (std::size_t item = self.take(); item < rows() * shape_.heads; item = self.take()) {
    attend_head(layer, item / shape_.heads, item % shape_.heads, self.index());
  }
  self.sync();
}

void reference_ops::gated_product(worker& self, const matrix& weights, activation act) {
  product(self, weights);
  const std::size_t width = weights.outputs() / 2;
  const auto mine = self.share(rows());
  for (std::size_t row = mine.begin; row < mine.end; ++row) {
    const double* const a = &out_[row * 2 * width];
    for (std::size_t i = 0; i < width; ++i) {
      input(row, width, i) = activated(a[i], act) * a[width + i];
    }
  }
  self.sync();
}

void reference_ops::tap(worker& self, std::span<const std::uint32_t> rows, std::span<float> values) {
  const std::size_t width = shape_.embedding;
  const auto mine = self.share(rows.size());
  for (std::size_t i = mine.begin; i < mine.end; ++i) {
    for (std::size_t k = 0; k < width; ++k) {
      values[i * width + k] = static_cast<float>(x_[rows[i] * width + k]);
    }
  }
  self.sync();
}

void reference_ops::finish(
  worker& self, const gain& weight, const matrix& head, float cap, std::span<float> logits) {
  const auto mine = self.share(step_.wanted.size());
  for (std::size_t i = mine.begin; i < mine.end; ++i) {
    norm_row(weight, step_.wanted[i], i);
  }
  self.sync();
  const std::size_t stride = head.outputs();
  multiply(self, head, step_.wanted.size(), [&](std::size_t row, std::size_t output, double sum) {
    logits[row * stride + output] = static_cast<float>(capped(sum, cap));
  });
}

} // namespace godwit::ops::reference
