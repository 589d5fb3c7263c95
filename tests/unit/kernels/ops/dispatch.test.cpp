#include "kernels/ops/dispatch.hpp"
#include "kernels/ops/contract.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdlib>

using namespace godwit;
using namespace godwit::ops;

namespace {

/// Sets GODWIT_OPS for as long as it lives.
class forced {
 public:
  explicit forced(const char* name) { ::setenv("GODWIT_OPS", name, 1); }
  ~forced() { ::unsetenv("GODWIT_OPS"); }
};

std::size_t chosen(const std::vector<implementation>& lines) {
  return static_cast<std::size_t>(std::ranges::count_if(lines, &implementation::chosen));
}

} // namespace

TEST_CASE("the table lists the reference and every target, with reasons, and marks one") {
  const auto lines = implementations("cpu");
  REQUIRE(lines.size() >= 2);
  CHECK(lines.back().name == "reference");
  CHECK(lines[lines.size() - 2].name == "cpu:scalar");
  CHECK(lines[lines.size() - 2].available);
  CHECK(chosen(lines) == 1);
  for (const auto& line : lines) {
    CHECK(!line.description.empty());
    CHECK(!line.reason.empty());
    CHECK((line.available || !line.chosen));
  }
  // The first that this machine can run.
  CHECK(std::ranges::find_if(lines, &implementation::available)->chosen);
}

TEST_CASE("the environment forces an implementation, an argument beats it") {
  const forced scalar{"cpu:scalar"};
  CHECK(choose().value() == "cpu:scalar");
  CHECK(choose("reference").value() == "reference");
  const auto lines = implementations();
  CHECK(chosen(lines) == 1);
  CHECK(std::ranges::find_if(lines, &implementation::chosen)->name == "cpu:scalar");
}

TEST_CASE("an unknown implementation is refused with the choices, and never replaced") {
  const forced unknown{"cpu:avx9"};
  const auto made = choose();
  REQUIRE_FALSE(made.has_value());
  CHECK(made.error().code == errc::unsupported);
  CHECK(made.error().message.find("cpu:avx9") != std::string::npos);
  CHECK(made.error().message.find("cpu:scalar") != std::string::npos);
  CHECK(made.error().message.find("reference") != std::string::npos);
  CHECK(chosen(implementations()) == 0);
}

TEST_CASE("the best target is not the scalar one where there are vectors") {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") != 0) {
    CHECK(choose("cpu").value() != "cpu:scalar");
    CHECK(choose("cpu").value() != "cpu:sse4");
  }
#endif
}

TEST_CASE("all targets follow one contract, the reference another") {
  CHECK(contract_of("cpu:scalar") == contract_of("cpu:avx2"));
  CHECK(contract_of("cpu:scalar") != contract_of("reference"));
}
