#include "kernels/models/transformer.hpp"

#include "kernels/models/fingerprint.hpp"
#include "kernels/models/transformer_weights.hpp"
#include "kernels/ops/contract.hpp"
#include "kernels/ops/cpu/packed_file.hpp"
#include "kernels/ops/dispatch.hpp"
#include "messages/check.hpp"

#include <algorithm>
#include <functional>
#include <new>
#include <system_error>
#include <vector>

namespace godwit {

namespace {

class transformer final : public model {
 public:
  transformer(std::shared_ptr<const gguf::file> file, const transformer_form& form, std::string fingerprint,
    std::unique_ptr<team> threads, std::unique_ptr<ops::op_set> ops,
    std::unique_ptr<const ops::cpu::packed_file> packed, transformer_weights weights, std::uint32_t max_rows)
    : file_{std::move(file)}, form_{form}, fingerprint_{std::move(fingerprint)}, threads_{std::move(threads)},
      ops_{std::move(ops)}, packed_{std::move(packed)}, weights_{std::move(weights)}, max_rows_{max_rows} {
    shape_ = {.architecture = form.architecture,
      .context = form.context,
      .vocabulary = form.vocabulary,
      .embedding = form.embedding,
      .heads = form.heads,
      .kv = {.layers = form.layers,
        .kv_heads = form.kv_heads,
        .head_dim = form.head_dim,
        .type = ops_->kv_elements()},
      .ops = std::string{ops_->name()}};
    tokens_.reserve(max_rows);
    positions_.reserve(max_rows);
    sequences_.reserve(max_rows);
    wanted_.reserve(max_rows);
    tapped_.reserve(max_rows);
  }

  const model_shape& shape() const override { return shape_; }
  const std::string& fingerprint() const override { return fingerprint_; }
  std::uint32_t max_rows() const override { return max_rows_; }
  std::uint32_t threads() const override { return threads_->size(); }

  void share_out(
    std::size_t items, const std::function<void(std::size_t item, std::uint32_t thread)>& job) override {
    if (items == 1) { // nobody need be woken
      job(0, 0);
    } else if (items > 1) {
      threads_->run([&](worker& self) {
        for (std::size_t item = self.take(); item < items; item = self.take()) {
          job(item, self.index());
        }
      });
    }
  }

  void forward(std::span<const chunk> chunks, std::span<float> logits, const hidden_taps& taps) override {
    plan(chunks);
    GODWIT_CHECK(logits.size() == wanted_.size() * shape_.vocabulary);
    check(taps);
    if (tokens_.empty()) {
      return;
    }
    ops_->begin({tokens_, positions_, sequences_, wanted_});
    threads_->run([&](worker& self) { compute(self, logits, taps); });
    for (const auto& part : chunks) {
      part.target->advance(static_cast<std::uint32_t>(part.tokens.size()));
    }
  }

 private:
  /// Lays the rows of the chunks out one after the other.
  void plan(std::span<const chunk> chunks) {
    tokens_.clear();
    positions_.clear();
    sequences_.clear();
    wanted_.clear();
    tapped_.clear();
    for (const auto& part : chunks) {
      const auto count = static_cast<std::uint32_t>(part.tokens.size());
      if (count == 0) {
        continue;
      }
      const auto first = static_cast<std::uint32_t>(tokens_.size());
      const position_t start = part.target->length();
      GODWIT_CHECK(count <= max_rows_ - first);
      GODWIT_CHECK(start < shape_.context && count <= shape_.context - start);
      GODWIT_CHECK(part.target->pool().shape() == shape_.kv);
      sequences_.push_back({part.target, first, count});
      for (std::uint32_t i = 0; i < count; ++i) {
        GODWIT_CHECK(part.tokens[i] < shape_.vocabulary);
        tokens_.push_back(part.tokens[i]);
        positions_.push_back(start + i);
        const auto asked = [&](logits_wanted which) {
          return which == logits_wanted::all || (which == logits_wanted::last && i + 1 == count);
        };
        if (asked(part.logits)) {
          wanted_.push_back(first + i);
        }
        if (asked(part.tapped)) {
          tapped_.push_back(first + i);
        }
      }
    }
  }

  void check(const hidden_taps& taps) const {
    GODWIT_CHECK(taps.values.size() == taps.layers.size() * tapped_.size() * shape_.embedding);
    for (std::size_t i = 0; i < taps.layers.size(); ++i) {
      GODWIT_CHECK(taps.layers[i] < form_.layers && (i == 0 || taps.layers[i - 1] < taps.layers[i]));
    }
  }

  /// One thread's part of a step.
  void compute(worker& self, std::span<float> logits, const hidden_taps& taps) {
    auto& ops = *ops_;
    std::size_t next_tap = 0;
    ops.embed(self, *weights_.embedding, static_cast<float>(form_.embedding_scale));
    for (std::uint32_t i = 0; i < form_.layers; ++i) {
      const auto& block = weights_.blocks[i];
      ops.norm(self, *block.attention_norm);
      ops.product(self, *block.attention_input);
      ops.rotate_and_store(self, i, block.heads());
      ops.attend(self, i);
      add(self, *block.attention_output, block.attention_output_norm.get());
      ops.norm(self, *block.feed_forward_norm);
      ops.gated_product(self, *block.feed_forward_input, form_.gate);
      add(self, *block.feed_forward_output, block.feed_forward_output_norm.get());
      if (next_tap < taps.layers.size() && taps.layers[next_tap] == i && !tapped_.empty()) {
        const std::size_t size = tapped_.size() * shape_.embedding;
        ops.tap(self, tapped_, taps.values.subspan(next_tap * size, size));
        ++next_tap;
      }
    }
    if (!wanted_.empty()) {
      ops.finish(self, *weights_.output_norm, weights_.output ? *weights_.output : *weights_.embedding,
        static_cast<float>(form_.logit_cap), logits);
    }
  }

  /// Adds a product to the residual stream, normed first where the model says so.
  void add(worker& self, const ops::matrix& weights, const ops::gain* norm) {
    if (norm == nullptr) {
      ops_->add_product(self, weights);
    } else {
      ops_->product(self, weights);
      ops_->add_norm(self, *norm);
    }
  }

  std::shared_ptr<const gguf::file> file_; ///< some ops read weights in place
  transformer_form form_;
  std::string fingerprint_;
  model_shape shape_;
  std::unique_ptr<team> threads_;
  std::unique_ptr<ops::op_set> ops_;
  std::unique_ptr<const ops::cpu::packed_file> packed_; ///< weights may point into it
  transformer_weights weights_;
  std::uint32_t max_rows_;

  // The current step.
  std::vector<token_id> tokens_;
  std::vector<position_t> positions_;
  std::vector<ops::step_sequence> sequences_;
  std::vector<std::uint32_t> wanted_;
  std::vector<std::uint32_t> tapped_;
};

/// The widths of the graph.
result<ops::op_shape> shape_for(
  const transformer_form& form, std::uint32_t max_rows, std::optional<kv_type> kv) {
  const ops::op_shape shape{.max_rows = max_rows,
    .embedding = form.embedding,
    .input = std::max({form.embedding, form.heads * form.head_dim, form.feed_forward}),
    .output = std::max((form.heads + 2 * form.kv_heads) * form.head_dim, form.embedding),
    .gated = form.feed_forward,
    .heads = form.heads,
    .context = form.context,
    .rotary = form.rotary,
    .pairs = form.pairs,
    .ropes = form.ropes,
    .layers = form.attention,
    .attention_scale = form.attention_scale,
    .score_cap = form.score_cap,
    .norm_epsilon = static_cast<float>(form.norm_epsilon),
    .kv = {.layers = form.layers, .kv_heads = form.kv_heads, .head_dim = form.head_dim},
    .wanted_kv = kv};
  // A file's numbers decide what is allocated, so they get a limit of their own.
  constexpr std::uint64_t most_elements = std::uint64_t{1} << 29;
  const std::uint64_t widths =
    std::uint64_t{shape.embedding} + shape.input + shape.output + 2 * std::uint64_t{shape.gated};
  if (std::uint64_t{max_rows} * widths > most_elements) {
    return fail(errc::unsupported, "a model this wide");
  }
  for (const auto& rope : form.ropes) {
    for (const double frequency : rope.frequencies) {
      if (frequency * form.context > ops::most_angle) {
        return fail(errc::unsupported, "rotary positions that turn this fast over a context this long");
      }
    }
  }
  return shape;
}

/// Writes weights that were not kept yet. Failing to is no reason not to run.
void keep(ops::cpu::packed_file& packed, const model_options& options, team& workers) {
  const auto say = [&](const std::string& what) {
    if (options.notice) {
      options.notice(what);
    }
  };
  if (!packed.why().empty()) {
    say("packed weights in " + options.packed.string() + " are made anew: " + packed.why());
  }
  if (const auto written = packed.write(workers); !written) {
    say(options.packed.string() + ": " + written.error().message);
  }
}

result<std::unique_ptr<model>> load(
  std::shared_ptr<const gguf::file> file, const transformer_form& form, const model_options& options) {
  const auto shape = shape_for(form, options.max_rows, options.kv);
  if (!shape) {
    return fail(shape);
  }
  auto workers = std::make_unique<team>(options.threads, options.adapts_threads);
  auto made = ops::make_op_set(options.implementation, *shape, *workers);
  if (!made) {
    return fail(made);
  }
  auto& op_set = *made;
  // Before the weights are packed and the file's pages forgotten.
  auto fingerprint = fingerprint_of(*file, ops::contract_of(op_set->name()), form.to_string(), *workers);
  std::unique_ptr<ops::cpu::packed_file> packed;
  if (!options.packed.empty()) {
    packed = std::make_unique<ops::cpu::packed_file>(options.packed, fingerprint, *workers);
    op_set->keep_packed(packed.get());
  }
  // Weights are packed alike whatever pages there are.
  if (op_set->kv_elements() != ops::own_kv_type(op_set->name())) {
    fingerprint = fingerprint_with_pages(fingerprint, op_set->kv_elements());
  }
  auto weights = load_weights(*file, form, *op_set);
  op_set->keep_packed(nullptr);
  if (!weights) {
    return fail(weights);
  }
  if (packed) {
    keep(*packed, options, *workers);
  }
  return std::make_unique<transformer>(std::move(file), form, std::move(fingerprint), std::move(workers),
    std::move(op_set), std::move(packed), std::move(*weights), options.max_rows);
}

} // namespace

result<std::unique_ptr<model>> load_transformer(
  std::shared_ptr<const gguf::file> file, const transformer_form& form, const model_options& options) {
  try {
    return load(std::move(file), form, options);
  } catch (const std::bad_alloc&) {
    return fail(errc::resource_exhausted, "no memory for the model's weights");
  } catch (const std::system_error&) {
    return fail(errc::resource_exhausted, "the system gives no more threads");
  }
}

} // namespace godwit
