#include "actors/trace/letter_trace.hpp"

#include "actors/trace/letter_kinds.hpp"
#include "messages/text.hpp"

#include <caf/mailbox_element.hpp>
#include <caf/monitorable_actor.hpp>

#include <utility>

namespace godwit {

namespace {

std::string name_of(const caf::strong_actor_ptr& sender) {
  const auto* const known = sender ? dynamic_cast<const caf::monitorable_actor*>(sender->get()) : nullptr;
  return known != nullptr ? known->name() : "";
}

} // namespace

letter_trace::letter_trace(std::string actor, std::size_t most, std::function<void()> full)
  : actor_(std::move(actor)), most_(most), full_(std::move(full)) {}

void letter_trace::note(const caf::mailbox_element& what) {
  const auto at = std::chrono::steady_clock::now() - begin_;
  auto kind = kind_of(what.content());
  seen one{std::chrono::duration_cast<std::chrono::microseconds>(at),
    what.mid.is_response()  ? "answer"
    : what.mid.is_request() ? "request"
                            : "letter",
    std::move(kind.types), kind.bytes, name_of(what.sender)};
  std::function<void()> told;
  {
    const std::lock_guard lock(mutex_);
    if (seen_.size() >= most_)
      return;
    seen_.push_back(std::move(one));
    if (seen_.size() == most_)
      told = std::exchange(full_, nullptr);
  }
  if (told)
    told();
}

letter<schema::Trace> letter_trace::report() const {
  const std::lock_guard lock(mutex_);
  return letter<schema::Trace>::make([&](schema::Trace::Builder b) {
    b.setActor(text_view(actor_));
    auto list = b.initLetters(static_cast<unsigned>(seen_.size()));
    for (unsigned i = 0; i < list.size(); ++i) {
      list[i].setMicroseconds(static_cast<std::uint64_t>(seen_[i].at.count()));
      list[i].setKind(seen_[i].kind);
      list[i].setTypes(text_view(seen_[i].types));
      list[i].setBytes(seen_[i].bytes);
      list[i].setFrom(text_view(seen_[i].from));
    }
    b.setMilliseconds(static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin_)
        .count()));
  });
}

bool traceable::begin_trace(std::shared_ptr<letter_trace> into) {
  const std::lock_guard lock(mutex_);
  if (trace_)
    return false;
  trace_ = std::move(into);
  on_ = true;
  return true;
}

void traceable::end_trace() {
  const std::lock_guard lock(mutex_);
  on_ = false;
  trace_.reset();
}

void traceable::note_in_trace(const caf::mailbox_element& what) {
  std::shared_ptr<letter_trace> trace;
  {
    const std::lock_guard lock(mutex_);
    trace = trace_;
  }
  if (trace)
    trace->note(what);
}

} // namespace godwit
