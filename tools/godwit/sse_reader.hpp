#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace godwit::cli {

/// One server-sent event.
struct sse_event {
  std::string id;   ///< the last id seen, also if this event had none (as the standard says)
  std::string type; ///< "message" if the event had none
  std::string data; ///< lines joined by '\n'
};

/// Parses a stream of server-sent events as it arrives, cut anywhere.
/// Source: the WHATWG standard, "Interpreting an event stream".
class sse_reader {
 public:
  explicit sse_reader(std::function<void(const sse_event&)> on_event) : on_event_(std::move(on_event)) {}

  /// Takes the next bytes. @returns false if a line is over the limit of 16 MiB: the stream is not one of
  /// ours
  bool feed(std::string_view bytes);

 private:
  void take_line(std::string_view line);

  std::function<void(const sse_event&)> on_event_;
  std::string line_;
  bool after_cr_ = false;
  std::string id_;
  std::string type_;
  std::string data_;
  bool has_data_ = false;
};

} // namespace godwit::cli
