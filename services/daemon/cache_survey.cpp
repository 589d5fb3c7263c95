#include "services/daemon/cache_survey.hpp"

#include "messages/actor_error.hpp"

#include <caf/actor_system.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <caf/typed_response_promise.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

namespace godwit {

namespace {

using holdings = letter<schema::CacheHoldings>;
using self_pointer = cache_tiers_actor::pointer;

/// What has been answered so far.
struct survey {
  caf::typed_response_promise<holdings> promise;
  std::size_t open = 0;
  std::size_t answers = 0;
  std::uint32_t device = 0;
  std::uint32_t host = 0;
  std::uint32_t disk = 0;

  void add(schema::CacheHoldings::Reader one) {
    ++answers;
    device = std::max(device, one.getDevice());
    host = std::max(host, one.getHost());
    disk = std::max(disk, one.getDisk());
  }
  /// @param why of the last one, if it has not answered
  void ended(const caf::error& why) {
    if (--open > 0)
      return;
    if (answers == 0)
      promise.deliver(to_caf_error(from_caf_error(why)));
    else
      promise.deliver(holdings::make([&](schema::CacheHoldings::Builder b) {
        b.setDevice(device);
        b.setHost(host);
        b.setDisk(disk);
      }));
  }
};

template <class Question>
caf::result<holdings> ask_all(self_pointer self, std::vector<cache_tiers_actor> workers, std::size_t most,
  std::chrono::milliseconds patience, const Question& question) {
  workers.resize(std::min(workers.size(), most));
  if (workers.empty())
    return to_caf_error({errc::unavailable, "no worker is there", {}, {}});
  auto asked = std::make_shared<survey>();
  asked->promise = self->make_response_promise<holdings>();
  asked->open = workers.size();
  for (const auto& worker : workers)
    self->request(worker, patience, question)
      .then(
        [asked](const holdings& one) {
          asked->add(one.read());
          asked->ended({});
        },
        [asked](const caf::error& why) { asked->ended(why); });
  return asked->promise;
}

cache_tiers_actor::behavior_type cache_survey(
  self_pointer self, const std::function<std::vector<cache_tiers_actor>()>& workers, survey_limits limits) {
  return {
    [=](const letter<schema::CacheProbe>& mail) {
      return ask_all(self, workers(), limits.workers, limits.probe, mail);
    },
    [=](const letter<schema::CacheSuspend>& mail) {
      return ask_all(self, workers(), limits.workers, limits.suspend, mail);
    },
  };
}

} // namespace

cache_tiers_actor spawn_cache_survey(
  caf::actor_system& system, std::function<std::vector<cache_tiers_actor>()> workers, survey_limits limits) {
  return system.spawn(cache_survey, std::move(workers), limits);
}

} // namespace godwit
