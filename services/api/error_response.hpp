#pragma once

#include "messages/error_status.hpp"
#include "services/http/exchange.hpp"

#include <chrono>
#include <string>

namespace godwit {

/// `{"error":{"type","code","message","param"?}}` as it also stands in a stream.
std::string error_json(const error& failure);

/// The whole answer to a refused request; 503 and 529 say when to try again.
http::response error_response(const error& failure, std::chrono::seconds retry_after);

/// The error for events that are not kept any more, with where the client can go on: `oldest`, the id of the
/// first event that is kept (null if that is not known), and `snapshot`, the address of the whole state.
std::string gone_json(const error& failure, const std::string& session, const std::string& oldest);

/// 200 with a JSON body, or another status.
http::response json_response(std::string body, int status = 200);

} // namespace godwit
