#include "services/api/routes.hpp"

#include <catch2/catch.hpp>

using namespace godwit;

TEST_CASE("every call of the API is found by method and path") {
  struct known {
    const char* method;
    const char* path;
    route call;
  };
  const auto expected = GENERATE(values<known>({
    {"GET", "/healthz", route::healthz},
    {"GET", "/readyz", route::readyz},
    {"GET", "/metrics", route::metrics},
    {"GET", "/v1/nodes", route::nodes},
    {"POST", "/v1/nodes/alpha/drain", route::node_drain},
    {"GET", "/v1/actors", route::actors},
    {"GET", "/v1/models", route::models},
    {"GET", "/v1/models/x", route::model},
    {"POST", "/v1/chat/completions", route::chat_completion},
    {"GET", "/v1/sessions", route::session_list},
    {"POST", "/v1/sessions", route::session_create},
    {"GET", "/v1/sessions/x", route::session_info},
    {"DELETE", "/v1/sessions/x", route::session_erase},
    {"POST", "/v1/sessions/x/messages", route::session_message},
    {"GET", "/v1/sessions/x/events", route::session_events},
    {"GET", "/v1/sessions/x/transcript", route::session_transcript},
    {"POST", "/v1/sessions/x/cancel", route::session_cancel},
    {"POST", "/v1/sessions/x/fork", route::session_fork},
    {"POST", "/v1/sessions/x/suspend", route::session_suspend},
    {"POST", "/v1/sessions/x/pin", route::session_pin},
    {"DELETE", "/v1/sessions/x/pin", route::session_unpin},
    {"POST", "/v1/sessions/x/migrate", route::session_migrate},
  }));
  CHECK(find_route(expected.method, expected.path).call == expected.call);
}

TEST_CASE("the id is what stands in its place") {
  CHECK(find_route("GET", "/v1/sessions/ses_1/events").id == "ses_1");
  CHECK(find_route("GET", "/v1/models/owner/name").id == "owner/name");
  CHECK(find_route("GET", "/v1/sessions/ses_1/events").pattern == "/v1/sessions/{id}/events");
}

TEST_CASE("another method on a known path tells which ones there are") {
  const auto found = find_route("PUT", "/v1/sessions/x");
  CHECK_FALSE(found.call);
  CHECK(found.allow == "GET, HEAD, DELETE");
  CHECK(find_route("GET", "/v1/chat/completions").allow == "POST");
  CHECK(find_route("get", "/healthz").allow == "GET, HEAD");
  CHECK(find_route("POST", "/v1/sessions/x/events").allow == "GET");
}

TEST_CASE("HEAD leads where GET does, except to a stream without end") {
  CHECK(find_route("HEAD", "/healthz").call == route::healthz);
  CHECK(find_route("HEAD", "/v1/sessions/x").call == route::session_info);
  CHECK_FALSE(find_route("HEAD", "/v1/sessions/x/events").call);
  CHECK_FALSE(find_route("HEAD", "/v1/chat/completions").call);
}

TEST_CASE("an unknown path allows nothing") {
  const auto path = GENERATE(as<std::string>{}, "/", "", "/v1", "/v2/sessions", "/healthz/", "/v1/sessions/",
    "/v1/sessions/x/", "/v1/sessions/x/y", "/v1/sessions//events", "/v1/sessions/a/b/events", "/v1/models/");
  const auto found = find_route("GET", path);
  CHECK_FALSE(found.call);
  CHECK(found.allow.empty());
}
