#pragma once

#include "services/coldstore/cold_options.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

namespace godwit::test {

/// Pages of 2 KiB a block.
inline constexpr kv_shape small_shape{2, 2, 8, kv_type::f16};
/// With a tenant's name of at most eight bytes: 128 bytes of header, name, pages.
inline constexpr std::size_t small_record = 128 + 8 + 2048;

inline cold_options small_store(const std::filesystem::path& folder, std::uint64_t limit = 1 << 30) {
  cold_options options;
  options.folder = folder;
  options.limit_bytes = limit;
  options.scope.fingerprint = "a small model";
  options.scope.shape = small_shape;
  options.write_buffer_bytes = std::size_t{64} << 10;
  options.first_retry = std::chrono::milliseconds(1);
  options.last_retry = std::chrono::milliseconds(5);
  return options;
}

/// What the pages of a block hold: noise that depends on its identity alone.
inline std::vector<std::byte> pages_of(const block_identity& identity, std::size_t size) {
  std::mt19937_64 random(identity.low ^ (identity.high << 1U));
  std::vector<std::byte> made(size);
  for (std::size_t i = 0; i + 8 <= size; i += 8) {
    const std::uint64_t word = random();
    std::memcpy(made.data() + i, &word, 8);
  }
  return made;
}

/// Blocks that stand behind each other.
struct text {
  std::string tenant;
  std::vector<block_identity> names;
  std::vector<block_identity> parents;
  std::vector<std::vector<std::byte>> pages;

  /// Texts of other numbers share nothing; those of one number and tenant share their beginning.
  text(std::uint32_t number, std::size_t length, std::string of = "acme",
    const cold_options& options = small_store({}))
    : tenant(std::move(of)) {
    const block_hasher hasher(identity_key::derive({}), options.scope);
    auto last = hasher.root(tenant);
    std::vector<token_id> tokens(page_tokens);
    for (std::size_t i = 0; i < length; ++i) {
      tokens[0] = number;
      tokens[1] = static_cast<token_id>(i);
      parents.push_back(last);
      last = hasher.next(last, tokens);
      names.push_back(last);
      pages.push_back(pages_of(last, options.scope.shape.block_bytes()));
    }
  }

  std::vector<cold_block> blocks(std::size_t from = 0, std::size_t until = ~std::size_t{0}) const {
    std::vector<cold_block> made;
    for (std::size_t i = from; i < std::min(until, names.size()); ++i)
      made.push_back({names[i], parents[i], static_cast<std::uint32_t>(i), 0, tenant, pages[i]});
    return made;
  }
};

/// How many blocks a read gives from the first on, or ~0 if one of them is wrong or a byte behind them was
/// touched.
inline std::size_t read_right(cold_store& store, const text& of) {
  const std::size_t size = of.pages.empty() ? 0 : of.pages[0].size();
  std::vector<std::vector<std::byte>> into(of.names.size(), std::vector<std::byte>(size));
  std::vector<std::span<std::byte>> places(into.begin(), into.end());
  const auto count = store.read(of.names, places);
  for (std::size_t i = 0; i < count; ++i)
    if (into[i] != of.pages[i])
      return ~std::size_t{0};
  return count;
}

/// The number of blocks that all texts together have in a store. None shares one with another.
inline std::uint64_t known_of(const cold_store& store, const std::vector<text>& all) {
  std::uint64_t sum = 0;
  for (const auto& one : all)
    sum += store.known(one.names);
  return sum;
}

} // namespace godwit::test
