#include "kernels/models/llama.hpp"

#include "kernels/models/fingerprint.hpp"
#include "kernels/models/tensors.hpp"
#include "kernels/ops/contract.hpp"
#include "kernels/ops/dispatch.hpp"
#include "messages/check.hpp"

#include <algorithm>
#include <bit>
#include <new>
#include <optional>
#include <system_error>
#include <vector>

namespace godwit {

namespace {

/// The numbers of a file, checked.
struct llama_numbers {
  std::uint32_t layers = 0;
  std::uint32_t context = 0;
  std::uint32_t vocabulary = 0;
  std::uint32_t embedding = 0;
  std::uint32_t feed_forward = 0;
  std::uint32_t heads = 0;
  std::uint32_t kv_heads = 0;
  std::uint32_t head_dim = 0;
  std::uint32_t rotary = 0;
  double rope_base = 0;
  double norm_epsilon = 0;

  /// All of them, for the fingerprint; floats by their bits.
  std::string to_string() const {
    std::string text = "llama ";
    for (const std::uint64_t number : {std::uint64_t{layers}, std::uint64_t{context},
           std::uint64_t{vocabulary}, std::uint64_t{embedding}, std::uint64_t{feed_forward},
           std::uint64_t{heads}, std::uint64_t{kv_heads}, std::uint64_t{head_dim}, std::uint64_t{rotary},
           std::bit_cast<std::uint64_t>(rope_base), std::bit_cast<std::uint64_t>(norm_epsilon)}) {
      text += std::to_string(number) + ' ';
    }
    return text;
  }
};

/// What this graph would silently get wrong.
result<void> refuse_unknown(const gguf::file& file) {
  if (file.find("llama.rope.scaling.type") != nullptr) {
    const auto scaling = file.string_value("llama.rope.scaling.type");
    if (!scaling) {
      return fail(scaling);
    }
    if (*scaling != "none") {
      return fail(errc::unsupported, "rotary positions scaled by llama.rope.scaling.type = \""
                                       + std::string{scaling->substr(0, 64)} + "\"");
    }
  }
  const auto linear = positive_or(file, "llama.rope.scale_linear", 1);
  if (!linear) {
    return fail(linear);
  }
  if (*linear != 1) {
    return fail(errc::unsupported, "rotary positions scaled by llama.rope.scale_linear");
  }
  for (const std::string key : {"llama.expert_count", "llama.attention.sliding_window"}) {
    const auto number = bounded_or(file, key, 0, 0xFFFFFFFF, 0);
    if (!number) {
      return fail(number);
    }
    if (*number != 0) {
      return fail(errc::unsupported, "the feature " + key);
    }
  }
  return {};
}

result<llama_numbers> read_numbers(const gguf::file& file) {
  if (const auto known = refuse_unknown(file); !known) {
    return fail(known);
  }
  // Bounds far above any model that fits a machine, so that products of two of these fit 64 bits with room.
  const auto layers = bounded(file, "llama.block_count", 1, 1024);
  const auto context = bounded(file, "llama.context_length", 1, 1U << 20U);
  const auto embedding = bounded(file, "llama.embedding_length", 1, 1U << 17U);
  const auto feed_forward = bounded(file, "llama.feed_forward_length", 1, 1U << 20U);
  const auto heads = bounded(file, "llama.attention.head_count", 1, 1024);
  const auto rope_base = positive_or(file, "llama.rope.freq_base", 10000);
  const auto epsilon = positive_or(file, "llama.attention.layer_norm_rms_epsilon", 0);
  for (const auto* number : {&layers, &context, &embedding, &feed_forward, &heads}) {
    if (!*number) {
      return fail(*number);
    }
  }
  if (!rope_base || !epsilon) {
    return fail(!rope_base ? rope_base : epsilon);
  }
  if (*epsilon == 0) {
    return fail(errc::corrupt, "the model file lacks the metadata llama.attention.layer_norm_rms_epsilon");
  }
  const auto kv_heads = bounded_or(file, "llama.attention.head_count_kv", 1, *heads, *heads);
  if (!kv_heads) {
    return fail(kv_heads);
  }
  if (*heads % *kv_heads != 0) {
    return fail(errc::corrupt, "llama.attention.head_count is no multiple of llama.attention.head_count_kv");
  }
  const auto head_dim = bounded_or(file, "llama.attention.key_length", 2, 1024, *embedding / *heads);
  const auto value_dim = bounded_or(file, "llama.attention.value_length", 2, 1024, *embedding / *heads);
  if (!head_dim || !value_dim) {
    return fail(!head_dim ? head_dim : value_dim);
  }
  if (*value_dim != *head_dim) {
    return fail(errc::unsupported, "values of another length than keys (llama.attention.value_length)");
  }
  if (*head_dim < 2 || (file.find("llama.attention.key_length") == nullptr && *embedding % *heads != 0)) {
    return fail(errc::corrupt, "llama.embedding_length is no multiple of llama.attention.head_count");
  }
  const auto rotary = bounded_or(file, "llama.rope.dimension_count", 2, *head_dim, *head_dim);
  if (!rotary) {
    return fail(rotary);
  }
  if (*rotary % 2 != 0) {
    return fail(errc::corrupt, "llama.rope.dimension_count is odd");
  }
  const auto* table = file.find_tensor("token_embd.weight");
  if (table == nullptr) {
    return fail(errc::corrupt, "the model file lacks the tensor token_embd.weight");
  }
  const auto vocabulary = bounded_or(file, "llama.vocab_size", 1, 1U << 24U,
    static_cast<std::uint32_t>(std::min<std::uint64_t>(table->rows(), 1U << 24U)));
  if (!vocabulary) {
    return fail(vocabulary);
  }
  return llama_numbers{.layers = *layers,
    .context = *context,
    .vocabulary = *vocabulary,
    .embedding = *embedding,
    .feed_forward = *feed_forward,
    .heads = *heads,
    .kv_heads = *kv_heads,
    .head_dim = *head_dim,
    .rotary = *rotary,
    .rope_base = *rope_base,
    .norm_epsilon = *epsilon};
}

struct llama_layer {
  std::unique_ptr<ops::gain> attention_norm;
  std::unique_ptr<ops::matrix> attention_input; ///< queries, keys, values
  std::unique_ptr<ops::matrix> attention_output;
  std::unique_ptr<ops::gain> feed_forward_norm;
  std::unique_ptr<ops::matrix> feed_forward_input; ///< gate, up
  std::unique_ptr<ops::matrix> feed_forward_output;
};

struct llama_weights {
  std::unique_ptr<ops::matrix> embedding;
  std::vector<llama_layer> layers;
  std::unique_ptr<ops::gain> output_norm;
  std::unique_ptr<ops::matrix> output; ///< none if it is the embedding
};

/// Loads tensors one after the other and remembers the first failure.
class llama_loader {
 public:
  llama_loader(const gguf::file& file, ops::op_set& ops) : file_{file}, tensors_{file}, ops_{ops} {}

  result<llama_weights> load(const llama_numbers& n) {
    const std::uint64_t e = n.embedding;
    const std::uint64_t f = n.feed_forward;
    const std::uint64_t q = std::uint64_t{n.heads} * n.head_dim;
    const std::uint64_t kv = std::uint64_t{n.kv_heads} * n.head_dim;
    llama_weights made;
    made.embedding = matrix({{"token_embd.weight", e, n.vocabulary}});
    for (std::uint32_t i = 0; i < n.layers && !failure_; ++i) {
      const std::string name = "blk." + std::to_string(i) + '.';
      llama_layer layer;
      layer.attention_norm = gain(name + "attn_norm.weight", e);
      layer.attention_input = matrix(
        {{name + "attn_q.weight", e, q}, {name + "attn_k.weight", e, kv}, {name + "attn_v.weight", e, kv}});
      layer.attention_output = matrix({{name + "attn_output.weight", q, e}});
      layer.feed_forward_norm = gain(name + "ffn_norm.weight", e);
      layer.feed_forward_input = matrix({{name + "ffn_gate.weight", e, f}, {name + "ffn_up.weight", e, f}});
      layer.feed_forward_output = matrix({{name + "ffn_down.weight", f, e}});
      made.layers.push_back(std::move(layer));
    }
    made.output_norm = gain("output_norm.weight", e);
    if (tensors_.has("output.weight")) {
      made.output = matrix({{"output.weight", e, n.vocabulary}});
    }
    if (failure_) {
      return tl::unexpected<error>(*failure_);
    }
    if (const auto rest = tensors_.nothing_left(); !rest) {
      return fail(rest);
    }
    return made;
  }

 private:
  struct wanted {
    std::string name;
    std::uint64_t columns;
    std::uint64_t rows;
  };

  template <class T>
  std::unique_ptr<T> keep(result<std::unique_ptr<T>> made) {
    if (!made) {
      failure_ = made.error();
      return nullptr;
    }
    return std::move(*made);
  }

  std::unique_ptr<ops::matrix> matrix(const std::vector<wanted>& parts) {
    std::vector<const gguf::tensor*> found;
    for (const auto& part : parts) {
      if (failure_) {
        return nullptr;
      }
      const auto tensor = tensors_.take(part.name, {part.columns, part.rows});
      if (!tensor) {
        failure_ = tensor.error();
        return nullptr;
      }
      found.push_back(*tensor);
    }
    return failure_ ? nullptr : keep(ops_.load_matrix(file_, found));
  }

  std::unique_ptr<ops::gain> gain(const std::string& name, std::uint64_t width) {
    if (failure_) {
      return nullptr;
    }
    const auto tensor = tensors_.take(name, {width});
    if (!tensor) {
      failure_ = tensor.error();
      return nullptr;
    }
    return keep(ops_.load_gain(file_, **tensor));
  }

  const gguf::file& file_;
  tensor_set tensors_;
  ops::op_set& ops_;
  std::optional<error> failure_;
};

class llama final : public model {
 public:
  llama(std::shared_ptr<const gguf::file> file, const llama_numbers& numbers, std::string fingerprint,
    std::unique_ptr<team> threads, std::unique_ptr<ops::op_set> ops, llama_weights weights,
    std::uint32_t max_rows)
    : file_{std::move(file)}, numbers_{numbers}, fingerprint_{std::move(fingerprint)},
      threads_{std::move(threads)}, ops_{std::move(ops)}, weights_{std::move(weights)}, max_rows_{max_rows} {
    shape_ = {.architecture = "llama",
      .context = numbers.context,
      .vocabulary = numbers.vocabulary,
      .embedding = numbers.embedding,
      .heads = numbers.heads,
      .kv = {.layers = numbers.layers,
        .kv_heads = numbers.kv_heads,
        .head_dim = numbers.head_dim,
        .type = ops_->kv_elements()},
      .ops = std::string{ops_->name()}};
    tokens_.reserve(max_rows);
    positions_.reserve(max_rows);
    sequences_.reserve(max_rows);
    wanted_.reserve(max_rows);
  }

  const model_shape& shape() const override { return shape_; }
  const std::string& fingerprint() const override { return fingerprint_; }
  std::uint32_t max_rows() const override { return max_rows_; }

  void forward(std::span<const chunk> chunks, std::span<float> logits) override {
    plan(chunks);
    GODWIT_CHECK(logits.size() == wanted_.size() * shape_.vocabulary);
    if (tokens_.empty()) {
      return;
    }
    ops_->begin({tokens_, positions_, sequences_, wanted_});
    threads_->run([&](worker& self) { compute(self, logits); });
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
        if (part.logits == logits_wanted::all || (part.logits == logits_wanted::last && i + 1 == count)) {
          wanted_.push_back(first + i);
        }
      }
    }
  }

  /// One thread's part of a step.
  void compute(worker& self, std::span<float> logits) {
    auto& ops = *ops_;
    ops.embed(self, *weights_.embedding);
    for (std::uint32_t i = 0; i < numbers_.layers; ++i) {
      const auto& layer = weights_.layers[i];
      ops.norm(self, *layer.attention_norm);
      ops.product(self, *layer.attention_input);
      ops.rotate_and_store(self, i);
      ops.attend(self, i);
      ops.add_product(self, *layer.attention_output);
      ops.norm(self, *layer.feed_forward_norm);
      ops.product(self, *layer.feed_forward_input);
      ops.gate(self, numbers_.feed_forward);
      ops.add_product(self, *layer.feed_forward_output);
    }
    if (!wanted_.empty()) {
      ops.finish(
        self, *weights_.output_norm, weights_.output ? *weights_.output : *weights_.embedding, logits);
    }
  }

  std::shared_ptr<const gguf::file> file_; ///< some ops read weights in place
  llama_numbers numbers_;
  std::string fingerprint_;
  model_shape shape_;
  std::unique_ptr<team> threads_;
  std::unique_ptr<ops::op_set> ops_;
  llama_weights weights_;
  std::uint32_t max_rows_;

  // The current step.
  std::vector<token_id> tokens_;
  std::vector<position_t> positions_;
  std::vector<ops::step_sequence> sequences_;
  std::vector<std::uint32_t> wanted_;
};

/// The widths of the graph.
result<ops::op_shape> shape_for(const llama_numbers& n, std::uint32_t max_rows) {
  const ops::op_shape shape{.max_rows = max_rows,
    .embedding = n.embedding,
    .input = std::max({n.embedding, n.heads * n.head_dim, n.feed_forward}),
    .output = std::max((n.heads + 2 * n.kv_heads) * n.head_dim, 2 * n.feed_forward),
    .heads = n.heads,
    .context = n.context,
    .rotary = n.rotary,
    .norm_epsilon = static_cast<float>(n.norm_epsilon),
    .rope_base = n.rope_base,
    .kv = {.layers = n.layers, .kv_heads = n.kv_heads, .head_dim = n.head_dim}};
  // A file's numbers decide what is allocated, so they get a limit of their own.
  constexpr std::uint64_t most_elements = std::uint64_t{1} << 29;
  const std::uint64_t widths = std::uint64_t{shape.embedding} + shape.input + shape.output;
  if (std::uint64_t{max_rows} * widths > most_elements
      || std::uint64_t{n.context} * n.rotary > most_elements / 8) {
    return fail(errc::unsupported, "a model this wide or with a context this long");
  }
  return shape;
}

result<std::unique_ptr<model>> load(std::shared_ptr<const gguf::file> file, const std::string& implementation,
  std::uint32_t threads, std::uint32_t max_rows) {
  const auto numbers = read_numbers(*file);
  if (!numbers) {
    return fail(numbers);
  }
  const auto shape = shape_for(*numbers, max_rows);
  if (!shape) {
    return fail(shape);
  }
  auto workers = std::make_unique<team>(threads);
  auto made = ops::make_op_set(implementation, *shape, *workers);
  if (!made) {
    return fail(made);
  }
  auto& op_set = *made;
  // Before the weights are packed and the file's pages forgotten.
  auto fingerprint = fingerprint_of(*file, ops::contract_of(op_set->name()), numbers->to_string(), *workers);
  auto weights = llama_loader{*file, *op_set}.load(*numbers);
  if (!weights) {
    return fail(weights);
  }
  return std::make_unique<llama>(std::move(file), *numbers, std::move(fingerprint), std::move(workers),
    std::move(op_set), std::move(*weights), max_rows);
}

} // namespace

result<std::unique_ptr<model>> load_llama(std::shared_ptr<const gguf::file> file,
  const std::string& implementation, std::uint32_t threads, std::uint32_t max_rows) {
  try {
    return load(std::move(file), implementation, threads, max_rows);
  } catch (const std::bad_alloc&) {
    return fail(errc::resource_exhausted, "no memory for the model's weights");
  } catch (const std::system_error&) {
    return fail(errc::resource_exhausted, "the system gives no more threads");
  }
}

} // namespace godwit
