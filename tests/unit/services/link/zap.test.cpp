#include "services/link/zap.hpp"

#include <catch2/catch.hpp>

#include <vector>

using namespace godwit;
using namespace godwit::link;

namespace {

struct fixture {
  public_key key = make_keys(node_name("alpha"))->open;
  std::string raw{reinterpret_cast<const char*>(key.bytes.data()), key.bytes.size()};
  allow_list list;
  std::vector<std::string_view> request{"1.0", "7", "godwit", "10.0.0.9", "", "CURVE", raw};

  fixture() { REQUIRE(list.allow({node_name("alpha"), key})); }
};

} // namespace

TEST_CASE_METHOD(fixture, "a connection with a known key says with each message which key it has") {
  const auto verdict = judge(request, &list);
  CHECK(verdict.accepted);
  const auto reply = zap_reply(request, verdict);
  CHECK(reply[0] == "1.0");
  CHECK(reply[1] == "7");
  CHECK(reply[2] == "200");
  CHECK(reply[4] == to_z85(key));
}

TEST_CASE_METHOD(fixture, "other keys and other requests are refused") {
  list.forget(node_name("alpha"));
  CHECK_FALSE(judge(request, &list).accepted);
  CHECK(zap_reply(request, judge(request, &list))[2] == "400");
  REQUIRE(list.allow({node_name("alpha"), key}));
  for (std::size_t length = 0; length < request.size(); ++length)
    CHECK_FALSE(judge(std::span(request).first(length), &list).accepted);
  request[5] = "PLAIN";
  CHECK_FALSE(judge(request, &list).accepted);
  request[5] = "NULL";
  CHECK_FALSE(judge(request, &list).accepted);
  request[5] = "CURVE";
  request[6] = "short";
  CHECK_FALSE(judge(request, &list).accepted);
}

TEST_CASE_METHOD(fixture, "plain sockets accept loopback only") {
  request[5] = "NULL";
  request.resize(6);
  CHECK_FALSE(judge(request, nullptr).accepted);
  for (const char* here : {"127.0.0.1", "::1", "::ffff:127.0.0.1"}) {
    request[3] = here;
    CHECK(judge(request, nullptr).accepted);
  }
}
