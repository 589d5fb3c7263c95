#include "services/api/event_stream.hpp"

#include "services/api/sse.hpp"
#include "services/api/text_of.hpp"

#include <string_view>

namespace godwit {

namespace {

bool ends_turn(std::string_view type) {
  return type == "turn.completed" || type == "turn.failed" || type == "turn.cancelled";
}

bool shows_turn(std::string_view type) {
  return type == "message.accepted" || type == "turn.started" || type == "token";
}

} // namespace

event_stream::taken event_stream::take(schema::EventBatch::Reader batch) {
  taken out;
  for (const auto event : batch.getEvents()) {
    const auto type = text_of(event.getType());
    const auto data = event.getData();
    last_id_ = text_of(event.getId());
    begun_ = true;
    turn_running_ = !ends_turn(type) && (turn_running_ || shows_turn(type));
    out.bytes += sse::event(last_id_, type, {data.begin(), data.size()});
    ++out.events;
  }
  if (batch.getErrorCode() != 0)
    out.failure = error{static_cast<errc>(batch.getErrorCode()), text_of(batch.getErrorMessage()), {}, {}};
  out.ended = batch.getEnded() || out.failure;
  return out;
}

} // namespace godwit
