#include "services/http/server.hpp"

#include "tests/unit/services/http/raw_client.hpp"
#include "tests/unit/services/http/scripted_handler.hpp"

#include <httplib.h>

#include <atomic>
#include <thread>

using namespace godwit;
using namespace godwit::http;
using namespace godwit::http::test;
using namespace std::chrono_literals;

namespace {

std::unique_ptr<server> serve(scripted_handler::script run, server_options options = {}) {
  auto started = server::start(std::move(options), std::make_shared<scripted_handler>(std::move(run)));
  REQUIRE(started);
  return std::move(*started);
}

void echo(const std::shared_ptr<exchange>& call) {
  const auto& ask = call->request();
  call->respond({200, {{"X-Path", ask.path}}, ask.method + " " + ask.path + " " + ask.body});
}

std::string body_of(const std::string& message) {
  return message.substr(message.find("\r\n\r\n") + 4);
}

} // namespace

TEST_CASE("a client gets answers over one connection") {
  auto server = serve(echo);
  httplib::Client client("127.0.0.1", server->port());
  client.set_keep_alive(true);
  for (int i = 0; i < 20; ++i) {
    const auto got = client.Post("/a%20b", std::to_string(i), "text/plain");
    REQUIRE(got);
    CHECK(got->body == "POST /a b " + std::to_string(i));
  }
  CHECK(server->counts().accepted == 1);
}

TEST_CASE("pipelined requests are answered in their order") {
  box<std::shared_ptr<exchange>> calls;
  auto server = serve([&](std::shared_ptr<exchange> call) { calls.put(std::move(call)); });
  raw_client client(server->port());
  client.send("GET /1 HTTP/1.1\r\nHost: x\r\n\r\nPOST /2 HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"
              "GET /3 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  for (const std::string path : {"/1", "/2", "/3"}) {
    const auto call = calls.take();
    CHECK(call->request().path == path);
    std::this_thread::sleep_for(5ms);
    CHECK(calls.empty());
    call->respond({200, {}, "<" + path + ">"});
  }
  const auto all = client.read_all();
  CHECK(all.find("</1>") < all.find("</2>"));
  CHECK(all.find("</2>") < all.find("</3>"));
  CHECK(all.ends_with("</3>"));
}

TEST_CASE("a stream arrives while it is written") {
  box<std::shared_ptr<exchange>> calls;
  auto server = serve([&](std::shared_ptr<exchange> call) { calls.put(std::move(call)); });
  raw_client client(server->port());
  client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  const auto call = calls.take();
  call->begin(200, {{"Content-Type", "text/event-stream"}});
  CHECK(client.read_until("\r\n\r\n").find("Transfer-Encoding: chunked") != std::string::npos);
  for (const std::string event : {"data: 1", "data: 2", "data: 3"}) {
    box<bool> written;
    call->write(event, [&](bool ok) { written.put(ok); });
    CHECK(written.take());
    CHECK(client.read_until(event + "\r\n") == "7\r\n" + event + "\r\n");
  }
  call->end();
  CHECK(client.read_until("0\r\n\r\n").ends_with("0\r\n\r\n"));
  client.send("GET /next HTTP/1.1\r\nHost: x\r\n\r\n");
  calls.take()->respond({200, {}, "again"});
  CHECK(client.read_until("again").ends_with("again"));
}

TEST_CASE("a client that leaves a silent stream is noticed at once") {
  box<bool> left;
  box<std::shared_ptr<exchange>> calls;
  auto server = serve([&](std::shared_ptr<exchange> call) {
    call->on_leave([&] { left.put(true); });
    call->begin(200, {});
    calls.put(std::move(call));
  });
  for (const auto how : {0, 1, 2}) {
    raw_client client(server->port());
    client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    const auto call = calls.take();
    client.read_until("\r\n\r\n");
    if (how == 0)
      client.close();
    else if (how == 1)
      client.reset();
    else
      client.half_close();
    CHECK(left.take());
    box<bool> written;
    call->write("too late", [&](bool ok) { written.put(ok); });
    CHECK_FALSE(written.take());
    bool at_once = false;
    call->on_leave([&] { at_once = true; });
    CHECK(at_once);
  }
}

TEST_CASE("a client that leaves before its answer is noticed") {
  box<bool> left;
  box<std::shared_ptr<exchange>> calls;
  auto server = serve([&](std::shared_ptr<exchange> call) {
    call->on_leave([&] { left.put(true); });
    calls.put(std::move(call));
  });
  raw_client client(server->port());
  client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  const auto call = calls.take();
  client.half_close();
  CHECK(left.take());
  call->respond({200, {}, "still heard"});
  CHECK(body_of(client.read_all()) == "still heard");
}

TEST_CASE("a slow reader holds its writer back, and memory stays bounded") {
  std::atomic<int> taken{0};
  std::atomic<bool> stop{false};
  box<std::shared_ptr<exchange>> calls;
  auto server = serve([&](std::shared_ptr<exchange> call) { calls.put(std::move(call)); });
  raw_client client(server->port(), 16 * 1024);
  client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  auto call = calls.take();
  call->begin(200, {});
  // One write under way at a time, 64 KiB each: without back-pressure this would run through all of them.
  std::function<void()> next = [&] {
    call->write(std::string(64 * 1024, 'x'), [&](bool ok) {
      if (ok && ++taken < 2000 && !stop)
        next();
    });
  };
  next();
  int before = -1;
  while (before != taken) {
    before = taken;
    std::this_thread::sleep_for(200ms);
  }
  CHECK(before < 100);
  std::size_t read = 0;
  while (read < std::size_t{20} << 20)
    read += client.read_at_most(1 << 16);
  CHECK(taken > before + 100);
  stop = true;
  client.close();
  server->stop(1s);
}

TEST_CASE("an exchange that is dropped or throws is answered 500") {
  auto server = serve([](const std::shared_ptr<exchange>& call) {
    if (call->request().path == "/throw")
      throw std::runtime_error("private");
  });
  httplib::Client client("127.0.0.1", server->port());
  for (const auto* path : {"/drop", "/throw"}) {
    const auto got = client.Get(path);
    REQUIRE(got);
    CHECK(got->status == 500);
    CHECK(got->body.find("private") == std::string::npos);
  }
}

TEST_CASE("an exchange may outlive its server") {
  box<std::shared_ptr<exchange>> calls;
  auto server = serve([&](std::shared_ptr<exchange> call) { calls.put(std::move(call)); });
  raw_client client(server->port());
  client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  auto call = calls.take();
  bool left = false;
  call->on_leave([&] { left = true; });
  CHECK(server->stop(0ms) == 1);
  server.reset();
  CHECK_FALSE(left);
  call->respond({200, {}, "to nobody"});
  call.reset();
}

TEST_CASE("stopping lets running exchanges end and closes idle ones") {
  box<std::shared_ptr<exchange>> calls;
  auto server = serve([&](std::shared_ptr<exchange> call) { calls.put(std::move(call)); });
  raw_client idle(server->port());
  raw_client busy(server->port());
  busy.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  auto call = calls.take();
  call->begin(200, {});
  server->stop_accepting();
  CHECK(idle.closed_within(2s));
  std::thread ending([&] {
    std::this_thread::sleep_for(50ms);
    call->write("last words", {});
    call->end();
  });
  CHECK(server->stop(10s) == 0);
  ending.join();
  const auto got = busy.read_all();
  CHECK(got.find("last words") != std::string::npos);
  CHECK(got.ends_with("0\r\n\r\n"));
}

TEST_CASE("a server stops under load") {
  for (int round = 0; round < 3; ++round) {
    std::atomic<bool> stop{false};
    std::atomic<int> answers{0};
    auto server = serve(echo, {.threads = 2});
    std::vector<std::thread> clients;
    for (int i = 0; i < 4; ++i)
      clients.emplace_back([&, port = server->port()] {
        httplib::Client client("127.0.0.1", port);
        client.set_keep_alive(true);
        client.set_connection_timeout(1s);
        while (!stop)
          if (client.Post("/", "x", "text/plain"))
            ++answers;
      });
    while (answers < 20)
      std::this_thread::sleep_for(1ms);
    CHECK(server->stop(5s) == 0);
    stop = true;
    for (auto& client : clients)
      client.join();
  }
}

TEST_CASE("answers are observed with their status and time") {
  box<std::pair<std::string, int>> seen;
  server_options options;
  options.observe = [&](const answered& what) {
    seen.put({std::string(what.method) + " " + std::string(what.path), what.status});
  };
  auto server = serve(echo, std::move(options));
  raw_client client(server->port());
  client.send("GET /a?b HTTP/1.1\r\nHost: x\r\n\r\nrubbish\r\n\r\n");
  client.read_all();
  CHECK(seen.take() == std::pair<std::string, int>("GET /a", 200));
  CHECK(seen.take() == std::pair<std::string, int>(" ", 400));
}

TEST_CASE("a port in use, or an address that is none, is refused in words") {
  auto server = serve(echo);
  server_options options;
  options.port = server->port();
  const auto second = server::start(options, std::make_shared<scripted_handler>(echo));
  REQUIRE_FALSE(second);
  CHECK(second.error().code == errc::io);
  options.address = "not an address";
  CHECK(
    server::start(options, std::make_shared<scripted_handler>(echo)).error().code == errc::invalid_argument);
}
