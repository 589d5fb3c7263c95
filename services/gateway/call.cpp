#include "services/gateway/call.hpp"

#include "actors/trace/trace_scope.hpp"
#include "messages/actor_error.hpp"
#include "services/api/error_response.hpp"

namespace godwit {

void call::answer(std::string json, int status) const {
  exchange_->respond(json_response(std::move(json), status));
}

void call::refuse(const error& failure) const {
  report(failure);
  exchange_->respond(error_response(failure, config().options.retry_after));
}

void call::refuse(const caf::error& failure) const {
  refuse(from_caf_error(failure));
}

void call::report(const error& failure) const {
  if (!is_private(failure.code) || !config().report)
    return;
  const trace_scope scope(trace_); // for the log
  config().report(route_.pattern, failure);
}

} // namespace godwit
