#include "services/daemon/cache_survey.hpp"

#include "messages/actor_error.hpp"
#include "tests/unit/actors/node/scripted_part.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <array>

using namespace godwit;
using namespace godwit::test;

namespace {

/// What a worker's cache has in each tier; nothing: it does not answer.
using script = std::optional<std::array<std::uint32_t, 3>>;

class world : public still_system {
 public:
  explicit world(const std::vector<script>& caches) {
    for (const auto& one : caches)
      workers.push_back(spawn_cache(one));
    survey = spawn_cache_survey(system, [this] { return workers; });
  }
  ~world() {
    // Timers of requests would keep them.
    caf::anon_send_exit(survey, caf::exit_reason::user_shutdown);
    for (const auto& worker : workers)
      caf::anon_send_exit(worker, caf::exit_reason::user_shutdown);
    scheduler.run();
  }

  template <class Question>
  std::shared_ptr<std::optional<letter<schema::CacheHoldings>>> put(const Question& question) {
    return ask<letter<schema::CacheHoldings>>(survey, question);
  }

  int suspended = 0;
  std::vector<std::uint64_t> unpinned;
  std::vector<cache_tiers_actor> workers;
  cache_tiers_actor survey;

 private:
  cache_tiers_actor spawn_cache(const script& says) {
    return system.spawn([says, this](cache_tiers_actor::pointer self) -> cache_tiers_actor::behavior_type {
      const auto answer = [says, self]() -> caf::result<letter<schema::CacheHoldings>> {
        auto promise = self->make_response_promise<letter<schema::CacheHoldings>>();
        if (says)
          promise.deliver(letter<schema::CacheHoldings>::make([&](schema::CacheHoldings::Builder b) {
            b.setDevice((*says)[0]);
            b.setHost((*says)[1]);
            b.setDisk((*says)[2]);
          }));
        return promise;
      };
      return {
        [answer](const letter<schema::CacheProbe>&) { return answer(); },
        [answer, this](const letter<schema::CacheSuspend>&) {
          ++suspended;
          return answer();
        },
        // One pin a worker: its number and blocks are what the device has.
        [says](const letter<schema::CachePin>&) -> caf::result<letter<schema::CachePinned>> {
          if (!says || (*says)[0] == 0)
            return to_caf_error({errc::not_found, "nothing", {}, {}});
          return letter<schema::CachePinned>::make([&](schema::CachePinned::Builder b) {
            b.setPin((*says)[0]);
            b.setBlocks((*says)[0] / 16);
          });
        },
        [this](const letter<schema::CacheUnpin>& mail) { unpinned.push_back(mail.read().getPin()); },
      };
    });
  }
};

std::array<std::uint32_t, 3> of(const letter<schema::CacheHoldings>& mail) {
  return {mail.read().getDevice(), mail.read().getHost(), mail.read().getDisk()};
}

} // namespace

TEST_CASE("for each tier the worker counts that has most there") {
  world w({{{32, 0, 16}}, {{0, 64, 16}}, {{16, 16, 48}}});
  const auto answer = w.put(letter<schema::CacheProbe>());
  REQUIRE(answer->has_value());
  CHECK(of(**answer) == std::array<std::uint32_t, 3>{32, 64, 48});
}

TEST_CASE("a text is suspended on every worker") {
  world w({{{0, 0, 16}}, {{0, 0, 32}}});
  const auto answer = w.put(letter<schema::CacheSuspend>());
  REQUIRE(answer->has_value());
  CHECK(of(**answer) == std::array<std::uint32_t, 3>{0, 0, 32});
  CHECK(w.suspended == 2);
}

TEST_CASE("a worker that does not answer in time counts as one that has nothing") {
  world w({{{48, 0, 0}}, std::nullopt});
  const auto answer = w.put(letter<schema::CacheProbe>());
  CHECK_FALSE(answer->has_value());
  w.pass(1'001);
  REQUIRE(answer->has_value());
  CHECK(of(**answer) == std::array<std::uint32_t, 3>{48, 0, 0});
}

TEST_CASE("a pin holds on every worker that has something, and ends on each of them") {
  world w({{{32, 0, 0}}, {{0, 64, 0}}, {{48, 0, 0}}});
  const auto pinned = w.ask<letter<schema::CachePinned>>(
    w.survey, letter<schema::CachePin>::make([](schema::CachePin::Builder b) { b.setSeconds(60); }));
  REQUIRE(pinned->has_value());
  CHECK((**pinned).read().getBlocks() == 3);
  const auto number = (**pinned).read().getPin();
  const auto unpin = [&] {
    caf::anon_send(
      w.survey, letter<schema::CacheUnpin>::make([&](schema::CacheUnpin::Builder b) { b.setPin(number); }));
    w.scheduler.run();
    std::sort(w.unpinned.begin(), w.unpinned.end());
  };
  unpin();
  CHECK(w.unpinned == std::vector<std::uint64_t>{32, 48});
  unpin();
  CHECK(w.unpinned.size() == 2);
}

TEST_CASE("without workers, or when none answers, that is the answer") {
  const auto refusal = [](world& w, std::int64_t pass) {
    auto code = std::make_shared<std::optional<errc>>();
    w.system.spawn([=, survey = w.survey](caf::event_based_actor* self) {
      self->request(survey, std::chrono::seconds(100), letter<schema::CacheProbe>())
        .then([](const letter<schema::CacheHoldings>&) {},
          [code](const caf::error& why) { *code = from_caf_error(why).code; });
    });
    w.scheduler.run();
    w.pass(pass);
    return *code;
  };
  world none({});
  CHECK(refusal(none, 0) == errc::unavailable);
  world silent({std::nullopt, std::nullopt});
  CHECK(refusal(silent, 1'001) == errc::deadline);
}
