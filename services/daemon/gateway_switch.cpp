#include "services/daemon/gateway_switch.hpp"

#include "services/http/error_response.hpp"

#include <utility>

namespace godwit {

void gateway_switch::handle(std::shared_ptr<http::exchange> call) {
  std::shared_ptr<gateway> now;
  {
    const std::lock_guard lock(mutex_);
    now = now_;
  }
  if (now)
    return now->handle(std::move(call));
  const auto& asked = call->request();
  if (asked.path == "/healthz" && (asked.method == "GET" || asked.method == "HEAD"))
    return call->respond({200, {{"Content-Type", "application/json"}}, R"({"status":"ok"})"});
  auto answer = http::error_response(503, "starting", "the node is starting: it loads its model");
  answer.fields.emplace_back("Retry-After", "1");
  call->respond(std::move(answer));
}

void gateway_switch::set(std::shared_ptr<gateway> next) {
  bool draining = false;
  {
    const std::lock_guard lock(mutex_);
    now_ = next;
    draining = draining_;
  }
  if (draining)
    next->drain();
}

void gateway_switch::clear() {
  std::shared_ptr<gateway> last;
  const std::lock_guard lock(mutex_);
  std::swap(last, now_);
}

void gateway_switch::drain() {
  std::shared_ptr<gateway> now;
  {
    const std::lock_guard lock(mutex_);
    draining_ = true;
    now = now_;
  }
  if (now)
    now->drain();
}

} // namespace godwit
