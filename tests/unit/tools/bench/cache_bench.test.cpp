#include "tools/bench/cache_bench.hpp"

#include "tests/support/temporary_folder.hpp"
#include "tests/support/tiny_llama.hpp"

#include <catch2/catch.hpp>

#include <fstream>

using namespace godwit;
using namespace godwit::bench;

namespace {

model_settings settings_in(const temporary_folder& folder) {
  const auto path = folder.path() / "tiny.gguf";
  const auto bytes = tiny_llama{}.write().finish();
  std::ofstream{path, std::ios::binary}.write(
    reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return {.model = path, .threads = 1, .rounds = 1};
}

} // namespace

TEST_CASE("a fork takes one block, and the index stays within 80 bytes a block") {
  const temporary_folder folder;
  const auto rates = cache(settings_in(folder), 100, folder.path());
  REQUIRE(rates);
  CHECK(rates->pages.fork_blocks == 1);
  CHECK(rates->pages.pages >= 100000);
  CHECK(rates->index.bytes_per_block <= 80);
  CHECK(rates->index.bytes_per_block >= 48);
  CHECK(rates->hit.tokens == 100);
  CHECK(rates->hit.hit_ms > 0);
  CHECK(rates->tiers.host_ms > 0);
  CHECK(rates->tiers.disk_ms > 0);
  CHECK(rates->tiers.slow_ms > 0);
  CHECK(rates->tiers.beside_offload_per_s > 0);
}

TEST_CASE("a prompt that no cache could shorten, or beyond the context, is refused") {
  const temporary_folder folder;
  CHECK(cache(settings_in(folder), 31, folder.path()).error().code == errc::invalid_argument);
  CHECK(cache(settings_in(folder), 513, folder.path()).error().code == errc::invalid_argument);
}
