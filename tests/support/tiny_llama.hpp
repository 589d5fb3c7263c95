#pragma once

// A small random model of the architecture "llama", as a file in memory.

#include "kernels/gguf/file.hpp"
#include "kernels/gguf/writer.hpp"
#include "tests/support/quantize.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace godwit {

struct tiny_llama {
  std::uint32_t layers = 2;
  std::uint32_t context = 512;
  std::uint32_t vocabulary = 99;
  std::uint32_t embedding = 64;
  std::uint32_t feed_forward = 96;
  std::uint32_t heads = 4;
  std::uint32_t kv_heads = 2;
  gguf::tensor_type type = gguf::tensor_type::q4_1;       ///< of the blocks' matrices
  gguf::tensor_type value_type = gguf::tensor_type::q8_0; ///< of attn_v, so that joined matrices differ
  gguf::tensor_type table_type = gguf::tensor_type::q8_0; ///< of the embedding
  bool tied = true;
  bool mute = false; ///< a last norm of zeros, so that all logits are zero
  std::uint32_t seed = 1;

  /// Metadata and tensors; a test may add to it before it is finished.
  gguf::writer write() const {
    gguf::writer made;
    made.add("general.architecture", "llama")
      .add("llama.block_count", layers)
      .add("llama.context_length", context)
      .add("llama.embedding_length", embedding)
      .add("llama.feed_forward_length", feed_forward)
      .add("llama.attention.head_count", heads)
      .add("llama.attention.head_count_kv", kv_heads)
      .add("llama.attention.layer_norm_rms_epsilon", 1e-5F)
      .add("llama.rope.freq_base", 10000.0F);
    std::uint32_t next = seed * 1000;
    const auto matrix = [&](const std::string& name, gguf::tensor_type kind, std::uint64_t columns,
                          std::uint64_t rows) {
      made.add_tensor(name, kind, {columns, rows}, random_blocks(kind, columns * rows, ++next, 0.3F));
    };
    const auto gain = [&](const std::string& name, float size = 2) {
      made.add_tensor(name, gguf::tensor_type::f32, {embedding},
        random_blocks(gguf::tensor_type::f32, embedding, ++next, size));
    };
    const std::uint64_t kv = embedding / heads * kv_heads;
    matrix("token_embd.weight", table_type, embedding, vocabulary);
    for (std::uint32_t i = 0; i < layers; ++i) {
      const std::string name = "blk." + std::to_string(i) + '.';
      gain(name + "attn_norm.weight");
      matrix(name + "attn_q.weight", type, embedding, embedding);
      matrix(name + "attn_k.weight", type, embedding, kv);
      matrix(name + "attn_v.weight", value_type, embedding, kv);
      matrix(name + "attn_output.weight", type, embedding, embedding);
      gain(name + "ffn_norm.weight");
      matrix(name + "ffn_gate.weight", type, embedding, feed_forward);
      matrix(name + "ffn_up.weight", type, embedding, feed_forward);
      matrix(name + "ffn_down.weight", type, feed_forward, embedding);
    }
    gain("output_norm.weight", mute ? 0.0F : 2.0F);
    if (!tied) {
      matrix("output.weight", table_type, embedding, vocabulary);
    }
    return made;
  }
};

/// A file and the bytes it reads.
class memory_model {
 public:
  explicit memory_model(const gguf::writer& from) : bytes_{from.finish()} {
    file_ = gguf::file::parse(bytes_).value();
  }
  explicit memory_model(const tiny_llama& from) : memory_model{from.write()} {}

  const std::shared_ptr<const gguf::file>& file() const { return file_; }

 private:
  std::vector<std::byte> bytes_;
  std::shared_ptr<const gguf::file> file_;
};

} // namespace godwit
