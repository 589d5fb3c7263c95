#include "tools/bench/product_bench.hpp"

#include "tests/support/temporary_folder.hpp"
#include "tests/support/tiny_llama.hpp"

#include <catch2/catch.hpp>

#include <array>
#include <fstream>

using namespace godwit;
using namespace godwit::bench;

TEST_CASE("products are measured for each number of rows, and their rates agree with each other") {
  const temporary_folder folder;
  const model_settings settings{.model = folder.path() / "tiny.gguf", .threads = 2, .rounds = 3};
  const auto bytes = tiny_llama{}.write().finish();
  std::ofstream{settings.model, std::ios::binary}.write(
    reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));

  const std::array<std::uint32_t, 2> rows{1, 5};
  const auto rates = products(settings, rows);
  REQUIRE(rates);
  REQUIRE(rates->size() == 2);
  const auto& [one, five] = std::pair{(*rates)[0], (*rates)[1]};
  CHECK(one.rows == 1);
  CHECK(five.rows == 5);
  CHECK(one.seconds > 0);
  // The same weights are read whatever the rows are, and five rows are five times the operations.
  CHECK(one.bytes_per_s * one.seconds == Approx(five.bytes_per_s * five.seconds));
  CHECK(5 * one.operations_per_s * one.seconds == Approx(five.operations_per_s * five.seconds));

  const std::array<std::uint32_t, 1> none{0};
  CHECK(products(settings, none).error().code == errc::invalid_argument);
  const std::array<std::uint32_t, 1> too_many{4097};
  CHECK(products(settings, too_many).error().code == errc::invalid_argument);
  auto other = settings;
  other.implementation = "reference";
  CHECK(products(other, rows).error().code == errc::unsupported);
}
