#pragma once

#include "services/gateway/gateway.hpp"
#include "services/http/exchange.hpp"

#include <memory>
#include <mutex>

namespace godwit {

/// What the HTTP server talks to: the gateway as soon as there is one, and the next one when the actors
/// behind it were restarted. Before the first, /healthz says that the process is alive, and everything else
/// is answered 503.
class gateway_switch final : public http::handler {
 public:
  void handle(std::shared_ptr<http::exchange> call) override;

  /// @param next drained if drain() was called before
  void set(std::shared_ptr<gateway> next);
  /// Lets go of the gateway: there will be none any more.
  void clear();
  /// Drains the gateway of now, and those to come.
  void drain();

 private:
  std::mutex mutex_;
  std::shared_ptr<gateway> now_;
  bool draining_ = false;
};

} // namespace godwit
