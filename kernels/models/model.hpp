#pragma once

#include "kernels/gguf/file.hpp"
#include "kernels/memory/kv_layout.hpp"
#include "kernels/memory/sequence.hpp"
#include "messages/ids.hpp"
#include "messages/result.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace godwit {

/// The numbers of a model that its users need.
struct model_shape {
  std::string architecture; ///< as in the file: "llama"
  std::uint32_t context = 0;
  std::uint32_t vocabulary = 0;
  std::uint32_t embedding = 0;
  std::uint32_t heads = 0;
  kv_shape kv;
  std::string ops; ///< what computes, by its name in the dispatch table: "cpu:avx2"
};

/// Which positions of a chunk get logits, or are read by taps.
enum class logits_wanted : std::uint8_t { none, last, all };

/// Consecutive new tokens of one sequence: a prompt chunk, a block to verify, or one decoded token.
struct chunk {
  sequence* target =
    nullptr; ///< the tokens stand at target->length() and after; reserve() was called for them
  std::span<const token_id> tokens;
  logits_wanted logits = logits_wanted::none;
  logits_wanted tapped = logits_wanted::none;
};

/// Reads the residual stream of tapped rows behind chosen layers; what a drafter or a scorer builds on. Costs
/// nothing when no layer is chosen or no row is tapped.
struct hidden_taps {
  std::span<const std::uint32_t>
    layers;                ///< ascending, below shape().kv.layers; 0 is read behind the first layer
  std::span<float> values; ///< `[layers, tapped rows, embedding]`, rows in the order of the chunks
};

/// What computes the ops.
enum class ops_choice : std::uint8_t {
  automatic, ///< GODWIT_OPS if set, else cpu
  reference, ///< scalar, weights dequantised exactly, double accumulation: the definition
  cpu,       ///< Highway, repacked weights, activations quantised to 8 bits
};

struct model_options {
  ops_choice ops = ops_choice::automatic;
  std::string implementation = {}; ///< a name of the dispatch table, such as "cpu:avx2"; beats `ops`
  std::uint32_t threads = 0;       ///< 0: one for each core
  bool adapts_threads = false;     ///< use fewer while the machine is too busy for all (team_size)
  std::uint32_t max_rows = 512;
  /// What keys and values are kept in; nothing: what the implementation takes by itself, fp16 or, for the
  /// reference, fp32.
  std::optional<kv_type> kv = std::nullopt;
  /// A file in which packed weights are kept, to be mapped by later loads of the same model: made if it is
  /// not there, made anew if it cannot be used. Empty: none.
  std::filesystem::path packed = {};
  /// Told in one sentence when the file of packed weights could not be used or written.
  std::function<void(const std::string&)> notice = {};
};

/// A transformer with its weights. One thread calls it at a time; it has its own team of threads.
class model {
 public:
  /// Loads the architecture that the file names. Checks every tensor's presence, shape and type.
  /// @returns `unsupported` naming the architecture, type or feature, or the implementations to choose from;
  /// `corrupt` naming the tensor or key; `invalid_argument` for options out of range
  static result<std::unique_ptr<model>> load(
    std::shared_ptr<const gguf::file> file, const model_options& options);

  virtual ~model() = default;

  virtual const model_shape& shape() const = 0;

  /// 128 bits over weights, quantisation, kernel contract version and KV layout, as 32 hexadecimal digits.
  virtual const std::string& fingerprint() const = 0;

  /// Runs one step over chunks of distinct sequences. The result for a chunk does not depend, bit for bit, on
  /// the other chunks, on how its sequence was cut into chunks before, or on the number of threads. Advances
  /// every target.
  /// @param chunks    at most max_rows() tokens in all; no two of the same sequence
  /// @param logits    `[rows, vocabulary]`, rows in the order of the chunks and of the tokens that want
  /// logits
  /// @param taps      what else is to be read; changes no bit of the logits
  /// @pre positions below shape().context, tokens below shape().vocabulary, reserve() called
  virtual void forward(
    std::span<const chunk> chunks, std::span<float> logits, const hidden_taps& taps = {}) = 0;

  virtual std::uint32_t max_rows() const = 0;

  /// Work on the logits of a step, on the threads that computed it: calls `job(item, thread)` once for each
  /// item below `items`; who is free takes the next one. Not during `forward`, and a job must not throw. A
  /// model without a team of its own works on the calling thread.
  virtual void share_out(
    std::size_t items, const std::function<void(std::size_t item, std::uint32_t thread)>& job) {
    for (std::size_t item = 0; item < items; ++item)
      job(item, 0);
  }
  /// Threads of `share_out` at most; each has a number below.
  virtual std::uint32_t threads() const { return 1; }
};

} // namespace godwit
