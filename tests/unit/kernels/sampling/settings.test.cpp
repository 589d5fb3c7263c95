#include "kernels/sampling/settings.hpp"

#include <catch2/catch.hpp>

#include <functional>
#include <limits>
#include <string>

using namespace godwit;

namespace {

constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();
constexpr float infinity = std::numeric_limits<float>::infinity();

/// The field that validate() names after a change to good settings; "" if it takes them.
std::string fault(const std::function<void(sampling_settings&)>& change) {
  sampling_settings settings;
  change(settings);
  const auto outcome = validate(settings, 100);
  if (outcome)
    return "";
  CHECK(outcome.error().code == errc::invalid_argument);
  CHECK(outcome.error().message.find(outcome.error().param) == 0);
  return outcome.error().param;
}

} // namespace

TEST_CASE("the defaults are valid") {
  CHECK(fault([](sampling_settings&) {}) == "");
}

TEST_CASE("numbers out of range are refused by the name of their field") {
  for (const float x : {-1.0F, -1e-6F, not_a_number, infinity, -infinity})
    CHECK(fault([&](auto& s) { s.temperature = x; }) == "temperature");
  for (const float x : {0.0F, -0.1F, 1.0001F, not_a_number, infinity})
    CHECK(fault([&](auto& s) { s.top_p = x; }) == "top_p");
  for (const float x : {-0.1F, 1.0001F, not_a_number, infinity})
    CHECK(fault([&](auto& s) { s.min_p = x; }) == "min_p");
  for (const float x : {0.0F, -1.0F, not_a_number, infinity})
    CHECK(fault([&](auto& s) { s.repeat_penalty = x; }) == "repeat_penalty");
  for (const float x : {-2.1F, 2.1F, not_a_number, infinity}) {
    CHECK(fault([&](auto& s) { s.frequency_penalty = x; }) == "frequency_penalty");
    CHECK(fault([&](auto& s) { s.presence_penalty = x; }) == "presence_penalty");
  }
  for (const float x : {-100.1F, 100.1F, not_a_number, infinity})
    CHECK(fault([&](auto& s) { s.bias = {{5, 0.0F}, {6, x}}; }) == "logit_bias");
  CHECK(fault([](auto& s) { s.bias = {{100, 0.0F}}; }) == "logit_bias");
  CHECK(fault([](auto& s) { s.top_logprobs = 21; }) == "top_logprobs");
}

TEST_CASE("numbers at the ends of their ranges are taken") {
  CHECK(fault([](auto& s) {
    s.temperature = 0;
    s.top_p = 1e-6F;
    s.min_p = 0;
    s.repeat_penalty = 1e-6F;
    s.frequency_penalty = -2;
    s.presence_penalty = -2;
    s.bias = {{0, -100.0F}};
  }) == "");
  CHECK(fault([](auto& s) {
    s.temperature = 1e30F;
    s.top_k = 0xffffffff;
    s.top_p = 1;
    s.min_p = 1;
    s.frequency_penalty = 2;
    s.presence_penalty = 2;
    s.bias = {{99, 100.0F}};
    s.top_logprobs = 20;
  }) == "");
}
