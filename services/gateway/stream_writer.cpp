#include "services/gateway/stream_writer.hpp"

#include "services/api/sse.hpp"

namespace godwit {

void stream_writer::begin() {
  if (begun_)
    return;
  begun_ = true;
  // Proxies must pass events on as they come, and keep none.
  exchange_.begin(
    200, {{"Content-Type", "text/event-stream"}, {"Cache-Control", "no-store"}, {"X-Accel-Buffering", "no"}});
}

bool stream_writer::pump() {
  if (!begun_)
    return false;
  if (auto bytes = outbox_.next()) {
    quiet_ = {};
    exchange_.write(std::move(*bytes), written_);
  }
  if (!closing_ || !outbox_.idle())
    return false;
  exchange_.end();
  return true;
}

void stream_writer::written() {
  if (outbox_.writing())
    outbox_.written();
}

void stream_writer::abandon(std::string bytes) {
  if (!begun_ || closing_ || !outbox_.idle())
    return;
  closing_ = true;
  exchange_.write(std::move(bytes), [](bool) {});
  exchange_.end();
}

void stream_writer::pass(std::chrono::milliseconds time, std::chrono::milliseconds heartbeat) {
  quiet_ += time;
  if (begun_ && outbox_.idle() && quiet_ >= heartbeat)
    outbox_.add(sse::heartbeat());
}

} // namespace godwit
