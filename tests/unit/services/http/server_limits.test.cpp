#include "services/http/server.hpp"

#include "tests/unit/services/http/raw_client.hpp"
#include "tests/unit/services/http/scripted_handler.hpp"

#include <httplib.h>
#include <nlohmann/json.hpp>

#include <random>
#include <thread>

using namespace godwit::http;
using namespace godwit::http::test;
using namespace std::chrono_literals;

namespace {

std::unique_ptr<server> serve(server_options options = {}) {
  auto started = server::start(std::move(options), std::make_shared<scripted_handler>([](auto call) {
    call->respond({200, {}, std::to_string(call->request().body.size())});
  }));
  REQUIRE(started);
  return std::move(*started);
}

/// Sends bytes on a connection of their own. @returns all that comes back
std::string ask(const server& to, std::string_view bytes) {
  raw_client client(to.port());
  client.send(bytes);
  return client.read_all();
}

void check_error(const std::string& message, int status) {
  INFO(message);
  REQUIRE(message.starts_with("HTTP/1.1 " + std::to_string(status) + " "));
  CHECK(message.find("Connection: close\r\n") != std::string::npos);
  const auto body = nlohmann::json::parse(message.substr(message.find("\r\n\r\n") + 4));
  CHECK(body.at("error").at("type").is_string());
  CHECK(body.at("error").at("code").is_string());
  CHECK(body.at("error").at("message").is_string());
}

bool serves(const server& one) {
  httplib::Client client("127.0.0.1", one.port());
  const auto got = client.Get("/");
  return got && got->status == 200;
}

} // namespace

TEST_CASE("a body at the limit is taken and one byte more is refused") {
  auto server = serve({.body_bytes = 1000});
  httplib::Client client("127.0.0.1", server->port());
  CHECK(client.Post("/", std::string(1000, 'x'), "text/plain")->body == "1000");
  const auto over = client.Post("/", std::string(1001, 'x'), "text/plain");
  REQUIRE(over);
  CHECK(over->status == 413);
}

TEST_CASE("a 33 MB body is refused in a way that its sender reads") {
  auto server = serve();
  httplib::Client client("127.0.0.1", server->port());
  const auto got = client.Post("/", std::string(33'000'000 + 1'000'000, 'x'), "application/json");
  REQUIRE(got);
  CHECK(got->status == 413);
  CHECK(nlohmann::json::parse(got->body).at("error").at("code") == "body_too_large");
  CHECK(serves(*server));
}

TEST_CASE("a chunked body over the limit is refused") {
  auto server = serve({.body_bytes = 10});
  const std::string head = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
  CHECK(ask(*server, head + "a\r\n0123456789\r\n0\r\n\r\nGET / HTTP/1.0\r\n\r\n").find("\r\n\r\n10")
        != std::string::npos);
  check_error(ask(*server, head + "a\r\n0123456789\r\n1\r\nx\r\n0\r\n\r\n"), 413);
}

TEST_CASE("requests that are not HTTP are refused") {
  auto server = serve();
  const std::string host = "Host: x\r\n";
  const std::vector<std::pair<std::string, int>> cases{
    {"\x16\x03\x01\x02\x00\x01\xfc\x03\x03 TLS\r\n\r\n", 400},
    {"GET\r\n\r\n", 400},
    {"GET / FTP/1.1\r\n\r\n", 400},
    {"GET  / HTTP/1.1\r\n" + host + "\r\n", 400},
    {"GET / HTTP/2.0\r\n" + host + "\r\n", 505},
    {"GET / HTTP/1.1\n" + host + "\r\n", 400},
    {"GET / HTTP/1.0\n\n", 400},
    {"BREW / HTTP/1.1\r\n" + host + "\r\n", 501},
    {"GET * HTTP/1.1\r\n" + host + "\r\n", 400},
    {"GET /%zz HTTP/1.1\r\n" + host + "\r\n", 400},
    {"GET /%00 HTTP/1.1\r\n" + host + "\r\n", 400},
    {"GET / HTTP/1.1\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\n" + host + host + "\r\n", 400},
    {"GET / HTTP/1.1\r\n" + host + "no colon\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\n" + host + "bad name: x\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\n" + host + "Content-Length: -1\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\n" + host + "Content-Length: 1\r\nContent-Length: 2\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\n" + host + "Content-Length: 99999999999999999999\r\n\r\n", 400},
    {"POST / HTTP/1.1\r\n" + host + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
    {"POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: gzip, chunked\r\n\r\n", 501},
    {"POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: gzip\r\n\r\n", 501},
    {"POST / HTTP/1.1\r\n" + host + "Expect: wonders\r\nContent-Length: 1\r\n\r\nx", 417},
    {"POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400},
    {"POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n", 400},
    {"POST / HTTP/1.1\r\n" + host + "Content-Length: 33000000000\r\n\r\n", 413},
    {"GET /" + std::string(20'000, 'a') + " HTTP/1.1\r\n" + host + "\r\n", 431},
    {"GET / HTTP/1.1\r\n" + host + "A: " + std::string(20'000, 'a') + "\r\n\r\n", 431},
  };
  for (const auto& [bytes, status] : cases) {
    INFO(bytes.substr(0, 100));
    check_error(ask(*server, bytes), status);
  }
  CHECK(serves(*server));
}

TEST_CASE("a request that ends too early is refused") {
  auto server = serve();
  raw_client client(server->port());
  client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nab");
  client.half_close();
  check_error(client.read_all(), 400);
}

TEST_CASE("random bytes never harm the server") {
  auto server = serve();
  std::mt19937 random(7); // NOLINT: the same bytes every time
  for (int i = 0; i < 100; ++i) {
    std::string bytes(random() % 300 + 1, '\0');
    for (auto& c : bytes)
      c = static_cast<char>(random());
    raw_client client(server->port());
    client.send(bytes);
    client.half_close();
    const auto got = client.read_all();
    CHECK((got.empty() || got.starts_with("HTTP/1.1 4") || got.starts_with("HTTP/1.1 5")));
  }
  CHECK(serves(*server));
}

TEST_CASE("a client that waits for permission to send its body gets it") {
  auto server = serve();
  raw_client client(server->port());
  client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n");
  CHECK(client.read_until("\r\n\r\n") == "HTTP/1.1 100 Continue\r\n\r\n");
  client.send("abc");
  CHECK(client.read_until("\r\n\r\n3").ends_with("3"));
}

TEST_CASE("a client that sends its head byte by byte is cut off") {
  auto server = serve({.head_time = 300ms});
  raw_client client(server->port());
  const std::string head = "GET / HTTP/1.1\r\nHost: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n\r\n";
  const auto began = std::chrono::steady_clock::now();
  std::string got;
  for (const char c : head) {
    if (!client.send(std::string(1, c)))
      break;
    if (client.closed_within(20ms))
      break;
  }
  CHECK(std::chrono::steady_clock::now() - began < 1200ms);
  CHECK(server->counts().timed_out == 1);
  CHECK(serves(*server));
}

TEST_CASE("a client that sends its body byte by byte is cut off, and a slow but fair one is not") {
  auto server = serve({.body_grace = 200ms, .body_bytes_per_second = 1000});
  raw_client trickle(server->port());
  trickle.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n");
  bool closed = false;
  for (int i = 0; i < 100 && !closed; ++i)
    closed = !trickle.send("x") || trickle.closed_within(20ms);
  CHECK(closed);

  raw_client fair(server->port());
  fair.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n");
  for (int i = 0; i < 10; ++i) {
    CHECK(fair.send(std::string(100, 'x')));
    std::this_thread::sleep_for(50ms);
  }
  CHECK(fair.read_until("1000").ends_with("1000"));
}

TEST_CASE("a client that does not read is cut off") {
  box<bool> lost;
  box<bool> left;
  server_options options;
  options.write_time = 300ms;
  auto server = server::start(options, std::make_shared<scripted_handler>([&](auto call) {
    call->on_leave([&] { left.put(true); });
    call->begin(200, {});
    call->write(std::string(16 << 20, 'x'), [&, call](bool ok) { lost.put(!ok); });
  }));
  REQUIRE(server);
  raw_client client((*server)->port(), 4096);
  client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  CHECK(lost.take());
  CHECK(left.take());
  CHECK((*server)->counts().timed_out == 1);
}

TEST_CASE("an idle connection is closed after its time") {
  auto server = serve({.idle_time = 100ms});
  raw_client client(server->port());
  client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  client.read_until("\r\n\r\n0");
  CHECK(client.closed_within(2s));
}

TEST_CASE("one connection too many is told to come back") {
  auto server = serve({.max_connections = 2});
  raw_client first(server->port());
  raw_client second(server->port());
  while (server->counts().open < 2)
    std::this_thread::sleep_for(1ms);
  const auto third = ask(*server, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  check_error(third, 503);
  CHECK(third.find("Retry-After: 1\r\n") != std::string::npos);
  CHECK(server->counts().turned_away == 1);
  first.close();
  while (server->counts().open > 1)
    std::this_thread::sleep_for(1ms);
  CHECK(serves(*server));
}

TEST_CASE("bodies of all connections together have a limit") {
  auto server = serve({.body_bytes_total = 1500, .linger_time = 100ms});
  raw_client first(server->port());
  first.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1001\r\n\r\n" + std::string(1000, 'x'));
  while (server->counts().body_bytes < 1000)
    std::this_thread::sleep_for(1ms);
  check_error(
    ask(*server, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n" + std::string(1000, 'x')), 503);
  first.send("x");
  CHECK(first.read_until("1001").ends_with("1001"));
  first.close();
  while (server->counts().body_bytes > 0)
    std::this_thread::sleep_for(1ms);
}

TEST_CASE("a thousand connections are served at once") {
  auto server = serve();
  std::vector<std::unique_ptr<raw_client>> clients;
  for (int i = 0; i < 1000; ++i)
    clients.push_back(std::make_unique<raw_client>(server->port()));
  for (int round = 0; round < 2; ++round) {
    for (const auto& client : clients)
      REQUIRE(client->send("GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
    for (const auto& client : clients)
      REQUIRE(client->read_until("\r\n\r\n0").ends_with("\r\n\r\n0"));
  }
  CHECK(server->counts().open == 1000);
}
