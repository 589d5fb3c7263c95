#include "services/api/header_fields.hpp"

#include "messages/reasons.hpp"
#include "services/api/field_reader.hpp"
#include "services/http/text.hpp"

#include <algorithm>
#include <charconv>

namespace godwit {

namespace {

bool is_visible(char c) {
  return c > ' ' && c < '\x7f';
}

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_'
         || c == '-';
}

template <class Predicate>
bool all_of(std::string_view text, std::size_t max_size, Predicate allowed) {
  return !text.empty() && text.size() <= max_size && std::all_of(text.begin(), text.end(), allowed);
}

/// A media type without its parameters and the space around it, in lower case.
std::string media_type(std::string_view text) {
  text = text.substr(0, text.find(';'));
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos)
    return {};
  text = text.substr(first, text.find_last_not_of(" \t") - first + 1);
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), http::lower);
  return out;
}

/// Which of two is meant is a guess, and a proxy in front may make another one.
bool twice(const http::headers& fields, std::string_view name) {
  const auto same = [&](const auto& field) { return http::same_token(field.first, name); };
  return std::count_if(fields.begin(), fields.end(), same) > 1;
}

tl::unexpected<error> invalid(std::string param, const std::string& what) {
  auto message = param + " " + what;
  return fail(errc::invalid_argument, std::move(message), std::move(param), "invalid_value");
}

} // namespace

result<tenant_id> tenant_of(const http::request& request) {
  const auto value = request.field("X-Tenant-ID");
  if (!value)
    return tenant_id("default");
  if (twice(request.fields, "X-Tenant-ID"))
    return invalid("X-Tenant-ID", "must stand once");
  if (!all_of(*value, 64, is_name_character))
    return invalid("X-Tenant-ID", "must be 1 to 64 letters, digits, dots, underscores and hyphens");
  return tenant_id(std::string(*value));
}

result<std::string> idempotency_key_of(const http::request& request) {
  const auto value = request.field("Idempotency-Key");
  if (!value)
    return std::string();
  if (twice(request.fields, "Idempotency-Key"))
    return invalid("Idempotency-Key", "must stand once");
  if (!all_of(*value, 255, is_visible))
    return invalid("Idempotency-Key", "must be 1 to 255 visible ASCII characters");
  return std::string(*value);
}

bool has_session_form(std::string_view text) {
  constexpr std::string_view prefix = "ses_";
  if (!text.starts_with(prefix) || text.size() != prefix.size() + 32)
    return false;
  text.remove_prefix(prefix.size());
  return std::all_of(
    text.begin(), text.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

result<std::optional<session_id>> bound_session_of(const http::request& request) {
  const auto value = request.field("X-Session-ID");
  if (!value)
    return std::optional<session_id>();
  if (!has_session_form(*value))
    return fail(
      errc::not_found, "there is no such session", "X-Session-ID", std::string(reasons::session_not_found));
  return std::optional(session_id(std::string(*value)));
}

bool is_json(const http::request& request) {
  const auto value = request.field("Content-Type");
  return value && media_type(*value) == "application/json";
}

bool is_coded(const http::request& request) {
  return std::any_of(request.fields.begin(), request.fields.end(), [](const auto& field) {
    const auto blank = field.second.find_first_not_of(" \t") == std::string::npos;
    return http::same_token(field.first, "Content-Encoding") && !blank
           && media_type(field.second) != "identity";
  });
}

bool wants_events(const http::request& request) {
  auto rest = request.field("Accept").value_or("");
  while (!rest.empty()) {
    const auto comma = rest.find(',');
    if (media_type(rest.substr(0, comma)) == "text/event-stream")
      return true;
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
  }
  return false;
}

result<void> check_parameters(const http::request& request, std::initializer_list<std::string_view> known) {
  for (const auto& [name, value] : request.query) {
    const auto shown = shown_key(name);
    if (std::find(known.begin(), known.end(), name) == known.end())
      return fail(
        errc::invalid_argument, shown + " is not a known query parameter", shown, "unknown_parameter");
    if (twice(request.query, name))
      return invalid(shown, "must stand once");
  }
  return {};
}

result<events_query> events_query_of(const http::request& request) {
  if (const auto known = check_parameters(request, {"after", "snapshot", "follow"}); !known)
    return fail(known);
  events_query out;
  for (const auto& [name, target] :
    {std::pair("snapshot", &events_query::snapshot), std::pair("follow", &events_query::follow)}) {
    const auto value = request.parameter(name);
    if (value && *value != "0" && *value != "1")
      return invalid(name, "must be 0 or 1");
    if (value)
      out.*target = *value == "1";
  }
  const auto header = request.field("Last-Event-ID");
  const auto after = header ? header : request.parameter("after");
  if (header)
    out.after_name = "Last-Event-ID";
  if (twice(request.fields, "Last-Event-ID"))
    return invalid("Last-Event-ID", "must stand once");
  if (after && !all_of(*after, 128, is_visible))
    return invalid(out.after_name, "must be the id of an event");
  out.after = after.value_or("");
  return out;
}

result<page_query> page_query_of(const http::request& request) {
  if (const auto known = check_parameters(request, {"limit", "after"}); !known)
    return fail(known);
  page_query out;
  if (const auto limit = request.parameter("limit")) {
    const auto* end = limit->data() + limit->size();
    const auto parsed = std::from_chars(limit->data(), end, out.limit);
    if (parsed.ec != std::errc() || parsed.ptr != end || out.limit < 1 || out.limit > 100)
      return invalid("limit", "must be a whole number of at least 1 and at most 100");
  }
  if (const auto after = request.parameter("after")) {
    if (!has_session_form(*after))
      return invalid("after", "must be the id of a session");
    out.after = *after;
  }
  return out;
}

} // namespace godwit
