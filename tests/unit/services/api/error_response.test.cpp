#include "services/api/error_response.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

using namespace godwit;
using namespace std::chrono_literals;
using nlohmann::json;

TEST_CASE("each kind of failure has the status that the API promises") {
  CHECK(status_of(errc::invalid_argument) == 400);
  CHECK(status_of(errc::unsupported) == 400);
  CHECK(status_of(errc::corrupt) == 400);
  CHECK(status_of(errc::permission) == 403);
  CHECK(status_of(errc::not_found) == 404);
  CHECK(status_of(errc::conflict) == 409);
  CHECK(status_of(errc::gone) == 410);
  CHECK(status_of(errc::too_large) == 413);
  CHECK(status_of(errc::unprocessable) == 422);
  CHECK(status_of(errc::internal) == 500);
  CHECK(status_of(errc::unavailable) == 503);
  CHECK(status_of(errc::draining) == 503);
  CHECK(status_of(errc::deadline) == 504);
  CHECK(status_of(errc::overloaded) == 529);
}

TEST_CASE("an error's body names type, code, message and the field at fault") {
  const auto answer = error_response({errc::conflict, "a turn runs", "content", "turn_running"}, 1s);
  CHECK(answer.status == 409);
  CHECK(json::parse(answer.body)["error"]["code"] == "turn_running");
  CHECK(json::parse(answer.body)["error"]["message"] == "a turn runs");
  CHECK(json::parse(answer.body)["error"]["param"] == "content");
  CHECK(json::parse(answer.body)["error"]["type"].is_string());
  CHECK(answer.fields == http::headers{{"Content-Type", "application/json"}});
}

TEST_CASE("the code of an error without a reason is its kind, and param is left out") {
  const auto body = json::parse(error_json({errc::deadline, "too late", {}, {}}));
  CHECK(body["error"]["code"] == "deadline");
  CHECK_FALSE(body["error"].contains("param"));
}

TEST_CASE("those who should come back are told when") {
  const auto code = GENERATE(errc::overloaded, errc::unavailable, errc::draining);
  const auto answer = error_response({code, "busy", {}, {}}, 3s);
  CHECK(answer.fields.back() == std::pair<std::string, std::string>{"Retry-After", "3"});
}

TEST_CASE("the words of internal failures stay in the node") {
  const auto code = GENERATE(errc::internal, errc::io);
  const auto answer = error_response({code, "open /var/lib/godwit: denied", "x", "y"}, 1s);
  CHECK(answer.status == 500);
  CHECK(answer.body.find("/var/lib") == std::string::npos);
  CHECK(is_private(code));
}
