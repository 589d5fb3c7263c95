#include "actors/trace/timeout_watch.hpp"

#include <caf/actor_control_block.hpp>
#include <caf/error.hpp>
#include <caf/sec.hpp>
#include <caf/type_erased_tuple.hpp>

#include <mutex>
#include <utility>
#include <vector>

namespace godwit {

namespace {

struct all_listeners {
  std::mutex mutex;
  std::vector<std::shared_ptr<const timeout_watch::told>> all;
};

all_listeners& known() {
  static all_listeners listeners;
  return listeners;
}

} // namespace

std::atomic<std::size_t> timeout_watch::listeners{0};

std::shared_ptr<void> timeout_watch::listen(told tell) {
  auto held = std::make_shared<const told>(std::move(tell));
  {
    const std::lock_guard lock(known().mutex);
    known().all.push_back(held);
  }
  ++listeners;
  return {nullptr, [held](std::nullptr_t) {
            --listeners;
            const std::lock_guard lock(known().mutex);
            std::erase(known().all, held);
          }};
}

void timeout_watch::look(const caf::actor_control_block& asker, const caf::mailbox_element& what) {
  const auto& content = what.content();
  if (!content.match_elements<caf::error>() || content.get_as<caf::error>(0) != caf::sec::request_timeout)
    return;
  std::vector<std::shared_ptr<const told>> listening;
  {
    const std::lock_guard lock(known().mutex);
    listening = known().all;
  }
  for (const auto& each : listening)
    (*each)(asker, what.mid.request_id());
}

} // namespace godwit
