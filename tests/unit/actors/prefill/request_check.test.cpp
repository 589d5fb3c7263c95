#include "actors/prefill/request_check.hpp"

#include "messages/letter.hpp"

#include <catch2/catch.hpp>

#include <functional>
#include <limits>

using namespace godwit;

namespace {

constexpr request_limits limits{.vocabulary = 100, .context = 64, .pool_tokens = 48};

letter<schema::GenerateRequest> request_of(
  unsigned tokens, const std::function<void(schema::GenerateRequest::Builder)>& change = [](auto) {}) {
  return letter<schema::GenerateRequest>::make([&](schema::GenerateRequest::Builder b) {
    b.initTokens(tokens);
    b.setPromptLength(tokens);
    b.initSampling();
    change(b);
  });
}

} // namespace

TEST_CASE("a plain request passes, up to the last prompt that leaves room for one token") {
  CHECK(check_request(request_of(1).read(), limits));
  CHECK(check_request(request_of(47).read(), limits));
}

TEST_CASE("a prompt over the pages or over the context is refused with both numbers") {
  const auto pages = check_request(request_of(48).read(), limits);
  REQUIRE_FALSE(pages);
  CHECK(pages.error().code == errc::invalid_argument);
  CHECK(pages.error().reason == "kv_capacity_exceeded");
  CHECK(pages.error().message.find("49") != std::string::npos);
  CHECK(pages.error().message.find("48") != std::string::npos);
  const auto context = check_request(request_of(64).read(), limits);
  REQUIRE_FALSE(context);
  CHECK(context.error().code == errc::invalid_argument);
  CHECK(context.error().reason == "context_length_exceeded");
  CHECK(context.error().message.find("64") != std::string::npos);
}

TEST_CASE("tokens that were released before do not count as prompt") {
  CHECK(check_request(request_of(60, [](auto b) { b.setPromptLength(10); }).read(), limits));
}

TEST_CASE("what is malformed names its field") {
  const auto field_of = [](const letter<schema::GenerateRequest>& mail) {
    const auto checked = check_request(mail.read(), limits);
    REQUIRE_FALSE(checked);
    CHECK(checked.error().code == errc::invalid_argument);
    return checked.error().param;
  };
  CHECK(field_of(request_of(0)) == "tokens");
  CHECK(field_of(request_of(3, [](auto b) { b.getTokens().set(2, 100); })) == "tokens");
  CHECK(field_of(request_of(3, [](auto b) { b.setPromptLength(4); })) == "promptLength");
  CHECK(field_of(request_of(3, [](auto b) { b.setPromptLength(0); })) == "promptLength");
  const auto nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(field_of(request_of(3, [&](auto b) { b.getSampling().setTemperature(nan); })) == "temperature");
  CHECK(
    field_of(request_of(3, [](auto b) { b.getSampling().initBias(1)[0].setToken(100); })) == "logit_bias");
}
