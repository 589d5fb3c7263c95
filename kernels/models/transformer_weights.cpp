#include "kernels/models/transformer_weights.hpp"

#include "kernels/models/tensors.hpp"

#include <optional>
#include <string>

namespace godwit {

namespace {

struct wanted {
  std::string name;
  std::uint64_t columns;
  std::uint64_t rows;
};

/// Loads tensors one after the other and remembers the first failure.
class loader {
 public:
  loader(const gguf::file& file, ops::op_set& ops) : file_{file}, tensors_{file}, ops_{ops} {}

  std::unique_ptr<ops::matrix> matrix(const std::vector<wanted>& parts) {
    std::vector<const gguf::tensor*> found;
    for (const auto& part : parts) {
      found.push_back(take(part.name, {part.columns, part.rows}));
    }
    return failure_ ? nullptr : keep(ops_.load_matrix(file_, found));
  }

  std::unique_ptr<ops::gain> gain(const std::string& name, std::uint64_t width) {
    const auto* found = take(name, {width});
    return failure_ ? nullptr : keep(ops_.load_gain(file_, *found));
  }
  std::unique_ptr<ops::gain> gain_if(bool has, const std::string& name, std::uint64_t width) {
    return has ? gain(name, width) : nullptr;
  }

  /// Takes a tensor that was read elsewhere.
  void skip(const std::string& name, std::uint64_t width) { take(name, {width}); }

  bool has(std::string_view name) const { return tensors_.has(name); }

  result<void> check() const {
    return failure_ ? result<void>{tl::unexpected<error>(*failure_)} : tensors_.nothing_left();
  }

 private:
  const gguf::tensor* take(const std::string& name, const std::vector<std::uint64_t>& shape) {
    if (failure_) {
      return nullptr;
    }
    const auto tensor = tensors_.take(name, shape);
    if (!tensor) {
      failure_ = tensor.error();
      return nullptr;
    }
    return *tensor;
  }

  template <class T>
  std::unique_ptr<T> keep(result<std::unique_ptr<T>> made) {
    if (!made) {
      failure_ = made.error();
      return nullptr;
    }
    return std::move(*made);
  }

  const gguf::file& file_;
  tensor_set tensors_;
  ops::op_set& ops_;
  std::optional<error> failure_;
};

block_weights load_block(loader& from, const transformer_form& form, const std::string& name) {
  const std::uint64_t e = form.embedding;
  const std::uint64_t f = form.feed_forward;
  const std::uint64_t q = std::uint64_t{form.heads} * form.head_dim;
  const std::uint64_t kv = std::uint64_t{form.kv_heads} * form.head_dim;
  block_weights made;
  made.attention_norm = from.gain(name + "attn_norm.weight", e);
  made.attention_input = from.matrix(
    {{name + "attn_q.weight", e, q}, {name + "attn_k.weight", e, kv}, {name + "attn_v.weight", e, kv}});
  made.query_bias = from.gain_if(form.attention_biases, name + "attn_q.bias", q);
  made.key_bias = from.gain_if(form.attention_biases, name + "attn_k.bias", kv);
  made.value_bias = from.gain_if(form.attention_biases, name + "attn_v.bias", kv);
  made.query_norm = from.gain_if(form.head_norms, name + "attn_q_norm.weight", form.head_dim);
  made.key_norm = from.gain_if(form.head_norms, name + "attn_k_norm.weight", form.head_dim);
  made.attention_output = from.matrix({{name + "attn_output.weight", q, e}});
  made.attention_output_norm = from.gain_if(form.output_norms, name + "post_attention_norm.weight", e);
  made.feed_forward_norm = from.gain(name + "ffn_norm.weight", e);
  made.feed_forward_input = from.matrix({{name + "ffn_gate.weight", e, f}, {name + "ffn_up.weight", e, f}});
  made.feed_forward_output = from.matrix({{name + "ffn_down.weight", f, e}});
  made.feed_forward_output_norm = from.gain_if(form.output_norms, name + "post_ffw_norm.weight", e);
  return made;
}

} // namespace

result<transformer_weights> load_weights(
  const gguf::file& file, const transformer_form& form, ops::op_set& ops) {
  loader from{file, ops};
  transformer_weights made;
  made.embedding = from.matrix({{"token_embd.weight", form.embedding, form.vocabulary}});
  for (std::uint32_t i = 0; i < form.layers; ++i) {
    made.blocks.push_back(load_block(from, form, "blk." + std::to_string(i) + '.'));
  }
  made.output_norm = from.gain("output_norm.weight", form.embedding);
  if (from.has("output.weight")) {
    made.output = from.matrix({{"output.weight", form.embedding, form.vocabulary}});
  }
  if (form.rope_factors) {
    from.skip("rope_freqs.weight", form.rotary / 2);
  }
  if (const auto all = from.check(); !all) {
    return fail(all);
  }
  return made;
}

} // namespace godwit
