#include "services/http/answer.hpp"

#include <catch2/catch.hpp>

using namespace godwit::http;

namespace {

struct one {
  explicit one(std::string method = "GET", answer_options options = {.queued = 1000}) {
    request ask;
    ask.method = std::move(method);
    ask.path = "/";
    state = std::make_shared<answer>(std::move(ask), options, [this] { ++wakes; });
    call = answer::handle(state);
  }

  /// Everything that would go to the socket now.
  std::string send() {
    std::string out;
    for (;;) {
      auto pieces = state->take(100);
      if (pieces.empty())
        return out;
      for (const auto& piece : pieces)
        out += piece.bytes;
      state->sent(std::move(pieces), true);
    }
  }

  int wakes = 0;
  std::shared_ptr<answer> state;
  std::shared_ptr<exchange> call;
};

std::string body_of(const std::string& message) {
  return message.substr(message.find("\r\n\r\n") + 4);
}

} // namespace

TEST_CASE("a whole answer is complete at once") {
  one x;
  CHECK_FALSE(x.state->complete());
  x.call->respond({200, {}, "hello"});
  CHECK(x.wakes == 1);
  const auto sent = x.send();
  CHECK(sent.find("Content-Length: 5\r\n") != std::string::npos);
  CHECK(body_of(sent) == "hello");
  CHECK(x.state->complete());
  CHECK(x.state->keep_alive());
}

TEST_CASE("the first answer counts") {
  one x;
  x.call->respond({404, {}, "a"});
  x.call->respond({200, {}, "b"});
  x.call->begin(200, {});
  CHECK(body_of(x.send()) == "a");
  CHECK(x.state->status() == 404);
}

TEST_CASE("a stream goes out in chunks, and empty writes do not end it") {
  one x;
  std::vector<bool> told;
  x.call->begin(200, {});
  x.call->write("abc", [&](bool ok) { told.push_back(ok); });
  x.call->write("", [&](bool ok) { told.push_back(ok); });
  CHECK(told.empty());
  CHECK(body_of(x.send()) == "3\r\nabc\r\n");
  CHECK(told == std::vector<bool>{true, true});
  CHECK_FALSE(x.state->complete());
  x.call->end();
  CHECK(x.send() == "0\r\n\r\n");
  CHECK(x.state->complete());
  x.call->write("late", [&](bool ok) { told.push_back(ok); });
  CHECK(told == std::vector<bool>{true, true, false});
}

TEST_CASE("a client of HTTP/1.0 gets a stream that ends with the connection") {
  one x("GET", {.http10 = true, .queued = 1000});
  x.call->begin(200, {});
  x.call->write("abc", {});
  x.call->end();
  const auto sent = x.send();
  CHECK(body_of(sent) == "abc");
  CHECK(sent.find("chunked") == std::string::npos);
  CHECK_FALSE(x.state->keep_alive());
}

TEST_CASE("HEAD gets the head alone") {
  one whole("HEAD");
  whole.call->respond({200, {}, "hello"});
  const auto sent = whole.send();
  CHECK(sent.find("Content-Length: 5\r\n") != std::string::npos);
  CHECK(body_of(sent).empty());

  one stream("HEAD");
  bool told = true;
  stream.call->begin(200, {});
  stream.call->write("abc", [&](bool ok) { told = ok; });
  CHECK_FALSE(told);
  CHECK(body_of(stream.send()).empty());
  CHECK(stream.state->complete());
}

TEST_CASE("an exchange that is dropped is answered 500") {
  one x;
  x.call.reset();
  CHECK(x.send().starts_with("HTTP/1.1 500 "));
  CHECK(x.state->complete());
}

TEST_CASE("an exchange whose client had left is not the node's failure when it is dropped") {
  one x;
  x.call->on_leave([] {});
  x.state->client_left();
  x.call.reset();
  CHECK(x.send().starts_with("HTTP/1.1 499 "));
  CHECK(x.state->complete());
}

TEST_CASE("a stream that is dropped ends without its last chunk") {
  one x;
  x.call->begin(200, {});
  x.call->write("abc", {});
  x.call.reset();
  CHECK(body_of(x.send()) == "3\r\nabc\r\n");
  CHECK(x.state->complete());
  CHECK_FALSE(x.state->keep_alive());
}

TEST_CASE("leaving is told once, and writes report it") {
  one x;
  int left = 0;
  std::vector<bool> told;
  x.call->on_leave([&] { ++left; });
  x.call->begin(200, {});
  x.call->write("abc", [&](bool ok) { told.push_back(ok); });
  x.state->client_left();
  x.state->closed(true);
  CHECK(left == 1);
  x.call->write("def", [&](bool ok) { told.push_back(ok); });
  CHECK(told == std::vector<bool>{false, false});
  CHECK(x.state->cut());
  x.call->on_leave([&] { ++left; });
  CHECK(left == 2);
}

TEST_CASE("a client that closed its side still gets a whole answer") {
  one x;
  int left = 0;
  x.call->on_leave([&] { ++left; });
  x.state->client_left();
  CHECK(left == 1);
  x.call->respond({200, {}, "hello"});
  CHECK(body_of(x.send()) == "hello");
}

TEST_CASE("leaving after the end of the answer is not leaving") {
  one x;
  int left = 0;
  x.call->on_leave([&] { ++left; });
  x.call->begin(200, {});
  x.call->end();
  x.state->client_left();
  x.state->closed(true);
  CHECK(left == 0);
}

TEST_CASE("a connection that the server closes is not a client that leaves") {
  one x;
  int left = 0;
  bool told = true;
  x.call->on_leave([&] { ++left; });
  x.call->begin(200, {});
  x.call->write("abc", [&](bool ok) { told = ok; });
  x.state->closed(false);
  CHECK(left == 0);
  CHECK_FALSE(told);
}

TEST_CASE("who piles up more than the limit loses the connection") {
  one x;
  int left = 0;
  int lost = 0;
  x.call->on_leave([&] { ++left; });
  x.call->begin(200, {});
  for (int i = 0; i < 20; ++i)
    x.call->write(std::string(90, 'x'), [&](bool ok) { lost += !ok; });
  CHECK(left == 1);
  CHECK(lost == 20);
  CHECK(x.state->cut());
}

TEST_CASE("what the socket has taken makes room") {
  one x;
  x.call->begin(200, {});
  for (int i = 0; i < 100; ++i) {
    x.call->write(std::string(500, 'x'), {});
    x.send();
  }
  CHECK_FALSE(x.state->cut());
}

TEST_CASE("a large body is not copied into the head") {
  one x;
  x.call->respond({200, {}, std::string(100'000, 'x')});
  CHECK(x.state->take(1).size() == 1);
  const auto body = x.state->take(1);
  REQUIRE(body.size() == 1);
  CHECK(body[0].bytes.size() == 100'000);
}
