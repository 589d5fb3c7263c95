#include "services/api/header_fields.hpp"

#include <catch2/catch.hpp>

#include <cctype>

using namespace godwit;

namespace {

http::request with_header(std::string name, std::string value) {
  http::request out;
  out.fields.emplace_back(std::move(name), std::move(value));
  return out;
}

http::request with_query(std::vector<std::pair<std::string, std::string>> query) {
  http::request out;
  out.query = std::move(query);
  return out;
}

const std::string id = "ses_0123456789abcdef0123456789abcdef";

} // namespace

TEST_CASE("the tenant is the header's or the default one") {
  CHECK(tenant_of({}).value() == tenant_id("default"));
  CHECK(tenant_of(with_header("x-tenant-id", "acme-1.eu_x")).value() == tenant_id("acme-1.eu_x"));
  const auto bad = GENERATE(as<std::string>{}, "", "a b", "a/b", "\xc3\xa9", std::string(65, 'a'), "a\n");
  const auto refused = tenant_of(with_header("X-Tenant-ID", bad));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().param == "X-Tenant-ID");
}

TEST_CASE("an idempotency key is short and visible") {
  CHECK(idempotency_key_of({}).value().empty());
  CHECK(idempotency_key_of(with_header("Idempotency-Key", "8e03-\"x\"")).value() == "8e03-\"x\"");
  const auto bad = GENERATE(as<std::string>{}, "", "a b", std::string(256, 'k'), "\x7f", "\xc3\xa9");
  CHECK_FALSE(idempotency_key_of(with_header("Idempotency-Key", bad)));
}

TEST_CASE("what stands twice is refused by name, whatever it says") {
  for (const auto* name : {"X-Tenant-ID", "Idempotency-Key", "Last-Event-ID"}) {
    auto request = with_header(name, "one");
    auto lower = std::string(name);
    for (auto& c : lower)
      c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    request.fields.emplace_back(lower, "one");
    const auto refused = [&]() -> std::string {
      if (const auto tenant = tenant_of(request); !tenant)
        return tenant.error().param;
      if (const auto key = idempotency_key_of(request); !key)
        return key.error().param;
      const auto events = events_query_of(request);
      return events ? std::string() : events.error().param;
    }();
    CHECK(refused == name);
  }
  const auto page = page_query_of(with_query({{"limit", "1"}, {"limit", "2"}}));
  REQUIRE_FALSE(page);
  CHECK(page.error().param == "limit");
}

TEST_CASE("a session's id has one form") {
  CHECK(has_session_form(id));
  const auto bad = GENERATE(as<std::string>{}, "", "ses_", "ses_0123456789abcdef0123456789abcde",
    "ses_0123456789abcdef0123456789abcdef0", "ses_0123456789ABCDEF0123456789abcdef",
    "sex_0123456789abcdef0123456789abcdef");
  CHECK_FALSE(has_session_form(bad));
  CHECK(bound_session_of(with_header("X-Session-ID", bad)).error().code == errc::not_found);
  CHECK(bound_session_of(with_header("X-Session-ID", id)).value() == session_id(id));
  CHECK_FALSE(bound_session_of({}).value());
}

TEST_CASE("JSON is known by its media type alone") {
  CHECK(is_json(with_header("content-type", "application/json")));
  CHECK(is_json(with_header("Content-Type", " Application/JSON ; charset=utf-8")));
  CHECK_FALSE(is_json({}));
  CHECK_FALSE(is_json(with_header("Content-Type", "text/json")));
  CHECK_FALSE(is_json(with_header("Content-Type", "application/json-seq")));
  CHECK_FALSE(is_json(with_header("Content-Type", "application/x-www-form-urlencoded")));
}

TEST_CASE("events are wanted when Accept lists them") {
  CHECK(wants_events(with_header("Accept", "text/event-stream")));
  CHECK(wants_events(with_header("Accept", "application/json, Text/Event-Stream;q=0.9")));
  CHECK_FALSE(wants_events(with_header("Accept", "*/*")));
  CHECK_FALSE(wants_events({}));
}

TEST_CASE("the header's event id wins over the query's") {
  auto request = with_query({{"after", "5"}, {"snapshot", "1"}});
  CHECK(events_query_of(request).value().after == "5");
  CHECK(events_query_of(request).value().snapshot);
  request.fields.emplace_back("Last-Event-ID", "9");
  CHECK(events_query_of(request).value().after == "9");
  CHECK(events_query_of({}).value().after.empty());
  CHECK_FALSE(events_query_of({}).value().snapshot);
  CHECK(events_query_of({}).value().follow);
  CHECK(events_query_of(with_query({{"follow", "1"}})).value().follow);
  CHECK_FALSE(events_query_of(with_query({{"follow", "0"}})).value().follow);
}

TEST_CASE("a faulty query names its parameter") {
  CHECK(events_query_of(with_query({{"after", ""}})).error().param == "after");
  CHECK(events_query_of(with_query({{"after", "a b"}})).error().param == "after");
  CHECK(
    events_query_of(with_header("Last-Event-ID", std::string(129, '1'))).error().param == "Last-Event-ID");
  CHECK(events_query_of(with_query({{"snapshot", "yes"}})).error().param == "snapshot");
  CHECK(events_query_of(with_query({{"follow", "no"}})).error().param == "follow");
  CHECK(events_query_of(with_query({{"from", "1"}})).error().param == "from");
  CHECK(page_query_of(with_query({{"limit", "0"}})).error().param == "limit");
  CHECK(page_query_of(with_query({{"limit", "101"}})).error().param == "limit");
  CHECK(page_query_of(with_query({{"limit", "1x"}})).error().param == "limit");
  CHECK(page_query_of(with_query({{"after", "x"}})).error().param == "after");
}

TEST_CASE("a page has a limit and a start") {
  CHECK(page_query_of({}).value().limit == 20);
  const auto page = page_query_of(with_query({{"limit", "100"}, {"after", id}}));
  CHECK(page.value().limit == 100);
  CHECK(page.value().after == id);
}
