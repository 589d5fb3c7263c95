#include "actors/trace/trace_scope.hpp"

#include "messages/held_message.hpp"

#include <caf/abstract_actor.hpp>
#include <caf/message.hpp>

#include <array>
#include <cinttypes>
#include <cstdio>
#include <memory>
#include <utility>

namespace godwit {

namespace {

thread_local trace_context current;

/// A request on its way between two actors, with the trace for which it was sent.
class traced_request final : public held_message {
 public:
  traced_request(caf::mailbox_element& what, const trace_context& trace)
    : held_message(std::move(what.sender), what.mid, std::move(what.stages), what.move_content_to_message()),
      trace_(trace) {}

  const trace_context& trace() const { return trace_; }

 private:
  trace_context trace_;
};

} // namespace

std::atomic<std::size_t> trace_carrier::carriers{0};

const trace_context& current_trace() {
  return current;
}

trace_scope::trace_scope(const trace_context& trace) : before_(std::exchange(current, trace)) {}

trace_scope::~trace_scope() {
  current = before_;
}

std::string to_traceparent(const trace_context& trace) {
  std::array<char, 56> text{};
  std::snprintf(text.data(), text.size(), "00-%016" PRIx64 "%016" PRIx64 "-%016" PRIx64 "-%02x", trace.high,
    trace.low, trace.span, static_cast<unsigned>(trace.flags & 0xffU));
  return text.data();
}

trace_carrier::trace_carrier(const trace_context& carried) : carried_(carried) {
  if (carried_.known())
    carriers.fetch_add(1, std::memory_order_relaxed);
}

trace_carrier::~trace_carrier() {
  if (carried_.known())
    carriers.fetch_sub(1, std::memory_order_relaxed);
}

kept_trace keep_trace(const trace_context& trace) {
  if (!trace.known())
    return nullptr;
  const auto held = std::make_shared<const trace_carrier>(trace);
  return {held, &held->carried()};
}

trace_context trace_of(const caf::strong_actor_ptr& sender) {
  if (!sender || !trace_carrier::any())
    return {};
  const auto* const carrier = dynamic_cast<const trace_carrier*>(sender->get());
  return carrier == nullptr ? trace_context{} : carrier->carried();
}

trace_context trace_to_send(const caf::strong_actor_ptr& sender) {
  const auto own = trace_of(sender);
  return own.known() ? own : current;
}

caf::mailbox_element_ptr with_trace(caf::mailbox_element_ptr what) {
  if (!current.known() || !what->mid.is_request() || trace_of(what->sender).known())
    return what;
  return caf::mailbox_element_ptr{new traced_request(*what, current)};
}

trace_context trace_in(const caf::mailbox_element& what) {
  const auto own = trace_of(what.sender);
  if (own.known() || !what.mid.is_request())
    return own;
  const auto* const traced = dynamic_cast<const traced_request*>(&what);
  return traced == nullptr ? trace_context{} : traced->trace();
}

} // namespace godwit
