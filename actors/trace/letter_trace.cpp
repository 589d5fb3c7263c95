#include "actors/trace/letter_trace.hpp"

#include "actors/trace/letter_kinds.hpp"
#include "messages/text.hpp"

#include <caf/actor_control_block.hpp>
#include <caf/mailbox_element.hpp>
#include <caf/monitorable_actor.hpp>

#include <map>
#include <utility>

namespace godwit {

namespace {

std::string name_of(const caf::strong_actor_ptr& sender) {
  const auto* const known = sender ? dynamic_cast<const caf::monitorable_actor*>(sender->get()) : nullptr;
  return known != nullptr ? known->name() : "";
}

/// The traces that run, by their actors. A letter is seen where it arrives, so that whoever gets one has to
/// find the trace of its sender.
struct running_traces {
  using trace_pointer = std::shared_ptr<letter_trace>;

  std::mutex mutex;
  std::map<const caf::actor_control_block*, trace_pointer> all;

  trace_pointer of(const caf::actor_control_block* actor) {
    const auto found = actor != nullptr ? all.find(actor) : all.end();
    return found == all.end() ? nullptr : found->second;
  }
};

running_traces& running() {
  static running_traces traces;
  return traces;
}

} // namespace

std::atomic<std::size_t> letter_watch::traces_running{0};

letter_trace::letter_trace(std::string actor, std::size_t most, std::function<void()> full)
  : actor_(std::move(actor)), most_(most), full_(std::move(full)) {}

void letter_trace::note_came(const caf::mailbox_element& what) {
  add(what, name_of(what.sender), {});
}

void letter_trace::note_sent(const caf::mailbox_element& what, std::string to) {
  add(what, {}, std::move(to));
}

void letter_trace::add(const caf::mailbox_element& what, std::string from, std::string to) {
  const auto at = std::chrono::steady_clock::now() - begin_;
  auto kind = kind_of(what.content());
  seen one{std::chrono::duration_cast<std::chrono::microseconds>(at),
    what.mid.is_response()  ? "answer"
    : what.mid.is_request() ? "request"
                            : "letter",
    std::move(kind.types), kind.bytes, std::move(from), std::move(to)};
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
      list[i].setTo(text_view(seen_[i].to));
    }
    b.setMilliseconds(static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin_)
        .count()));
  });
}

void letter_watch::note_in_traces(const caf::mailbox_element& what) const {
  const auto* const me = watched();
  const auto* const sender = what.sender.get();
  running_traces::trace_pointer came;
  running_traces::trace_pointer sent;
  {
    auto& traces = running();
    const std::lock_guard lock(traces.mutex);
    came = traces.of(me);
    // What an actor tells itself is there once.
    sent = sender == me ? nullptr : traces.of(sender);
  }
  if (came)
    came->note_came(what);
  if (sent)
    sent->note_sent(what, watched_name());
}

bool traceable::begin_trace(std::shared_ptr<letter_trace> into) {
  auto& traces = running();
  const std::lock_guard lock(traces.mutex);
  if (!traces.all.try_emplace(watched(), std::move(into)).second)
    return false;
  ++traces_running;
  return true;
}

void traceable::end_trace() {
  auto& traces = running();
  const std::lock_guard lock(traces.mutex);
  if (traces.all.erase(watched()) != 0)
    --traces_running;
}

} // namespace godwit
