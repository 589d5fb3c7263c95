// Many sessions on real threads: what the thread sanitizer is to see.

#include "actors/directory/directory.hpp"
#include "actors/session/session_records.hpp"
#include "messages/actor_error.hpp"
#include "messages/text.hpp"
#include "tests/support/journal_over_memory.hpp"
#include "tests/support/toy_generation.hpp"
#include "tests/support/toy_tokenizer.hpp"
#include "tests/unit/actors/directory/fake_peers.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <catch2/catch.hpp>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

using namespace godwit;

namespace {

using end_atom = caf::atom_constant<caf::atom("end")>;
constexpr std::uint32_t answer_length = 40;

/// Writes in a thread of its own, as real journals do.
class threaded_journal final : public journal_over_memory {
 public:
  void append(append_request request, appended done) override {
    const std::lock_guard lock(mutex_);
    waiting_.push_back({std::move(request), std::move(done)});
    wake_.notify_one();
  }
  ~threaded_journal() override {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_one();
    thread_.join();
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      wake_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
      if (waiting_.empty())
        return;
      auto batch = std::exchange(waiting_, {});
      lock.unlock();
      for (auto& [request, done] : batch)
        inner.append(std::move(request), std::move(done));
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<std::pair<append_request, appended>> waiting_;
  bool stopping_ = false;
  std::thread thread_{[this] { work(); }};
};

/// A journal that answers nothing about sessions while it is silent: whoever reads waits, and what is claimed
/// waits without anybody's thread, as in engines with a queue.
class silent_journal final : public journal_over_memory {
 public:
  result<journal_head> head(const session_id& session) override {
    wait();
    return inner.head(session);
  }
  result<std::vector<placed_record>> read(
    const session_id& session, sequence_number from, std::size_t limit) override {
    wait();
    return inner.read(session, from, limit);
  }
  result<journal_head> claim(const session_id& session, epoch_t expected, const node_name& owner,
    const journal_record& claimed) override {
    wait();
    return inner.claim(session, expected, owner, claimed);
  }
  void begin_claim(const session_id& session, epoch_t expected, const node_name& owner,
    const journal_record& claimed, claimed_head done) override {
    const std::lock_guard lock(mutex_);
    claims_.emplace_back([this, session, expected, owner, claimed, done = std::move(done)] {
      done(inner.claim(session, expected, owner, claimed));
    });
    changed_.notify_all();
  }

  void silence(bool on) {
    const std::lock_guard lock(mutex_);
    silent_ = on;
    changed_.notify_all();
  }
  /// @returns whether so many readers wait, or so many claims
  bool wait_for(std::size_t readers, std::size_t claims, std::chrono::seconds patience) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, patience, [&] { return readers_ >= readers && claims_.size() >= claims; });
  }
  void let_claims() {
    std::unique_lock lock(mutex_);
    const auto claims = std::exchange(claims_, {});
    lock.unlock();
    for (const auto& one : claims)
      one();
  }

 private:
  void wait() {
    std::unique_lock lock(mutex_);
    ++readers_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return !silent_; });
    --readers_;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool silent_ = false;
  std::size_t readers_ = 0;
  std::vector<std::function<void()>> claims_;
};

/// A worker that generates as far as its credit goes.
router_actor::behavior_type eager_router(router_actor::pointer self) {
  struct generation : toy_generation {
    generation_sink_actor sink;
  };
  auto all = std::make_shared<std::map<request_id, generation>>();
  const auto work = [self, all](request_id request) {
    if (const auto found = all->find(request); found != all->end())
      while (const auto step = found->second.go_on(1))
        self->send(found->second.sink, toy_batch(request, *step));
  };
  return {
    [all, work](const letter<schema::GenerateRequest>& mail, const generation_sink_actor& sink) {
      const auto request = mail.read().getRequest();
      (*all)[request] = {toy_generation(mail.read()), sink};
      work(request);
      return letter<schema::GenerateAccepted>();
    },
    [all, work](const letter<schema::CreditGrant>& mail) {
      if (const auto found = all->find(mail.read().getRequest()); found != all->end())
        found->second.credit += mail.read().getTokens();
      work(mail.read().getRequest());
    },
    [all](const letter<schema::CancelRequest>& mail) {
      for (const auto request : mail.read().getRequests())
        all->erase(request);
    },
    [](const letter<schema::RouteExplainRequest>&) { return letter<schema::GenerateAccepted>(); },
    [](status_atom) { return letter<schema::ActorStatus>(); },
    [](drain_atom) { return letter<schema::Drained>(); },
    [self, all](stop_atom) {
      all->clear();
      self->quit();
    },
  };
}

/// Reads one turn's stream with little credit and tells at the end how often it ended and how many tokens
/// came.
event_sink_actor::behavior_type reader(
  event_sink_actor::pointer self, const session_actor& session, const caf::actor& parent) {
  auto tokens = std::make_shared<std::size_t>(0);
  return {
    [self, session, parent, tokens](const letter<schema::EventBatch>& mail) {
      const auto batch = mail.read();
      for (const auto event : batch.getEvents()) {
        const auto data = text_of(event.getData());
        if (text_of(event.getType()) != "token")
          continue;
        const auto begin = data.find("\"tokens\":[") + 10;
        const auto list = data.substr(begin, data.find(']', begin) - begin);
        if (!list.empty())
          *tokens += 1 + static_cast<std::size_t>(std::count(list.begin(), list.end(), ','));
      }
      if (batch.getEnded()) {
        caf::anon_send(parent, end_atom::value, static_cast<std::uint64_t>(*tokens));
        self->quit();
        return;
      }
      self->send(session, letter<schema::EventCredit>::make([&](auto b) {
        b.setSubscription(batch.getSubscription());
        b.setEvents(batch.getEvents().size());
      }));
    },
  };
}

} // namespace

TEST_CASE("sessions on many threads answer as each would alone") {
  constexpr int sessions = 12;
  constexpr int turns = 3;
  constexpr auto patience = std::chrono::seconds(60);
  std::atomic<request_id> requests{0};
  std::atomic<std::uint64_t> randoms{0};
  caf::actor_system_config settings;
  settings.set("scheduler.max-threads", 4U);
  caf::actor_system system(settings);
  directory_config config;
  config.sessions.records = std::make_shared<threaded_journal>();
  config.sessions.model = {"toy", "toy-1", 4'000, 0, std::make_shared<toy_text>()};
  config.sessions.node = node_name("node");
  config.sessions.incarnation = "1";
  config.sessions.time = system_time();
  config.sessions.next_request = [&] { return ++requests; };
  config.sessions.random = [&] { return ++randoms * 0x9e3779b97f4a7c15U; };
  config.sessions.limits.token_credit = 5;
  config.sessions.tokenizer = system.spawn(toy_tokenizer, std::make_shared<const toy_text>());
  config.sessions.router = system.spawn(eager_router);
  const auto tokenizer = config.sessions.tokenizer;
  const auto router = config.sessions.router;
  config.limits.tick = std::chrono::milliseconds(20);
  config.limits.idle_after = std::chrono::milliseconds(30); // passivation in between
  const auto directory = spawn_directory(system, std::move(config));
  {
    caf::scoped_actor self(system);
    const auto fail_on = [](const caf::error& why) { FAIL(from_caf_error(why).message); };
    const auto locate = [&](const std::string& id) {
      session_actor session;
      self
        ->request(directory, patience, letter<schema::LocateRequest>::make([&](auto b) {
          b.setSession(text_view(id));
          b.setTenant("t");
        }))
        .receive([&](const session_actor& found) { session = found; }, fail_on);
      return session;
    };
    std::vector<std::string> ids;
    for (int i = 0; i < sessions; ++i)
      self
        ->request(directory, patience, letter<schema::SessionSettings>::make([&](auto b) {
          b.setTenant("t");
          b.initSampling().setSeed(static_cast<std::uint64_t>(i));
          b.setMaxTokens(answer_length);
        }))
        .receive(
          [&](const letter<schema::SessionInfo>& info) { ids.push_back(text_of(info.read().getId())); },
          fail_on);
    for (turn_number turn = 1; turn <= turns; ++turn) {
      for (const auto& id : ids) {
        const auto session = locate(id);
        self
          ->request(
            session, patience, letter<schema::PostMessage>::make([](auto b) { b.setContent("Hello"); }))
          .receive([&](const letter<schema::MessageAccepted>& done) { CHECK(done.read().getTurn() == turn); },
            fail_on);
        const event_sink_actor sink = system.spawn(reader, session, caf::actor_cast<caf::actor>(self));
        self
          ->request(session, patience, letter<schema::SubscribeRequest>::make([&](auto b) {
            b.setCredit(3);
            b.setOnlyTurn(turn);
          }),
            sink)
          .receive([](const letter<schema::Subscribed>&) {}, fail_on);
      }
      for (int i = 0; i < sessions; ++i) {
        bool came = false;
        self->receive(
          [&](end_atom, std::uint64_t tokens) {
            came = true;
            CHECK(tokens > 0);
            CHECK(tokens <= answer_length);
          },
          caf::after(patience) >> [] {});
        REQUIRE(came);
      }
    }
    // The first turn of each is what the model gives for its prompt.
    for (const auto& id : ids) {
      const auto session = locate(id);
      self->request(session, patience, info_atom::value)
        .receive(
          [&](const letter<schema::SessionInfo>& info) {
            CHECK(info.read().getTurns() == turns);
            CHECK(text_of(info.read().getStatus()) == "idle");
          },
          fail_on);
    }
    self->request(directory, patience, drain_atom::value)
      .receive(
        [](const letter<schema::Drained>& drained) { CHECK(drained.read().getRemaining() == 0); }, fail_on);
  }
  caf::anon_send(directory, stop_atom::value);
  caf::anon_send(tokenizer, stop_atom::value);
  caf::anon_send(router, stop_atom::value);
}

TEST_CASE("three directories on threads of their own serve one journal, also when one of them ends") {
  constexpr int sessions = 12;
  constexpr auto patience = std::chrono::seconds(60);
  std::atomic<request_id> requests{0};
  std::atomic<std::uint64_t> randoms{0};
  caf::actor_system_config settings;
  settings.set("scheduler.max-threads", 4U);
  caf::actor_system system(settings);
  session_config shared;
  shared.records = std::make_shared<threaded_journal>();
  shared.model = {"toy", "toy-1", 4'000, 0, std::make_shared<toy_text>()};
  shared.time = system_time();
  shared.next_request = [&] { return ++requests; };
  shared.random = [&] { return ++randoms * 0x9e3779b97f4a7c15U; };
  shared.limits.token_credit = 5;
  shared.tokenizer = system.spawn(toy_tokenizer, std::make_shared<const toy_text>());
  shared.router = system.spawn(eager_router);
  std::vector<node_name> names;
  std::vector<std::shared_ptr<fake_peers>> peers;
  std::vector<directory_actor> directories;
  for (const auto* name : {"a", "b", "c"}) {
    names.emplace_back(name);
    peers.push_back(std::make_shared<fake_peers>(names.back()));
    directory_config config;
    config.sessions = shared;
    config.sessions.node = names.back();
    config.sessions.incarnation = name;
    config.limits.tick = std::chrono::milliseconds(20);
    config.limits.idle_after = std::chrono::milliseconds(50);
    config.limits.recheck = std::chrono::milliseconds(20);
    config.peers = peers.back();
    directories.push_back(spawn_directory(system, std::move(config)));
  }
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t k = 0; k < 3; ++k)
      if (i != k)
        peers[i]->up(names[k], directories[k]);
  {
    caf::scoped_actor self(system);
    const auto fail_on = [](const caf::error& why) { FAIL(from_caf_error(why).message); };
    const auto locate = [&](std::size_t at, const std::string& id) {
      session_actor session;
      self
        ->request(directories[at], patience, letter<schema::LocateRequest>::make([&](auto b) {
          b.setSession(text_view(id));
          b.setTenant("t");
        }))
        .receive([&](const session_actor& found) { session = found; }, fail_on);
      return session;
    };
    // A session may just be going when it was found: the next try finds where to.
    const auto post = [&](std::size_t at, const std::string& id, const std::string& key) {
      for (int tries = 0; tries < 1'000; ++tries) {
        bool accepted = false;
        self
          ->request(locate(at, id), patience, letter<schema::PostMessage>::make([&](auto b) {
            b.setContent("Hello");
            b.setIdempotencyKey(text_view(key));
          }))
          .receive(
            [&](const letter<schema::MessageAccepted>&) { accepted = true; }, [](const caf::error&) {});
        if (accepted)
          return;
      }
      FAIL("a message was not taken");
    };
    const auto turns_at_rest = [&](std::size_t at, const std::string& id) {
      std::uint32_t turns = 0;
      self->request(locate(at, id), patience, info_atom::value)
        .receive(
          [&](const letter<schema::SessionInfo>& info) {
            if (text_of(info.read().getStatus()) == "idle")
              turns = info.read().getTurns();
          },
          [](const caf::error&) {});
      return turns;
    };
    std::vector<std::string> ids;
    for (std::size_t i = 0; i < sessions; ++i)
      self
        ->request(directories[i % 3], patience, letter<schema::SessionSettings>::make([&](auto b) {
          b.setTenant("t");
          b.initSampling().setSeed(i);
          b.setMaxTokens(answer_length);
        }))
        .receive(
          [&](const letter<schema::SessionInfo>& info) { ids.push_back(text_of(info.read().getId())); },
          fail_on);
    for (std::size_t i = 0; i < sessions; ++i)
      post((i + 1) % 3, ids[i], "first");
    for (const auto& lost : {1, 2})
      peers[static_cast<std::size_t>(lost)]->down(names[0]);
    self->send(directories[0], stop_atom::value);
    for (std::size_t i = 0; i < sessions; ++i)
      post(1 + i % 2, ids[i], "second");
    const auto until = std::chrono::steady_clock::now() + patience;
    for (const auto& id : ids) {
      while (turns_at_rest(1, id) != 2 && std::chrono::steady_clock::now() < until) {
      }
      CHECK(turns_at_rest(2, id) == 2);
    }
  }
  for (const auto& one : peers)
    for (const auto& name : names)
      one->down(name);
  for (const auto& one : directories)
    caf::anon_send(one, stop_atom::value);
  caf::anon_send(shared.tokenizer, stop_atom::value);
  caf::anon_send(shared.router, stop_atom::value);
}

TEST_CASE("sixteen sessions that wait for a silent journal keep no other actor waiting") {
  constexpr std::size_t sessions = 16;
  constexpr auto patience = std::chrono::seconds(60);
  caf::actor_system_config settings;
  settings.set("scheduler.max-threads", 2U);
  caf::actor_system system(settings);
  std::atomic<request_id> requests{0};
  const auto records = std::make_shared<silent_journal>();
  directory_config config;
  config.sessions.records = records;
  config.sessions.model = {"toy", "toy-1", 4'000, 0, std::make_shared<toy_text>()};
  config.sessions.node = node_name("a");
  config.sessions.incarnation = "1";
  config.sessions.time = system_time();
  config.sessions.next_request = [&] { return ++requests; };
  config.sessions.tokenizer = system.spawn(toy_tokenizer, std::make_shared<const toy_text>());
  config.sessions.router = system.spawn(eager_router);
  const auto tokenizer = config.sessions.tokenizer;
  const auto router = config.sessions.router;
  const auto peers = std::make_shared<fake_peers>(config.sessions.node);
  config.peers = peers;
  config.limits.settle = std::chrono::milliseconds(0); // the other node is known to be gone
  // Turns that ran on a node that is lost.
  const auto time = system_time()->wall_ms();
  const session_owner other{node_name("b"), "1", "toy-1"};
  std::vector<session_id> ids;
  for (std::size_t i = 0; i < sessions; ++i) {
    ids.push_back(new_session_id([i] { return 77 + i; }));
    const auto wanted = letter<schema::SessionSettings>::make([&](auto b) {
      b.setTenant("t");
      b.initSampling().setSeed(i);
      b.setMaxTokens(answer_length);
    });
    const auto post = letter<schema::PostMessage>::make([](auto b) { b.setContent("Hello"); });
    REQUIRE(records->open(ids.back(), tenant_id("t"), other.node,
      {opened_record(wanted.read(), "toy", "toy-1", time), claimed_record(other, 1, time),
        accepted_record(1, post.read(), time)},
      true));
  }
  records->silence(true);
  const auto directory = spawn_directory(system, std::move(config));
  {
    caf::scoped_actor self(system);
    const auto others_answer = [&] {
      bool answered = false;
      self->request(router, std::chrono::seconds(20), status_atom::value)
        .receive([&](const letter<schema::ActorStatus>&) { answered = true; }, [](const caf::error&) {});
      return answered;
    };
    const auto owned = [&] {
      std::size_t count = 0;
      for (const auto& id : ids)
        if (const auto head = records->inner.head(id); head && head->owner.value == "a" && !head->running)
          ++count;
      return count;
    };
    // The journals cannot be read.
    CHECK(records->wait_for(2, 0, patience));
    CHECK(others_answer());
    // They can, and all are claimed at once, but nothing is written.
    records->silence(false);
    CHECK(records->wait_for(0, sessions, patience));
    CHECK(others_answer());
    CHECK(owned() == 0);
    // It writes again: every turn is gone on with.
    const auto until = std::chrono::steady_clock::now() + patience;
    while (owned() < sessions && std::chrono::steady_clock::now() < until) {
      records->let_claims();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    CHECK(owned() == sessions);
  }
  caf::anon_send(directory, stop_atom::value);
  caf::anon_send(tokenizer, stop_atom::value);
  caf::anon_send(router, stop_atom::value);
}
