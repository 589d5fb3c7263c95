#include "services/mesh/host.hpp"

#include <catch2/catch.hpp>

using namespace godwit;

TEST_CASE("hosts are addresses or names") {
  CHECK(is_ipv4("127.0.0.1"));
  CHECK_FALSE(is_ipv4("127.1"));
  CHECK(is_ipv6("::1"));
  CHECK_FALSE(is_ipv6("[::1]"));
  for (const auto* each : {"a", "godwit-0.godwit.svc.cluster.local", "7.example", "x_1"})
    CHECK(is_host_name(each));
  for (const auto* each : {"", ".", "a.", ".a", "a..b", "-a", "a-", "1.2.3", "a b", "a/b", "a:1", "*"})
    CHECK_FALSE(is_host_name(each));
  CHECK_FALSE(is_host_name(std::string(64, 'a')));
  CHECK(is_host_name(std::string(63, 'a')));
  CHECK(tcp_endpoint("10.0.0.7", 1) == "tcp://10.0.0.7:1");
  CHECK(tcp_endpoint("fd00::1", 65535) == "tcp://[fd00::1]:65535");
}

TEST_CASE("endpoints are those that ZeroMQ can connect to") {
  for (const auto* each : {"tcp://10.0.0.7:7401", "tcp://[::1]:1", "tcp://a.example:65535"})
    CHECK(is_tcp_endpoint(each));
  for (const auto* each : {"", "tcp://", "tcp://a", "tcp://a:", "tcp://a:0", "tcp://a:65536", "tcp://a:1 ",
         "tcp://:1", "tcp://::1:1", "tcp://[a]:1", "tcp://[]:1", "ipc://a:1", "tcp://*:1", "10.0.0.7:1"})
    CHECK_FALSE(is_tcp_endpoint(each));
}
