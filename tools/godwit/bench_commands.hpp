#pragma once

#include "tools/godwit/output.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace godwit::cli {

/// What the model benches are told.
struct bench_words {
  std::filesystem::path model;
  std::filesystem::path text;
  std::string ops;     ///< an implementation of the dispatch table; empty: the best
  std::string kv_type; ///< what keys and values are kept in; empty: what the implementation takes by itself
  std::uint32_t threads = 0;
  std::uint32_t rounds = 5;
  std::vector<std::uint32_t> tokens{512};
  std::vector<std::uint32_t> contexts{128};
  std::vector<std::uint32_t> batches{1};
  std::vector<std::uint32_t> blocks{1, 8};
  std::uint32_t cached = 4000;
  std::filesystem::path folder = "."; ///< on the disk of the cache's lowest tier
  std::uint32_t rows = 64;
  std::vector<std::uint32_t> sizes{1, 2, 4, 8, 16}; ///< rows of steps
};

/// What the bench of the journal is told.
struct journal_words {
  std::filesystem::path folder = "."; ///< on the disk to be measured
  std::string url;                    ///< of a database to be measured in place of the embedded journal
  std::vector<std::size_t> sessions{1, 8, 64, 512};
  std::size_t record_bytes = 200;
  std::size_t rounds = 5;
  std::uint32_t round_ms = 1000;
};

/// What the bench of the cache on disk is told.
struct cold_words {
  std::filesystem::path folder = "."; ///< on the disk to be measured
  std::filesystem::path model;
  std::uint32_t megabytes = 512;
  std::uint32_t batch = 64;
  std::uint32_t rounds = 3;
  bool compress = false;
};

/// Speed of prompts of each length.
int bench_prefill(const settings& how, const bench_words& said);
/// Speed of decoding for each context and batch.
int bench_decode(const settings& how, const bench_words& said);
/// Time to verify blocks of tokens in one pass.
int bench_verify(const settings& how, const bench_words& said);
/// Time of nothing but the matrix products of a step.
int bench_products(const settings& how, const bench_words& said);
/// What the machine could do at most.
int bench_machine(const settings& how, const bench_words& said);
/// The prefix cache: its index, its pages, and what a hit saves.
int bench_cache(const settings& how, const bench_words& said);
/// The cache on disk beside a plain file there.
int bench_cold(const settings& how, const cold_words& said);
/// Time to choose the tokens of a step's rows, beside the step's.
int bench_sampling(const settings& how, const bench_words& said);
/// Mean negative log-likelihood of a text.
int bench_nll(const settings& how, const bench_words& said);
/// Durable records a second of a journal, for each number of sessions, beside those of a plain
/// file on the same disk.
int bench_journal(const settings& how, const journal_words& said);

} // namespace godwit::cli
