#pragma once

#include "tools/godwit/output.hpp"

#include <cstddef>

namespace godwit::cli {

/// What the bench of the link is told.
struct link_words {
  bool plain = false;
  std::size_t rounds = 5;
  std::size_t requests = 2000;
  std::size_t letters = 50'000;
  std::size_t pages = 200;
  std::size_t page_bytes = std::size_t{1} << 20;
  std::size_t letter_bytes = 200;
};

/// The link between two processes on this machine, beside bare ZeroMQ with the same bytes and keys.
int bench_link(const settings& how, const link_words& said);

} // namespace godwit::cli
