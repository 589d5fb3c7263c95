// Bytes from a socket as HTTP requests, in pieces as a network would cut them: the parser with the server's
// limits, then the server's own rules and the target parser.
#include "messages/check.hpp"
#include "services/http/detail/beast_request.hpp"

#include <boost/asio/buffer.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace {

using namespace godwit::http;
namespace beast = boost::beast;

/// Feeds the parser until the request is done. @returns how many bytes it took; 0 if it was refused
std::size_t read_request(std::string_view bytes, std::size_t piece, const server_options& options) {
  detail::request_parser parser;
  detail::set_limits(parser, options);
  beast::error_code ec;
  std::size_t used = 0;
  std::size_t given = 0;
  bool head = false;
  while (!parser.is_done()) {
    given = std::min(bytes.size(), given + piece);
    used += parser.put(boost::asio::buffer(bytes.data() + used, given - used), ec);
    if (ec == beast::http::error::need_more && given < bytes.size())
      continue;
    if (!ec && used == bytes.size() && !parser.is_done())
      parser.put_eof(ec); // the client says no more
    if (ec) {
      const auto why = detail::refusal_of(ec, bytes.substr(used));
      GODWIT_CHECK(why.status >= 400 && why.status < 600);
      return 0;
    }
    if (!head && parser.is_header_done()) {
      head = true;
      const auto taken = detail::take_head(parser);
      if (!taken) {
        GODWIT_CHECK(taken.error().status >= 400 && taken.error().status < 600);
        return 0;
      }
      GODWIT_CHECK(taken->path.starts_with('/'));
      GODWIT_CHECK(taken->path.find('\0') == std::string::npos);
      GODWIT_CHECK(taken->query.size() <= max_query_parameters);
      parser.eager(true);
    }
    GODWIT_CHECK(parser.get().body().size() <= options.body_bytes);
  }
  GODWIT_CHECK(used <= bytes.size());
  return used;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1)
    return 0;
  server_options options;
  options.head_bytes = 512;
  options.body_bytes = 256;
  const std::size_t piece = data[0] % 64 + 1U;
  std::string_view bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  (void)parse_target(bytes.substr(0, bytes.find('\n')));
  while (!bytes.empty()) {
    const auto used = read_request(bytes, piece, options);
    if (used == 0)
      break;
    bytes.remove_prefix(used);
  }
  return 0;
}
