#include "tools/bench/machine.hpp"
#include "tests/support/tiny_llama.hpp"
#include "tools/bench/int8_peak.hpp"
#include "tools/bench/model_work.hpp"

#include <catch2/catch.hpp>

using namespace godwit;
using namespace godwit::bench;

TEST_CASE("the machine's limits name the instructions that were measured, and the threads") {
  const auto limits = measure_machine("", 1).value();
  CHECK(limits.threads == 1);
  CHECK_FALSE(limits.instructions.empty());
  CHECK(limits.int8_per_s > 0);
  CHECK(limits.bytes_per_s > 0);
  CHECK(measure_machine("cpu:no-such-target", 1).error().code == errc::unsupported);
}

TEST_CASE("operations of a repeat: lanes, times four products and four sums, times chains") {
  CHECK(int8_peak_for("cpu:avx2").operations % (8 * 4 * 2) == 0);
  CHECK(int8_peak_for("reference").name == "plain");
  CHECK(int8_peak_for("reference").run(10) == int8_peak_for("cpu:scalar").run(10));
}

TEST_CASE("a model's work follows from its tensors") {
  model_work work;
  work.layer_weights = 100;
  work.head_weights = 10;
  work.attention_operations = 4;
  // Three rows see one, two and three positions.
  CHECK(work.prefill_operations(3) == 2 * 100 * 3 + 2 * 10 + 4 * (1 + 2 + 3));
  work.weight_bytes = 1000;
  work.position_bytes = 8;
  CHECK(work.decode_bytes(16, 2) == 1000 + 2 * 16 * 8);
}
