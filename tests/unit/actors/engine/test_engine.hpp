#pragma once

#include "actors/engine/engine.hpp"
#include "messages/actor_error.hpp"
#include "tests/unit/actors/device/fake_model.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/scheduler/test_coordinator.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <map>
#include <memory>
#include <optional>
#include <random>
#include <vector>

namespace godwit::test {

/// A request as tests write it.
struct ask {
  request_id request = 0;
  std::vector<token_id> tokens = {};
  std::uint32_t prompt_length = 0; ///< 0: all of the tokens
  std::uint32_t max_tokens = 20;
  float temperature = 1;
  std::uint64_t seed = 0;
  std::uint32_t credit = 1000;
  std::int32_t priority = 0;
  std::uint64_t group = 0;
  std::string tenant = "default";
  std::string model = "fake";
  std::vector<token_id> stops = {};
  bool ignore_end = true;

  std::uint32_t prompt() const {
    return prompt_length > 0 ? prompt_length : static_cast<std::uint32_t>(tokens.size());
  }

  letter<schema::GenerateRequest> mail() const {
    return letter<schema::GenerateRequest>::make([&](schema::GenerateRequest::Builder b) {
      b.setRequest(request);
      b.setTenant(tenant);
      b.setModel(model);
      write_ids(b.initTokens(static_cast<unsigned>(tokens.size())), tokens);
      b.setPromptLength(prompt());
      b.setMaxTokens(max_tokens);
      b.initSampling().setTemperature(temperature);
      b.getSampling().setSeed(seed);
      write_ids(b.initStopTokens(static_cast<unsigned>(stops.size())), stops);
      b.setIgnoreEnd(ignore_end);
      b.setCredit(credit);
      b.setPriority(priority);
      b.setGroup(group);
    });
  }

  /// What every schedule has to answer.
  std::vector<token_id> answer(std::uint32_t longest) const {
    sampling_settings sampling;
    sampling.temperature = temperature;
    sampling.seed = seed;
    return answer_alone(tokens, prompt(), sampling, max_tokens, longest, ignore_end);
  }
};

/// What a consumer got.
struct received {
  std::vector<token_id> tokens;
  std::vector<position_t> positions;
  unsigned finals = 0;
  bool after_final = false; ///< something came behind the last batch
  schema::FinishReason finish = schema::FinishReason::NONE;
  errc code{};
  std::uint32_t prompt_tokens = 0;
  std::uint32_t cached_tokens = 0;
  std::uint32_t cached_host = 0;
  std::uint32_t cached_disk = 0;
};
using inbox = std::map<request_id, received>;

inline void take(inbox& box, schema::TokenBatch::Reader batch) {
  auto& mine = box[batch.getRequest()];
  mine.after_final = mine.after_final || mine.finals > 0;
  auto position = batch.getPosition();
  for (const auto token : batch.getTokens()) {
    mine.tokens.push_back(token.getToken());
    mine.positions.push_back(position++);
  }
  if (batch.getFinish() == schema::FinishReason::NONE)
    return;
  ++mine.finals;
  mine.finish = batch.getFinish();
  mine.code = static_cast<errc>(batch.getErrorCode());
  mine.prompt_tokens = batch.getPromptTokens();
  mine.cached_tokens = batch.getCachedTokens();
  mine.cached_host = batch.getCachedHost();
  mine.cached_disk = batch.getCachedDisk();
}

struct deterministic_config : caf::actor_system_config {
  deterministic_config() { set("scheduler.policy", caf::atom("testing")); }
};

/// An engine on CAF's test scheduler: nothing runs unless a test says so, and in the order that it says.
class test_engine {
 public:
  explicit test_engine(engine_options options = {}, model_shape shape = fake_model::small_shape())
    : test_engine(std::move(options), std::move(shape), std::make_shared<fake_model::log>()) {}

  test_engine(engine_options options, model_shape shape, const std::shared_ptr<fake_model::log>& noted)
    : test_engine(std::move(options), std::make_unique<fake_model>(std::move(shape), noted), noted) {}

  /// Over another model.
  test_engine(engine_options options, std::unique_ptr<model> model,
    std::shared_ptr<fake_model::log> noted = std::make_shared<fake_model::log>())
    : system(config), scheduler(dynamic_cast<caf::scheduler::test_coordinator&>(system.scheduler())),
      log(std::move(noted)) {
    options.detached = false;
    model_card card;
    card.id = "fake";
    card.context = model->shape().context;
    card.text = std::make_shared<fake_text>();
    longest = std::min(card.context, (options.kv_tokens + page_tokens - 1) / page_tokens * page_tokens);
    auto made = spawn_engine(system, std::move(model), card, options);
    GODWIT_CHECK(made.has_value());
    all = *made;
    sink = spawn_sink();
    settle();
  }

  ~test_engine() {
    caf::anon_send(all.router, stop_atom::value);
    caf::anon_send_exit(sink, caf::exit_reason::user_shutdown);
    all = engine();
    sink = nullptr;
    settle();
  }

  generation_sink_actor spawn_sink() {
    return system.spawn([this](generation_sink_actor::pointer) -> generation_sink_actor::behavior_type {
      return {[this](const letter<schema::TokenBatch>& mail) { take(box, mail.read()); }};
    });
  }

  /// Runs until nothing is to be done.
  void settle() {
    while (scheduler.has_job())
      scheduler.run_once();
  }

  /// One job, chosen by the dice.
  void run_any(std::mt19937& dice) {
    if (!scheduler.has_job())
      return;
    auto& jobs = scheduler.jobs;
    const auto pick = std::uniform_int_distribution<std::size_t>(0, jobs.size() - 1)(dice);
    std::swap(jobs.front(), jobs[pick]);
    scheduler.run_once();
  }

  void post(const ask& what) { post(what, sink); }
  void post(const ask& what, const generation_sink_actor& to) { caf::anon_send(all.router, what.mail(), to); }

  /// Asks and waits for the router's answer. @returns the refusal, if it is one
  std::optional<error> request(const ask& what) {
    std::optional<error> refusal;
    bool answered = false;
    caf::scoped_actor self{system};
    auto handle = self->request(all.router, std::chrono::seconds(5), what.mail(), sink);
    settle();
    handle.receive([&](const letter<schema::GenerateAccepted>&) { answered = true; },
      [&](const caf::error& failure) { refusal = from_caf_error(failure); });
    GODWIT_CHECK(answered || refusal);
    return refusal;
  }

  void grant(request_id request, std::uint32_t tokens) {
    caf::anon_send(all.router, letter<schema::CreditGrant>::make([&](schema::CreditGrant::Builder b) {
      b.setRequest(request);
      b.setTokens(tokens);
    }));
  }

  void cancel(std::vector<request_id> requests, schema::EndCause cause = schema::EndCause::CANCELLED,
    std::uint64_t group = 0) {
    caf::anon_send(all.router, letter<schema::CancelRequest>::make([&](schema::CancelRequest::Builder b) {
      write_keys(b.initRequests(static_cast<unsigned>(requests.size())), requests);
      b.setCause(cause);
      b.setGroup(group);
    }));
  }

  /// Has the cache give up all that nobody uses. @returns blocks
  std::uint32_t evict_all() {
    std::uint32_t freed = 0;
    caf::scoped_actor self{system};
    auto handle = self->request(all.cache, std::chrono::seconds(5),
      letter<schema::CacheEvict>::make([&](schema::CacheEvict::Builder b) { b.setBlocks(all.kv_blocks); }));
    settle();
    handle.receive([&](const letter<schema::CacheEvicted>& mail) { freed = mail.read().getBlocks(); },
      [](const caf::error&) { GODWIT_CHECK(false); });
    return freed;
  }

  /// Moves a text to the lowest tier. @returns what the tiers have then
  letter<schema::CacheHoldings> suspend(const std::vector<token_id>& tokens) {
    letter<schema::CacheHoldings> out;
    caf::scoped_actor self{system};
    auto handle = self->request(all.cache, std::chrono::seconds(5),
      letter<schema::CacheSuspend>::make([&](schema::CacheSuspend::Builder b) {
        b.setTenant("default");
        write_ids(b.initTokens(static_cast<unsigned>(tokens.size())), tokens);
      }));
    settle();
    handle.receive([&](const letter<schema::CacheHoldings>& mail) { out = mail; },
      [](const caf::error&) { GODWIT_CHECK(false); });
    return out;
  }

  /// Blocks that neither a sequence nor the cache holds, and those that only the cache does.
  std::uint64_t reclaimable() const { return all.counters->free_blocks + all.counters->cached_blocks; }

  deterministic_config config;
  caf::actor_system system;
  caf::scheduler::test_coordinator& scheduler;
  std::shared_ptr<fake_model::log> log;
  std::uint32_t longest = 0;
  engine all;
  generation_sink_actor sink;
  inbox box;
};

/// A prompt whose tokens nobody else has.
inline std::vector<token_id> prompt_of(std::size_t length, std::uint32_t salt) {
  std::mt19937 dice(salt);
  std::vector<token_id> tokens(length);
  for (auto& token : tokens)
    token = 1 + static_cast<token_id>(dice() % 96);
  return tokens;
}

} // namespace godwit::test
