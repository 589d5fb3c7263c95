#include "services/http/head.hpp"

#include "messages/check.hpp"
#include "services/http/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace godwit::http {

namespace {

struct phrase {
  int status;
  std::string_view text;
};

constexpr std::array phrases{
  phrase{100, "Continue"},
  phrase{200, "OK"},
  phrase{201, "Created"},
  phrase{202, "Accepted"},
  phrase{204, "No Content"},
  phrase{304, "Not Modified"},
  phrase{307, "Temporary Redirect"},
  phrase{308, "Permanent Redirect"},
  phrase{400, "Bad Request"},
  phrase{401, "Unauthorized"},
  phrase{403, "Forbidden"},
  phrase{404, "Not Found"},
  phrase{405, "Method Not Allowed"},
  phrase{406, "Not Acceptable"},
  phrase{408, "Request Timeout"},
  phrase{409, "Conflict"},
  phrase{410, "Gone"},
  phrase{411, "Length Required"},
  phrase{413, "Content Too Large"},
  phrase{414, "URI Too Long"},
  phrase{415, "Unsupported Media Type"},
  phrase{417, "Expectation Failed"},
  phrase{421, "Misdirected Request"},
  phrase{422, "Unprocessable Content"},
  phrase{429, "Too Many Requests"},
  phrase{431, "Request Header Fields Too Large"},
  phrase{499, "Client Closed Request"},
  phrase{500, "Internal Server Error"},
  phrase{501, "Not Implemented"},
  phrase{503, "Service Unavailable"},
  phrase{504, "Gateway Timeout"},
  phrase{505, "HTTP Version Not Supported"},
  phrase{507, "Insufficient Storage"},
  phrase{529, "Overloaded"},
};

bool made_here(std::string_view name) {
  constexpr std::array<std::string_view, 5> names{
    "content-length", "transfer-encoding", "connection", "date", "keep-alive"};
  return std::any_of(names.begin(), names.end(), [&](auto own) { return same_token(own, name); });
}

void append_clean(std::string& out, std::string_view text) {
  for (const char c : text)
    out += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
}

} // namespace

std::string_view reason_phrase(int status) {
  const auto* found =
    std::find_if(phrases.begin(), phrases.end(), [&](const phrase& p) { return p.status == status; });
  return found == phrases.end() ? "Unknown" : found->text;
}

std::string format_date(std::time_t when) {
  constexpr std::array days{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr std::array months{
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  std::tm t{};
  gmtime_r(&when, &t);
  // Not strftime: its names follow the locale.
  return fmt::format("{}, {:02} {} {} {:02}:{:02}:{:02} GMT", days[static_cast<std::size_t>(t.tm_wday)],
    t.tm_mday, months[static_cast<std::size_t>(t.tm_mon)], t.tm_year + 1900, t.tm_hour, t.tm_min, t.tm_sec);
}

std::string format_head(int status, const headers& fields, const head_options& options) {
  GODWIT_CHECK(status >= 100 && status <= 999);
  std::string out =
    fmt::format("HTTP/1.1 {} {}\r\nDate: {}\r\n", status, reason_phrase(status), format_date(options.now));
  for (const auto& [name, value] : fields) {
    if (made_here(name))
      continue;
    append_clean(out, name);
    out += ": ";
    append_clean(out, value);
    out += "\r\n";
  }
  if (options.body == framing::length)
    out += fmt::format("Content-Length: {}\r\n", options.length);
  else if (options.body == framing::chunked)
    out += "Transfer-Encoding: chunked\r\n";
  if (!options.keep_alive || options.body == framing::close)
    out += "Connection: close\r\n";
  else if (options.http10)
    out += "Connection: keep-alive\r\n";
  out += "\r\n";
  return out;
}

std::string format_chunk(std::string_view bytes) {
  GODWIT_CHECK(!bytes.empty());
  return fmt::format("{:x}\r\n{}\r\n", bytes.size(), bytes);
}

} // namespace godwit::http
