#include "services/metrics/route_label.hpp"

#include <catch2/catch.hpp>

using namespace godwit;

TEST_CASE("a path is labelled by its route") {
  CHECK(route_label("/healthz") == "/healthz");
  CHECK(route_label("/v1/sessions") == "/v1/sessions");
  CHECK(route_label("/v1/sessions/ses_1") == "/v1/sessions/{id}");
  CHECK(route_label("/v1/sessions/ses_1/events") == "/v1/sessions/{id}/events");
  CHECK(route_label("/v1/models/a") == "/v1/models/{id}");
}

TEST_CASE("what is no route has one label") {
  for (const auto* path : {"", "/", "/v1", "/v1/sessions/", "/v1/sessions//events", "/v1/sessions/a/b",
         "/healthz/", "/v1/sessions/a/events/b", "x"}) {
    INFO(path);
    CHECK(route_label(path) == "other");
  }
}

TEST_CASE("methods that nobody uses have one label") {
  CHECK(method_label("GET") == "GET");
  CHECK(method_label("BREW") == "other");
  CHECK(method_label("") == "other");
}
