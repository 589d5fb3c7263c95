#include "services/daemon/cache_survey.hpp"

#include "messages/actor_error.hpp"

#include <caf/actor_system.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <caf/typed_response_promise.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
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

/// Pins that were made on workers, under numbers of the survey's own.
struct pin_book {
  using clock = std::chrono::steady_clock;
  struct entry {
    clock::time_point until;
    std::vector<std::pair<cache_tiers_actor, std::uint64_t>> pins;
  };
  std::uint64_t last = 0;
  std::map<std::uint64_t, entry> entries;

  void forget_old() {
    std::erase_if(entries, [now = clock::now()](const auto& one) { return one.second.until <= now; });
  }
};

/// A pin that is being made on several workers.
struct pinning {
  caf::typed_response_promise<letter<schema::CachePinned>> promise;
  std::size_t open = 0;
  std::uint32_t blocks = 0;
  pin_book::entry made;
  error refusal{errc::not_found, "no worker has a block of these tokens", {}, {}};

  void ended(pin_book& book) {
    if (--open > 0)
      return;
    if (made.pins.empty()) {
      promise.deliver(to_caf_error(refusal));
      return;
    }
    const auto number = ++book.last;
    book.entries.emplace(number, std::move(made));
    promise.deliver(letter<schema::CachePinned>::make([&](schema::CachePinned::Builder b) {
      b.setPin(number);
      b.setBlocks(blocks);
    }));
  }
};

/// Each worker pins what it has; one that has nothing is no failure while another one has something.
caf::result<letter<schema::CachePinned>> pin_on_all(self_pointer self, const std::shared_ptr<pin_book>& book,
  std::vector<cache_tiers_actor> workers, const survey_limits& limits, const letter<schema::CachePin>& mail) {
  workers.resize(std::min(workers.size(), limits.workers));
  if (workers.empty())
    return to_caf_error({errc::unavailable, "no worker is there", {}, {}});
  book->forget_old();
  auto asked = std::make_shared<pinning>();
  asked->promise = self->make_response_promise<letter<schema::CachePinned>>();
  asked->open = workers.size();
  asked->made.until = pin_book::clock::now() + std::chrono::seconds(mail.read().getSeconds());
  for (const auto& worker : workers)
    self->request(worker, limits.probe, mail)
      .then(
        [=](const letter<schema::CachePinned>& one) {
          asked->made.pins.emplace_back(worker, one.read().getPin());
          asked->blocks = std::max(asked->blocks, one.read().getBlocks());
          asked->ended(*book);
        },
        [=](const caf::error& why) {
          if (auto failure = from_caf_error(why); failure.code != errc::not_found)
            asked->refusal = std::move(failure);
          asked->ended(*book);
        });
  return asked->promise;
}

void unpin_on_all(self_pointer self, pin_book& book, schema::CacheUnpin::Reader ask) {
  const auto found = book.entries.find(ask.getPin());
  if (found == book.entries.end())
    return;
  for (const auto& [worker, pin] : found->second.pins)
    self->send(worker, letter<schema::CacheUnpin>::make([&, number = pin](schema::CacheUnpin::Builder b) {
      b.setTenant(ask.getTenant());
      b.setPin(number);
    }));
  book.entries.erase(found);
}

cache_tiers_actor::behavior_type cache_survey(
  self_pointer self, const std::function<std::vector<cache_tiers_actor>()>& workers, survey_limits limits) {
  const auto book = std::make_shared<pin_book>();
  return {
    [=](const letter<schema::CacheProbe>& mail) {
      return ask_all(self, workers(), limits.workers, limits.probe, mail);
    },
    [=](const letter<schema::CacheSuspend>& mail) {
      return ask_all(self, workers(), limits.workers, limits.suspend, mail);
    },
    [=](const letter<schema::CachePin>& mail) { return pin_on_all(self, book, workers(), limits, mail); },
    [=](const letter<schema::CacheUnpin>& mail) { unpin_on_all(self, *book, mail.read()); },
  };
}

} // namespace

cache_tiers_actor spawn_cache_survey(
  caf::actor_system& system, std::function<std::vector<cache_tiers_actor>()> workers, survey_limits limits) {
  return system.spawn(cache_survey, std::move(workers), limits);
}

} // namespace godwit
