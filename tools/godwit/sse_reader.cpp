#include "tools/godwit/sse_reader.hpp"

namespace godwit::cli {

namespace {
constexpr std::size_t max_line_bytes = std::size_t{16} << 20;
} // namespace

bool sse_reader::feed(std::string_view bytes) {
  for (const char byte : bytes) {
    if (after_cr_ && byte == '\n') {
      after_cr_ = false;
      continue;
    }
    after_cr_ = byte == '\r';
    if (byte == '\r' || byte == '\n') {
      take_line(line_);
      line_.clear();
    } else {
      line_ += byte;
      if (line_.size() > max_line_bytes)
        return false;
    }
  }
  return true;
}

void sse_reader::take_line(std::string_view line) {
  if (line.empty()) {
    if (has_data_)
      on_event_({id_, type_.empty() ? "message" : type_, data_});
    type_.clear();
    data_.clear();
    has_data_ = false;
    return;
  }
  const auto colon = line.find(':');
  const auto field = line.substr(0, colon);
  auto value = colon == std::string_view::npos ? std::string_view{} : line.substr(colon + 1);
  if (value.starts_with(' '))
    value.remove_prefix(1);
  if (field == "data") {
    if (has_data_)
      data_ += '\n';
    data_ += value;
    has_data_ = true;
  } else if (field == "event") {
    type_ = value;
  } else if (field == "id") {
    id_ = value;
  }
  // A line that begins with a colon is a comment (a heartbeat); unknown fields are ignored.
}

} // namespace godwit::cli
