#pragma once

// From Beast's parser to our request: limits, refusals and the rules Beast leaves to its user. Included by
// the server's one translation unit and by the fuzz target, so that both run the same code.

#include "messages/result.hpp"
#include "services/http/exchange.hpp"
#include "services/http/server.hpp"
#include "services/http/target.hpp"
#include "services/http/text.hpp"

#include <boost/beast/core/buffers_range.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace godwit::http::detail {

/// A body kept in a string that grows with the bytes that arrive. Beast's own reserves what the client
/// announces.
struct growing_body {
  using value_type = std::string;

  class reader {
   public:
    template <bool is_request, class Fields>
    reader(boost::beast::http::header<is_request, Fields>&, value_type& body) : body_(body) {}

    void init(const boost::optional<std::uint64_t>&, boost::beast::error_code& ec) { ec = {}; }

    template <class Buffers>
    std::size_t put(const Buffers& buffers, boost::beast::error_code& ec) {
      ec = {};
      const auto before = body_.size();
      for (const auto part : boost::beast::buffers_range_ref(buffers))
        body_.append(static_cast<const char*>(part.data()), part.size());
      return body_.size() - before;
    }

    void finish(boost::beast::error_code& ec) { ec = {}; }

   private:
    value_type& body_;
  };
};

using request_parser = boost::beast::http::request_parser<growing_body>;

inline void set_limits(request_parser& parser, const server_options& options) {
  parser.header_limit(static_cast<std::uint32_t>(options.head_bytes));
  parser.body_limit(options.body_bytes);
}

/// Why a request is not taken.
struct refusal {
  int status;
  std::string_view code;
  std::string message;
};

/// A request line with a version of HTTP that is neither 1.0 nor 1.1. Beast says the same of a line that ends
/// in a bare line feed.
inline bool names_other_version(std::string_view line) {
  constexpr std::string_view name = " HTTP/";
  const auto found = line.find(name);
  if (found == std::string_view::npos)
    return false;
  const auto version = line.substr(found + name.size(), 3);
  return version != "1.0" && version != "1.1";
}

/// What a parser's error means for the client. @param line the start of what it sent
inline refusal refusal_of(const boost::beast::error_code& ec, std::string_view line) {
  using boost::beast::http::error;
  if (ec == error::header_limit || ec == error::buffer_overflow)
    return {431, "header_too_large", "the request line and header fields are over the size limit"};
  if (ec == error::body_limit)
    return {413, "body_too_large", "the request body is over the size limit"};
  if (ec == error::bad_version && names_other_version(line.substr(0, line.find('\n'))))
    return {505, "unsupported_version", "only HTTP/1.0 and HTTP/1.1 are spoken here"};
  if (ec == error::bad_chunk || ec == error::bad_chunk_extension)
    return {400, "malformed_body", "the chunked request body is malformed"};
  if (ec == error::partial_message)
    return {400, "incomplete_request", "the request ended before it was complete"};
  return {400, "malformed_request", "the request is not valid HTTP"};
}

inline std::string_view view(boost::beast::string_view text) {
  return {text.data(), text.size()};
}

/// Checks a head that has been parsed, and takes it over, without a body yet. Fields of a trailer never join
/// it.
inline tl::expected<request, refusal> take_head(const request_parser& parser) {
  namespace beast = boost::beast::http;
  const auto& message = parser.get();
  const auto refuse = [](int status, std::string_view code, std::string text) {
    return tl::unexpected<refusal>(refusal{status, code, std::move(text)});
  };
  if (message.method() == beast::verb::unknown)
    return refuse(501, "unknown_method", "the request method is not known");
  // Anything but plain "chunked" would leave the end of the body to guesswork, which is how requests are
  // smuggled.
  const auto coding = message.find(beast::field::transfer_encoding);
  if (coding != message.end()) {
    if (message.count(beast::field::transfer_encoding) > 1 || !same_token(view(coding->value()), "chunked"))
      return refuse(501, "unsupported_transfer_encoding", "the only transfer encoding taken is chunked");
    if (message.version() < 11)
      return refuse(400, "malformed_request", "HTTP/1.0 has no chunked bodies");
  }
  if (message.version() >= 11 && message.count(beast::field::host) != 1)
    return refuse(400, "malformed_request", "an HTTP/1.1 request needs one Host field");
  const auto expect = message.find(beast::field::expect);
  if (expect != message.end() && !same_token(view(expect->value()), "100-continue"))
    return refuse(417, "unsupported_expectation", "the only expectation met is 100-continue");

  auto target = parse_target(view(message.target()));
  if (!target)
    return refuse(400, "malformed_target", target.error().message);
  request out;
  out.method = std::string(view(message.method_string()));
  out.path = std::move(target->path);
  out.query = std::move(target->query);
  for (const auto& field : message)
    out.fields.emplace_back(view(field.name_string()), view(field.value()));
  return out;
}

} // namespace godwit::http::detail
