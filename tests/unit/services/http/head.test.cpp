#include "services/http/head.hpp"

#include "services/http/error_response.hpp"

#include <catch2/catch.hpp>

using namespace godwit::http;

TEST_CASE("the date is RFC 9110's example for its second") {
  CHECK(format_date(784111777) == "Sun, 06 Nov 1994 08:49:37 GMT");
  CHECK(format_date(0) == "Thu, 01 Jan 1970 00:00:00 GMT");
}

TEST_CASE("a head tells length, type and connection") {
  head_options options;
  options.length = 5;
  options.now = 784111777;
  CHECK(format_head(200, {{"Content-Type", "text/plain"}}, options)
        == "HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Type: text/plain\r\n"
           "Content-Length: 5\r\n\r\n");
  options.body = framing::chunked;
  options.keep_alive = false;
  CHECK(format_head(529, {}, options)
        == "HTTP/1.1 529 Overloaded\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
           "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n");
}

TEST_CASE("a value cannot start a field of its own") {
  const auto head = format_head(200, {{"X-Echo", "a\r\nSet-Cookie: b\n\x01"}}, {});
  CHECK(head.find("X-Echo: a  Set-Cookie: b  \r\n") != std::string::npos);
}

TEST_CASE("the handler does not decide about framing") {
  const auto head = format_head(200, {{"content-LENGTH", "7"}, {"Transfer-Encoding", "gzip"}}, {});
  CHECK(head.find("Content-Length: 0\r\n") != std::string::npos);
  CHECK(head.find(": 7") == std::string::npos);
  CHECK(head.find("gzip") == std::string::npos);
}

TEST_CASE("chunks carry their size in hexadecimal") {
  CHECK(format_chunk("hello") == "5\r\nhello\r\n");
  CHECK(format_chunk(std::string(256, 'x')) == "100\r\n" + std::string(256, 'x') + "\r\n");
}

TEST_CASE("an error body has the API's shape") {
  CHECK(error_response(404, "session_not_found", "no such session").body
        == R"({"error":{"type":"not_found_error","code":"session_not_found","message":"no such session"}})");
  CHECK(
    error_response(400, "invalid", "n \"is\" wrong", "n").body
    == R"({"error":{"type":"invalid_request_error","code":"invalid","message":"n \"is\" wrong","param":"n"}})");
  CHECK(error_response(400, "invalid", "\xff").body.find("\xef\xbf\xbd") != std::string::npos);
}
