#include "tools/bench/sampling_bench.hpp"

#include "tests/support/temporary_folder.hpp"
#include "tests/support/tiny_llama.hpp"

#include <catch2/catch.hpp>

#include <fstream>
#include <set>
#include <string>

using namespace godwit;
using namespace godwit::bench;

TEST_CASE("every way to choose tokens gets a time beside the step's, and rows are checked") {
  const temporary_folder folder;
  const model_settings settings{.model = folder.path() / "tiny.gguf", .threads = 1, .rounds = 2};
  const auto bytes = tiny_llama{}.write().finish();
  std::ofstream{settings.model, std::ios::binary}.write(
    reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));

  const auto rates = sampling(settings, 5);
  REQUIRE(rates);
  CHECK(rates->rows == 5);
  CHECK(rates->step_seconds > 0);
  std::set<std::string> names;
  for (const auto& way : rates->ways) {
    CHECK(way.seconds > 0);
    names.insert(way.name);
  }
  CHECK(names.size() == rates->ways.size());
  CHECK(names.contains("greedy"));
  CHECK(sampling(settings, 0).error().code == errc::invalid_argument);
  CHECK(sampling(settings, 513).error().code == errc::invalid_argument);
}
