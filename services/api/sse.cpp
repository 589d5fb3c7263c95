#include "services/api/sse.hpp"

namespace godwit::sse {

namespace {

/// A line break ends a field; JSON has none outside of strings, and in strings it is escaped.
void append_field(std::string& out, std::string_view name, std::string_view value) {
  out.append(name).append(": ");
  for (const char c : value)
    out += c == '\n' || c == '\r' ? ' ' : c;
  out += '\n';
}

} // namespace

std::string data(std::string_view json) {
  std::string out;
  append_field(out, "data", json);
  out += '\n';
  return out;
}

std::string event(std::string_view id, std::string_view type, std::string_view json) {
  std::string out;
  if (!id.empty())
    append_field(out, "id", id);
  append_field(out, "event", type);
  append_field(out, "data", json);
  out += '\n';
  return out;
}

std::string retry(std::uint32_t milliseconds) {
  return "retry: " + std::to_string(milliseconds) + "\n\n";
}

std::string heartbeat() {
  return ": alive\n\n";
}

} // namespace godwit::sse
