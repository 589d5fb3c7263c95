#pragma once

#include "messages/error.hpp"
#include "messages/ids.hpp"
#include "messages/trace_context.hpp"
#include "services/api/routes.hpp"
#include "services/gateway/gateway.hpp"
#include "services/gateway/live_actors.hpp"
#include "services/http/exchange.hpp"

#include <caf/error.hpp>

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>

namespace godwit {

/// What all calls of a gateway share.
struct gateway_context {
  gateway_config config;
  std::size_t longest_token = 1; ///< bytes that one token stands for at most
  std::atomic<bool> draining = false;
  live_actors live;
};

/// One request on its way through the gateway: who asks, for what, and how to answer. Copies share the
/// exchange; when the last one goes without an answer the client gets 500.
class call {
 public:
  call(std::shared_ptr<gateway_context> context, std::shared_ptr<http::exchange> exchange, route_match route)
    : context_(std::move(context)), exchange_(std::move(exchange)), route_(std::move(route)) {}

  const gateway_config& config() const { return context_->config; }
  const gateway_context& context() const { return *context_; }
  const http::request& request() const { return exchange_->request(); }
  http::exchange& exchange() const { return *exchange_; }
  const route_match& route() const { return route_; }
  /// The session that the path names.
  session_id session() const { return session_id(route_.id); }
  std::chrono::milliseconds timeout() const { return context_->config.options.request_timeout; }

  /// The actors of all calls that are under way.
  live_actors& live() const { return context_->live; }
  /// The same call without a way to answer, for those who outlive the answer.
  call without_exchange() const { return {context_, nullptr, route_}; }

  const tenant_id& tenant() const { return tenant_; }
  void tenant(tenant_id tenant) { tenant_ = std::move(tenant); }

  /// On whose behalf it is; unknown if the client said nothing.
  const trace_context& trace() const { return trace_; }
  void trace(const trace_context& trace) { trace_ = trace; }

  void answer(std::string json, int status = 200) const;
  void refuse(const error& failure) const;
  /// Tells the node's log of a failure whose words the client does not get.
  void report(const error& failure) const;

  /// A handler of failed requests that refuses.
  auto refusing() const {
    return [copy = *this](const caf::error& failure) { copy.refuse(failure); };
  }
  void refuse(const caf::error& failure) const;

 private:
  std::shared_ptr<gateway_context> context_;
  std::shared_ptr<http::exchange> exchange_;
  route_match route_;
  tenant_id tenant_;
  trace_context trace_;
};

} // namespace godwit
