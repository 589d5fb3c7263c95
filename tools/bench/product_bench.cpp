#include "tools/bench/product_bench.hpp"

#include "kernels/gguf/file.hpp"
#include "kernels/ops/cpu/kernels.hpp"
#include "kernels/ops/cpu/packed.hpp"
#include "kernels/ops/cpu/weight_arena.hpp"
#include "kernels/ops/dispatch.hpp"
#include "kernels/threads/team.hpp"
#include "tools/bench/measuring.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>
#include <thread>

namespace godwit::bench {

namespace {

using namespace ops::cpu;

constexpr std::uint32_t most_rows = 4096;

/// The matrices that a step multiplies by, and their sizes.
struct packed_model {
  weight_arena arena;
  std::vector<packed_part> parts;
  std::size_t widest_input = 0;
  std::size_t widest_output = 0;
  double numbers = 0;
  double bytes = 0;

  void add(const gguf::tensor& tensor, team& threads) {
    auto& part =
      parts.emplace_back(packed_part::format_for(tensor.type), tensor.rows(), tensor.columns(), arena);
    threads.run([&](worker& self) {
      for (std::size_t tile = self.take(); tile < part.tiles(); tile = self.take()) {
        part.pack(tensor, tile);
      }
    });
    widest_input = std::max(widest_input, part.inputs());
    widest_output = std::max(widest_output, part.outputs());
    numbers += static_cast<double>(part.inputs()) * static_cast<double>(part.outputs());
    bytes += static_cast<double>(part.bytes().size());
  }
};

result<const kernel_table*> table_for(const std::string& implementation) {
  const auto chosen = ops::choose(implementation);
  if (!chosen) {
    return fail(chosen);
  }
  const auto tables = compiled_targets();
  const auto found = std::ranges::find_if(
    tables, [&](const kernel_table& table) { return *chosen == "cpu:" + std::string{table.name}; });
  if (found == tables.end()) {
    return fail(errc::unsupported, "the ops \"" + *chosen + "\" have no products of packed weights");
  }
  return &*found;
}

} // namespace

result<std::vector<product_rate>> products(
  const model_settings& settings, std::span<const std::uint32_t> rows) {
  for (const auto count : rows) {
    if (count == 0 || count > most_rows) {
      return fail(errc::invalid_argument, "rows are from 1 to " + std::to_string(most_rows), "rows");
    }
  }
  if (settings.rounds == 0) {
    return fail(errc::invalid_argument, "at least one round", "rounds");
  }
  const auto table = table_for(settings.implementation);
  if (!table) {
    return fail(table);
  }
  const auto file = gguf::file::open(settings.model);
  if (!file) {
    return fail(file);
  }
  team threads{settings.threads == 0 ? std::max(1U, std::thread::hardware_concurrency()) : settings.threads};
  packed_model model;
  const std::string head =
    (*file)->find_tensor("output.weight") == nullptr ? "token_embd.weight" : "output.weight";
  for (const auto& tensor : (*file)->tensors()) {
    if (tensor.shape.size() == 2 && tensor.name.starts_with("blk.")) {
      model.add(tensor, threads);
    }
  }
  if (const auto* tensor = (*file)->find_tensor(head)) {
    model.add(*tensor, threads);
  }

  const std::size_t most = rows.empty() ? 1 : *std::ranges::max_element(rows);
  const std::size_t stride = (model.widest_input + block_inputs - 1) / block_inputs * block_inputs;
  aligned_array<float> floats{most * stride};
  aligned_array<std::int8_t> quants{most * stride};
  aligned_array<block_info> blocks{most * stride / block_inputs};
  aligned_array<float> outputs{most * model.widest_output};
  for (std::size_t i = 0; i < most * stride; ++i) {
    floats.data()[i] = std::sin(static_cast<float>(i));
  }
  (*table)->quantise(floats.data(), most * stride, quants.data(), blocks.data());
  const product_input in{quants.data(), blocks.data(), floats.data(), stride};
  std::vector<aligned_buffer> scratch;
  for (std::uint32_t thread = 0; thread < threads.size(); ++thread) {
    scratch.emplace_back(product_scratch_bytes(stride));
  }

  std::vector<std::vector<double>> seconds(rows.size());
  for (std::uint32_t round = 0; round <= settings.rounds; ++round) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto start = std::chrono::steady_clock::now();
      threads.run([&](worker& self) {
        for (const auto& part : model.parts) {
          const auto mine = self.share(part.tiles());
          (*table)->product(part, in, 0, rows[i], mine.begin, mine.end,
            {outputs.data(), part.outputs(), false}, scratch[self.index()].data());
          self.sync();
        }
      });
      if (round != 0) {
        seconds[i].push_back(seconds_since(start));
      }
    }
  }
  std::vector<product_rate> made;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const double took = median(seconds[i]);
    made.push_back({rows[i], took, 2 * model.numbers * rows[i] / took, model.bytes / took});
  }
  return made;
}

} // namespace godwit::bench
