#include "services/daemon/gateway_switch.hpp"

#include "services/http/answer.hpp"

#include <catch2/catch.hpp>

using namespace godwit;

namespace {

class counting_gateway final : public gateway {
 public:
  void handle(std::shared_ptr<http::exchange> call) override {
    ++calls;
    call->respond({204, {}, {}});
  }
  void drain() override { ++drains; }

  int calls = 0;
  int drains = 0;
};

/// The status of the answer to a request.
int ask(gateway_switch& front, std::string path, std::string method = "GET") {
  http::request request;
  request.method = std::move(method);
  request.path = std::move(path);
  const auto state = std::make_shared<http::answer>(std::move(request), http::answer_options{}, [] {});
  front.handle(http::answer::handle(state));
  return state->status();
}

} // namespace

TEST_CASE("before there is a gateway the process says that it lives, and nothing else") {
  gateway_switch front;
  CHECK(ask(front, "/healthz") == 200);
  CHECK(ask(front, "/healthz", "POST") == 503);
  CHECK(ask(front, "/readyz") == 503);
  CHECK(ask(front, "/v1/models") == 503);
}

TEST_CASE("requests go to the latest gateway") {
  gateway_switch front;
  const auto first = std::make_shared<counting_gateway>();
  const auto second = std::make_shared<counting_gateway>();
  front.set(first);
  CHECK(ask(front, "/healthz") == 204);
  front.set(second);
  CHECK(ask(front, "/v1/models") == 204);
  CHECK(first->calls == 1);
  CHECK(second->calls == 1);
  front.clear();
  CHECK(ask(front, "/v1/models") == 503);
}

TEST_CASE("a drain holds for the gateways to come") {
  gateway_switch front;
  const auto first = std::make_shared<counting_gateway>();
  const auto second = std::make_shared<counting_gateway>();
  front.set(first);
  front.drain();
  front.set(second);
  CHECK(first->drains == 1);
  CHECK(second->drains == 1);
}
