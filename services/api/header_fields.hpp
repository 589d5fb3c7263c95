#pragma once

#include "messages/ids.hpp"
#include "messages/result.hpp"
#include "services/http/exchange.hpp"

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

namespace godwit {

/// What the headers and the query of a request say, checked. Errors name the header or parameter in `param`.

/// `X-Tenant-ID`: 1 to 64 letters, digits, '.', '_' and '-'; "default" if absent.
result<tenant_id> tenant_of(const http::request& request);

/// `Idempotency-Key`: 1 to 255 visible ASCII characters; empty if absent.
result<std::string> idempotency_key_of(const http::request& request);

/// `X-Session-ID`; nothing if absent. @returns `not_found` if it has not the form of a session's id
result<std::optional<session_id>> bound_session_of(const http::request& request);

/// True for "ses_" and 32 lower-case hexadecimal digits.
bool has_session_form(std::string_view text);

/// True if `Content-Type` is application/json, with or without parameters.
bool is_json(const http::request& request);

/// True if `Content-Encoding` says that the body is not what was meant, but packed in some way.
bool is_coded(const http::request& request);

/// True if `Accept` lists text/event-stream.
bool wants_events(const http::request& request);

/// Checks that a request has no query parameter but these.
result<void> check_parameters(const http::request& request, std::initializer_list<std::string_view> known);

/// Which part of a session's events a client wants.
struct events_query {
  std::string after;                ///< an event's id; empty is from the beginning
  std::string after_name = "after"; ///< where the client said so, for errors
  bool snapshot = false;
  bool follow = true; ///< stay for events to come
};

/// `?after=`, over which `Last-Event-ID` wins, `?snapshot=1` and `?follow=0`. Whether the id exists is for
/// the session to say.
result<events_query> events_query_of(const http::request& request);

/// A page of a list.
struct page_query {
  std::uint32_t limit = 20;
  std::string after; ///< a session's id; empty for the start
};

/// `?limit=`, 1 to 100, and `?after=`.
result<page_query> page_query_of(const http::request& request);

} // namespace godwit
