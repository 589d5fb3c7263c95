// Attention of whole op sets over sequences whose heads keep positions of their own, against attention in
// double over everything with a mask. Queries, keys and values are known in closed form: inputs are +1 and
// -1, so that their norm is 1, and each output of the product is one input times one weight.
#include "kernels/gguf/file.hpp"
#include "kernels/gguf/writer.hpp"
#include "kernels/memory/sequence.hpp"
#include "kernels/ops/dispatch.hpp"
#include "kernels/quant/half.hpp"
#include "tests/unit/kernels/ops/targets.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <vector>

using namespace godwit;

namespace {

constexpr std::uint32_t layers = 2;
constexpr std::uint32_t kv_heads = 2;
constexpr std::uint32_t lists = layers * kv_heads;
constexpr std::uint32_t vocabulary = 40;
constexpr std::uint32_t window = 37; // of the second layer
constexpr double scale = 0.5;
constexpr double cap = 30;

/// The widths of a test.
struct widths {
  std::uint32_t group;
  std::uint32_t dim;
  std::uint32_t heads() const { return group * kv_heads; }
  std::uint32_t embedding() const { return heads() * dim; }
  std::uint32_t outputs() const { return (heads() + 2 * kv_heads) * dim; }
};

/// Weights as a file: signs, gains, one weight for each output, and the identity.
class weights {
 public:
  explicit weights(widths size) : size_(size) {
    const auto e = size.embedding();
    std::mt19937 dice(1);
    signs.resize(std::size_t{vocabulary} * e);
    std::ranges::generate(signs, [&] { return dice() % 2 == 0 ? 1.0F : -1.0F; });
    gains = random_floats(e, 2, 1.5F);
    factors = random_floats(size.outputs(), 3, 1.5F);
    std::vector<float> product(std::size_t{size.outputs()} * e);
    for (std::uint32_t j = 0; j < size.outputs(); ++j)
      product[std::size_t{j} * e + input_of(j)] = factors[j];
    std::vector<float> identity(std::size_t{e} * e);
    for (std::size_t i = 0; i < e; ++i)
      identity[i * e + i] = 1;
    gguf::writer made;
    const auto add = [&](const char* name, std::vector<std::uint64_t> shape, const std::vector<float>& from) {
      made.add_tensor(name, gguf::tensor_type::f32, std::move(shape), std::as_bytes(std::span(from)));
    };
    add("table", {e, vocabulary}, signs);
    add("gain", {e}, gains);
    add("product", {e, size.outputs()}, product);
    add("identity", {e, e}, identity);
    bytes_ = made.finish();
    file = gguf::file::parse(bytes_).value();
  }

  std::uint32_t input_of(std::uint32_t output) const { return (output * 7 + 3) % size_.embedding(); }
  /// An output before positions turn it.
  double output(token_id token, std::uint32_t j) const {
    const auto i = input_of(j);
    return double{signs[std::size_t{token} * size_.embedding() + i]} * double{gains[i]} * double{factors[j]};
  }

  std::shared_ptr<const gguf::file> file;
  std::vector<float> signs;
  std::vector<float> gains;
  std::vector<float> factors;

 private:
  widths size_;
  std::vector<std::byte> bytes_;
};

/// Runs attention alone, layer by layer.
class rig {
 public:
  rig(const std::string& name, widths size, const weights& from, std::uint32_t threads,
    std::optional<kv_type> type = std::nullopt)
    : size_(size), from_(from), threads_(threads) {
    ops::op_shape shape;
    shape.max_rows = 200;
    shape.embedding = shape.input = size.embedding();
    shape.output = size.outputs();
    shape.heads = size.heads();
    shape.context = 512;
    shape.rotary = size.dim;
    for (const double base : {100.0, 10.0})
      shape.ropes.push_back({ops::rope_frequencies(size.dim, base)});
    ropes = shape.ropes;
    shape.layers = {{0, 0}, {1, window}};
    shape.attention_scale = scale;
    shape.score_cap = cap;
    shape.kv = {.layers = layers, .kv_heads = kv_heads, .head_dim = size.dim};
    shape.wanted_kv = type;
    ops_ = ops::make_op_set(name, shape, threads_).value();
    kv = shape.kv;
    kv.type = ops_->kv_elements();
    const auto matrix = [&](std::string_view tensor) {
      const auto* part = from.file->find_tensor(tensor);
      return ops_->load_matrix(*from.file, {&part, 1}).value();
    };
    table_ = matrix("table");
    product_ = matrix("product");
    identity_ = matrix("identity");
    gain_ = ops_->load_gain(*from.file, *from.file->find_tensor("gain")).value();
  }

  /// Appends rows. @returns what attention gave, [layers][rows, heads * dim]
  std::array<std::vector<float>, layers> run(sequence& target, std::span<const token_id> tokens) {
    const auto count = static_cast<std::uint32_t>(tokens.size());
    REQUIRE(target.reserve(count));
    std::vector<position_t> positions(count);
    std::iota(positions.begin(), positions.end(), target.length());
    std::vector<std::uint32_t> rows(count);
    std::iota(rows.begin(), rows.end(), 0U);
    const ops::step_sequence part{&target, 0, count};
    std::array<std::vector<float>, layers> out;
    out.fill(std::vector<float>(std::size_t{count} * size_.embedding()));
    ops_->begin({tokens, positions, {&part, 1}, {}});
    threads_.run([&](worker& self) {
      for (std::uint32_t layer = 0; layer < layers; ++layer) {
        ops_->embed(self, *table_, 1);
        ops_->norm(self, *gain_);
        ops_->product(self, *product_);
        ops_->rotate_and_store(self, layer, {});
        ops_->attend(self, layer);
        ops_->add_product(self, *identity_);
        ops_->tap(self, rows, out[layer]);
      }
    });
    target.advance(count);
    for (auto& values : out)
      for (std::size_t i = 0; i < values.size(); ++i)
        values[i] -=
          from_.signs[tokens[i / size_.embedding()] * std::size_t{size_.embedding()} + i % size_.embedding()];
    return out;
  }

  kv_shape kv;
  std::vector<ops::rope> ropes;

 private:
  widths size_;
  const weights& from_;
  team threads_;
  std::unique_ptr<ops::op_set> ops_;
  std::unique_ptr<ops::matrix> table_;
  std::unique_ptr<ops::matrix> product_;
  std::unique_ptr<ops::matrix> identity_;
  std::unique_ptr<ops::gain> gain_;
};

/// Keys and values of a sequence that keeps everything, as they were stored.
struct dense_pages {
  explicit dense_pages(const sequence& from) : dim(from.pool().shape().head_dim) {
    for (std::uint32_t list = 0; list < lists; ++list)
      for (position_t p = 0; p < from.length(); ++p) {
        const auto page = from.pages(list / kv_heads, list % kv_heads)[p / page_tokens];
        const auto* start = from.pool().data(page);
        const auto slot = p % page_tokens;
        // Behind the elements of a page of bytes: the scales of keys, then those of values.
        const auto* const scales = start + page_tokens * dim + slot;
        const auto at = [&](std::size_t i, kv_scale step) {
          switch (from.pool().shape().type) {
          case kv_type::f32:
            return double{reinterpret_cast<const float*>(start)[i]};
          case kv_type::bf16:
            return double{bf16_to_float(start[i])};
          case kv_type::int8:
            return reinterpret_cast<const std::int8_t*>(start)[i] * double{half_to_float(step)};
          case kv_type::f16:
            break;
          }
          return double{half_to_float(start[i])};
        };
        for (std::size_t d = 0; d < dim; ++d)
          keys[list].push_back(at(d * page_tokens + slot, scales[0]));
        for (std::size_t d = 0; d < dim; ++d)
          values[list].push_back(at((page_tokens + slot) * dim + d, scales[page_tokens]));
      }
  }
  std::size_t dim;
  std::array<std::vector<double>, lists> keys; ///< [lists][positions, dim]
  std::array<std::vector<double>, lists> values;
};

/// Which positions each list keeps.
using kept_lists = std::array<std::vector<position_t>, lists>;

/// The output of one query head at a position, over all positions but those that a mask hides.
std::vector<double> masked(const dense_pages& all, const std::vector<ops::rope>& ropes, widths size,
  const weights& from, token_id token, position_t position, std::uint32_t layer, std::uint32_t head,
  const std::vector<position_t>& kept) {
  const auto list = layer * kv_heads + head / size.group;
  std::vector<double> q(size.dim);
  for (std::uint32_t d = 0; d < size.dim; d += 2) {
    const double angle = position * ropes[layer].frequencies[d / 2];
    const double x = from.output(token, head * size.dim + d);
    const double y = from.output(token, head * size.dim + d + 1);
    q[d] = x * std::cos(angle) - y * std::sin(angle);
    q[d + 1] = x * std::sin(angle) + y * std::cos(angle);
  }
  std::vector<bool> seen(position + 1);
  for (const auto p : kept)
    if (p <= position && (layer == 0 || p + window > position))
      seen[p] = true;
  REQUIRE(bool{seen[position]});
  double total = 0;
  std::vector<double> sum(size.dim);
  for (position_t p = 0; p <= position; ++p) {
    if (!seen[p])
      continue;
    const double* k = all.keys[list].data() + p * all.dim;
    const double score = std::inner_product(q.begin(), q.end(), k, 0.0) * scale;
    // Scores stay below the cap, so that no maximum has to be taken out.
    const double weight = std::exp(cap * std::tanh(score / cap));
    total += weight;
    for (std::size_t d = 0; d < size.dim; ++d)
      sum[d] += weight * all.values[list][p * all.dim + d];
  }
  for (auto& value : sum)
    value /= total;
  return sum;
}

std::vector<position_t> some(std::span<const position_t> from, auto&& wanted) {
  std::vector<position_t> out;
  std::ranges::copy_if(from, std::back_inserter(out), wanted);
  return out;
}

/// What the lists shall keep, round by round, of what is left and of what came since: page edges, an empty
/// middle, one position, none, a random half.
kept_lists cut(const kept_lists& kept, int round) {
  const auto edges = [](position_t p) { return p % page_tokens == 0 || p % page_tokens == 15 || p == 1; };
  const auto last = kept[0].back();
  const auto none = [](position_t) { return false; };
  const auto only_last = [&](position_t p) { return p == last; };
  const auto no_middle = [&](position_t p) { return p < page_tokens + 3 || p + 20 > last; };
  std::mt19937 dice(static_cast<std::uint32_t>(round));
  const auto half = [&](position_t) { return dice() % 2 == 0; };
  switch (round) {
  case 0:
    return {some(kept[0], edges), some(kept[1], none), some(kept[2], half), some(kept[3], no_middle)};
  case 1:
    return {some(kept[0], no_middle), some(kept[1], only_last), some(kept[2], edges), some(kept[3], none)};
  default:
    return {some(kept[0], only_last), some(kept[1], half), some(kept[2], half), kept[3]};
  }
}

/// Rows of all chunks, with keeps between them.
struct history {
  std::vector<float> outputs; ///< of all rows behind the first cut, [rows][layers][heads * dim]
  double worst = 0;           ///< difference from masked attention
};

/// @param dense nullptr: no comparison with the definition
/// @param whole rows of a round at once, or in chunks of 7
history play(rig& runs, widths size, const weights& from, std::span<const token_id> tokens,
  const dense_pages* dense, bool whole) {
  const auto pool = page_pool::create(runs.kv, 32).value();
  sequence target(*pool);
  kept_lists kept;
  history out;
  const auto feed = [&](std::size_t count) {
    const auto start = target.length();
    const auto values = runs.run(target, tokens.subspan(start, count));
    for (auto& list : kept)
      for (position_t p = start; p < target.length(); ++p)
        list.push_back(p);
    for (position_t p = start; p < target.length() && target.ragged(); ++p)
      for (std::uint32_t layer = 0; layer < layers; ++layer) {
        const auto row = std::span(values[layer]).subspan((p - start) * size.embedding(), size.embedding());
        out.outputs.insert(out.outputs.end(), row.begin(), row.end());
        for (std::uint32_t head = 0; head < size.heads() && dense != nullptr; ++head) {
          const auto exact = masked(*dense, runs.ropes, size, from, tokens[p], p, layer, head,
            kept[layer * kv_heads + head / size.group]);
          for (std::size_t d = 0; d < size.dim; ++d)
            out.worst = std::max(out.worst, std::abs(double{row[head * size.dim + d]} - exact[d]));
        }
      }
  };
  feed(150);
  const std::size_t rounds[] = {1, 17, 140};
  for (int round = 0; round < 3; ++round) {
    const auto wanted = cut(kept, round);
    for (std::uint32_t list = 0; list < lists; ++list)
      REQUIRE(target.keep(list / kv_heads, list % kv_heads, wanted[list]));
    kept = wanted;
    for (std::size_t left = rounds[round]; left > 0;) {
      const auto count = whole ? left : std::min<std::size_t>(left, 7);
      feed(count);
      left -= count;
    }
    std::size_t pages = 0;
    for (const auto& list : kept)
      pages += (list.size() + page_tokens - 1) / page_tokens;
    CHECK(pool->used_pages() == pages);
  }
  return out;
}

std::vector<token_id> any_tokens(std::size_t count) {
  std::mt19937 dice(9);
  std::vector<token_id> tokens(count);
  std::ranges::generate(tokens, [&] { return static_cast<token_id>(dice() % vocabulary); });
  return tokens;
}

} // namespace

TEST_CASE("attention over what heads keep is masked attention over everything, for every group and target") {
  const auto tokens = any_tokens(308);
  for (const auto size : {widths{1, 16}, widths{2, 48}, widths{3, 64}, widths{4, 16}, widths{5, 16},
         widths{6, 16}, widths{7, 16}, widths{8, 16}}) {
    const weights from(size);
    std::vector<float> first;
    for (const auto& line : ops::implementations("cpu")) {
      if (!line.available)
        continue;
      INFO(line.name << ", " << size.group << " queries a head of " << size.dim);
      rig runs(line.name, size, from, 1);
      const bool reference = line.name == "reference";
      if (!reference && !first.empty()) {
        // All targets of the cpu ops give the bits that were compared with the definition.
        CHECK(play(runs, size, from, tokens, nullptr, true).outputs == first);
        continue;
      }
      const auto pool = page_pool::create(runs.kv, 32).value();
      sequence everything(*pool);
      runs.run(everything, std::span(tokens).first(160));
      runs.run(everything, std::span(tokens).subspan(160));
      const dense_pages dense(everything);
      const auto made = play(runs, size, from, tokens, &dense, true);
      CHECK(made.worst < 1e-5);
      if (!reference)
        first = made.outputs;
      // In other chunks, and on threads that split long lists: the same bits.
      CHECK(play(runs, size, from, tokens, nullptr, false).outputs == made.outputs);
      // Threads wait for each other at every op: on a busy machine that takes long.
      if (size.group == 3) {
        rig threaded(line.name, size, from, 3);
        CHECK(play(threaded, size, from, tokens, nullptr, true).outputs == made.outputs);
      }
    }
  }
}

TEST_CASE("the same holds for pages of every type, and fewer bits move an answer a little") {
  const auto tokens = any_tokens(308);
  const auto size = GENERATE(widths{3, 64}, widths{7, 16});
  const weights from(size);
  const auto dense_outputs = [&](const std::string& name, kv_type type) {
    rig runs(name, size, from, 1, type);
    const auto pool = page_pool::create(runs.kv, 32).value();
    sequence everything(*pool);
    auto outputs = runs.run(everything, std::span(tokens).first(160));
    return std::pair(std::move(outputs), dense_pages(everything));
  };
  const auto halves = dense_outputs("cpu:scalar", kv_type::f16).first;
  for (const auto type : {kv_type::bf16, kv_type::int8}) {
    std::vector<float> first;
    for (const auto& line : ops::implementations("cpu")) {
      if (!line.available)
        continue;
      INFO(line.name << ", " << to_string(type) << ", " << size.group << " queries a head of " << size.dim);
      rig runs(line.name, size, from, 1, type);
      CHECK(runs.kv.type == type);
      const bool reference = line.name == "reference";
      if (!reference && !first.empty()) {
        CHECK(play(runs, size, from, tokens, nullptr, true).outputs == first);
        continue;
      }
      const auto pool = page_pool::create(runs.kv, 32).value();
      sequence everything(*pool);
      const auto outputs = runs.run(everything, std::span(tokens).first(160));
      runs.run(everything, std::span(tokens).subspan(160));
      const dense_pages dense(everything);
      const auto made = play(runs, size, from, tokens, &dense, true);
      CHECK(made.worst < 1e-5);
      CHECK(play(runs, size, from, tokens, nullptr, false).outputs == made.outputs);
      if (reference)
        continue;
      first = made.outputs;
      rig threaded(line.name, size, from, 3, type);
      CHECK(play(threaded, size, from, tokens, nullptr, true).outputs == made.outputs);
      // Values are below 3.4 in magnitude, queries and keys too: a step of either type is 1/127 of the
      // greatest, or 1/128 of the number, half of which is lost at most; a score of dim products moves the
      // weights too.
      double worst = 0;
      for (std::uint32_t layer = 0; layer < layers; ++layer)
        for (std::size_t i = 0; i < outputs[layer].size(); ++i)
          worst = std::max<double>(worst, std::abs(outputs[layer][i] - halves[layer][i]));
      CHECK(worst > 1e-4);
      CHECK(worst < 0.15);
    }
  }
}

TEST_CASE("the cpu ops keep no pages of singles, and say so") {
  team threads(1);
  ops::op_shape shape;
  shape.kv = {.layers = 1, .kv_heads = 1, .head_dim = 16};
  shape.wanted_kv = kv_type::f32;
  const auto refused = ops::make_op_set(ops::choose("cpu").value(), shape, threads);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == errc::unsupported);
  CHECK(refused.error().message.find("int8") != std::string::npos);
}

TEST_CASE("a mask that hides one position too many or too few is seen by the comparison above") {
  const widths size{2, 16};
  const weights from(size);
  const auto tokens = any_tokens(200);
  rig runs("reference", size, from, 1);
  const auto pool = page_pool::create(runs.kv, 32).value();
  sequence everything(*pool);
  const auto values = runs.run(everything, tokens);
  const dense_pages dense(everything);
  std::vector<position_t> kept(200);
  std::iota(kept.begin(), kept.end(), 0U);
  const auto off = [&](const std::vector<position_t>& list) {
    const auto exact = masked(dense, runs.ropes, size, from, tokens[199], 199, 0, 1, list);
    double worst = 0;
    for (std::size_t d = 0; d < size.dim; ++d)
      worst = std::max(worst, std::abs(double{values[0][199 * size.embedding() + size.dim + d]} - exact[d]));
    return worst;
  };
  CHECK(off(kept) < 1e-6);
  kept.erase(kept.begin() + 100);
  CHECK(off(kept) > 1e-4);
}
