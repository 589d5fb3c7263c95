#include "services/link/actor_exchange.hpp"

#include "actors/tokenizer/actor.hpp"
#include "actors/trace/spawn_traced.hpp"
#include "kernels/gguf/writer.hpp"
#include "messages/actor_error.hpp"
#include "messages/catalogue.hpp"
#include "tests/support/byte_tokenizer.hpp"
#include "tests/unit/services/link/two_nodes.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/exit_reason.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <catch2/catch.hpp>

using namespace godwit;
using namespace godwit::link;
using namespace std::chrono_literals;

namespace {

struct fixture : two_nodes {};

tokenizer_actor spawn_words(caf::actor_system& system) {
  gguf::writer made;
  made.add("tokenizer.chat_template", "{{ messages[0].role }}<end>");
  const auto bytes = made.finish();
  return spawn_tokenizer(
    system, std::make_shared<const byte_tokenizer>(), *chat_template::load(**gguf::file::parse(bytes)));
}

letter<schema::EncodeRequest> words(const std::string& text) {
  return letter<schema::EncodeRequest>::make([&](schema::EncodeRequest::Builder b) {
    b.setText({reinterpret_cast<const capnp::byte*>(text.data()), text.size()});
    b.setSpecial(true);
  });
}

/// A worker as the router sees one: takes a sink, and sends it tokens.
using worker_actor = caf::typed_actor<caf::replies_to<letter<schema::GenerateRequest>,
                                        generation_sink_actor>::with<letter<schema::GenerateAccepted>>,
  caf::replies_to<info_atom>::with<tokenizer_actor>, caf::reacts_to<stop_atom>>;

struct worker_state {
  worker_state() = default; // no aggregate: CAF would make one of the actor's pointer
  generation_sink_actor sink;
  int down = 0;
};

worker_actor::behavior_type worker(
  worker_actor::stateful_pointer<worker_state> self, std::atomic<int>* downs) {
  self->set_down_handler([self, downs](const caf::down_msg&) {
    self->state.sink = nullptr;
    ++*downs;
  });
  return {
    [self](const letter<schema::GenerateRequest>& mail, const generation_sink_actor& sink) {
      self->monitor(sink);
      self->state.sink = sink;
      for (std::uint32_t i = 0; i < 10; ++i)
        self->send(sink, letter<schema::TokenBatch>::make([&](schema::TokenBatch::Builder b) {
          b.setRequest(mail.read().getRequest());
          b.setPosition(i);
        }));
      return letter<schema::GenerateAccepted>::make(
        [](schema::GenerateAccepted::Builder b) { b.setWorker("beta"); });
    },
    [self](info_atom) { return spawn_words(self->system()); },
    [self](stop_atom) {
      self->state.sink = nullptr;
      self->quit();
    },
  };
}

struct sink_seen {
  std::mutex mutex;
  std::vector<std::uint32_t> positions;
};

generation_sink_actor::behavior_type sink(
  generation_sink_actor::pointer self, std::shared_ptr<sink_seen> seen) {
  return {[self, seen](const letter<schema::TokenBatch>& mail) {
    const std::lock_guard lock(seen->mutex);
    seen->positions.push_back(mail.read().getPosition());
    if (mail.read().getRequest() == 99)
      self->quit();
  }};
}

/// What an actor that never answers has seen.
struct mute_seen {
  std::atomic<int> asked{0};
  std::mutex mutex;
  std::vector<errc> ends; ///< why those who asked waited no more
};

common_actor::behavior_type mute(common_actor::pointer self, std::shared_ptr<mute_seen> seen) {
  self->set_down_handler([seen](const caf::down_msg& down) {
    const std::lock_guard lock(seen->mutex);
    seen->ends.push_back(from_caf_error(down.reason).code);
  });
  const auto kept = std::make_shared<std::vector<caf::typed_response_promise<letter<schema::ActorStatus>>>>();
  return {
    [self, seen, kept](status_atom) {
      self->monitor(self->current_sender());
      kept->push_back(self->make_response_promise<letter<schema::ActorStatus>>());
      ++seen->asked;
      return kept->back();
    },
    [](drain_atom) { return letter<schema::Drained>(); },
    [self](stop_atom) { self->quit(); },
  };
}

/// Asks an actor for its status, and lives until it is stopped.
caf::actor spawn_asker(
  caf::actor_system& system, const common_actor& whom, std::chrono::milliseconds patience) {
  return spawn_traced(system, [whom, patience](caf::event_based_actor* self) -> caf::behavior {
    self->request(whom, patience, status_atom::value)
      .then([](const letter<schema::ActorStatus>&) {}, [](const caf::error&) {});
    return {[self](stop_atom) { self->quit(); }};
  });
}

/// Two nodes, one of which has an actor that never answers.
struct mute_fixture : two_nodes {
  std::shared_ptr<mute_seen> seen = std::make_shared<mute_seen>();
  common_actor there = beta.system->spawn(mute, seen);
  common_actor remote;

  mute_fixture() {
    beta.exchange->publish("part", there);
    remote = alpha.exchange->remote<common_actor>("beta", "part");
  }
  ~mute_fixture() { self->send(there, stop_atom::value); }

  std::vector<errc> ends() const {
    const std::lock_guard lock(seen->mutex);
    return seen->ends;
  }
  bool nothing_is_open() const {
    return alpha.link->counters().pending_requests == 0 && beta.link->counters().serving_requests == 0;
  }
};

} // namespace

TEST_CASE_METHOD(
  mute_fixture, "when whoever asked ends, the other node is told, and whoever works for it why") {
  auto asker = spawn_asker(*alpha.system, remote, 60min);
  REQUIRE(eventually([&] { return seen->asked == 1; }));
  CHECK(alpha.link->counters().pending_requests == 1);
  caf::anon_send(asker, stop_atom::value);
  CHECK(eventually([&] { return !ends().empty() && nothing_is_open(); }));
  CHECK(ends() == std::vector{errc::cancelled});
  // An end in good order of a part of the node is none of a client.
  asker = spawn_asker(*alpha.system, remote, 60min);
  REQUIRE(eventually([&] { return seen->asked == 2; }));
  caf::anon_send_exit(asker, caf::exit_reason::user_shutdown);
  CHECK(eventually([&] { return ends().size() == 2 && nothing_is_open(); }));
  CHECK(ends().at(1) == errc::draining);
}

TEST_CASE_METHOD(
  mute_fixture, "a request that times out where it was asked is over at the other node as well") {
  const auto asker = spawn_asker(*alpha.system, remote, 50ms);
  CHECK(eventually([&] { return !ends().empty() && nothing_is_open(); }));
  CHECK(ends() == std::vector{errc::deadline});
  caf::anon_send(asker, stop_atom::value);
}

TEST_CASE_METHOD(mute_fixture, "whoever works for a node that is lost is told so") {
  auto asker = spawn_asker(*alpha.system, remote, 60min);
  REQUIRE(eventually([&] { return seen->asked == 1; }));
  alpha.link->stop(end_cause::draining, 0ms);
  CHECK(eventually([&] { return ends() == std::vector{errc::draining}; }));
  caf::anon_send(asker, stop_atom::value);
}

TEST_CASE("the trace of a call comes to the other node, and goes on from there") {
  std::mutex mutex;
  std::vector<std::string> told;
  exchange_options options;
  options.served = [&](const served_request& one) {
    const std::lock_guard lock(mutex);
    told.push_back(std::string(one.node) + " " + to_traceparent(one.trace));
  };
  two_nodes nodes(options);
  // Asks back to the node from where it was asked.
  auto words_here = spawn_words(*nodes.alpha.system);
  nodes.alpha.exchange->publish("words", words_here);
  const auto back = nodes.beta.exchange->remote<tokenizer_actor>("alpha", "words");
  const auto relay =
    spawn_traced(*nodes.beta.system, [back](common_actor::pointer self) -> common_actor::behavior_type {
      return {
        [self, back](status_atom) {
          auto promise = self->make_response_promise<letter<schema::ActorStatus>>();
          self->request(back, 10s, status_atom::value)
            .then([promise](const letter<schema::ActorStatus>& status) mutable { promise.deliver(status); },
              [promise](caf::error& why) mutable { promise.deliver(std::move(why)); });
          return promise;
        },
        [](drain_atom) { return letter<schema::Drained>(); },
        [self](stop_atom) { self->quit(); },
      };
    });
  nodes.beta.exchange->publish("part", relay);
  const auto remote = nodes.alpha.exchange->remote<common_actor>("beta", "part");
  std::atomic<int> answers{0};
  const trace_context trace{0x4bf92f3577b34da6, 0xa3ce929d0e0e4736, 0x00f067aa0ba902b7, 1};
  for (const auto& each : {trace, trace_context{}})
    spawn_for(each, *nodes.alpha.system, [&answers, remote](caf::event_based_actor* self) {
      self->request(remote, 10s, status_atom::value)
        .then([&answers](const letter<schema::ActorStatus>&) { ++answers; }, [](const caf::error&) {});
    });
  CHECK(eventually([&] { return answers == 2; }));
  const std::lock_guard lock(mutex);
  CHECK(told
        == std::vector<std::string>{"beta 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
          "alpha 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"});
  caf::anon_send(relay, stop_atom::value);
  caf::anon_send(words_here, stop_atom::value);
}

TEST_CASE_METHOD(fixture, "letters for nobody and messages that do not check are counted where they come") {
  self->send(alpha.exchange->remote<router_actor>("beta", "router"), letter<schema::CreditGrant>());
  CHECK(eventually([&] { return beta.exchange->counts().dead_letters == 1; }));
  auto there = spawn_words(*beta.system);
  beta.exchange->publish("tokenizer", there);
  const std::vector<std::byte> garbage(64, std::byte{0xee});
  message mail;
  mail.type = capnp::typeId<schema::EncodeRequest>();
  mail.words = garbage;
  alpha.link->send({"beta", "tokenizer", 0}, mail, 10s);
  CHECK(eventually([&] { return beta.exchange->counts().malformed == 1; }));
  CHECK(beta.exchange->counts().dead_letters == 1);
  CHECK(alpha.exchange->counts().dead_letters == 0);
  self->send(there, stop_atom::value);
}

TEST_CASE_METHOD(fixture, "a tokenizer on another node answers as the one beside us") {
  auto there = spawn_words(*beta.system);
  auto here = spawn_words(*alpha.system);
  beta.exchange->publish("tokenizer", there);
  const auto remote = alpha.exchange->remote<tokenizer_actor>("beta", "tokenizer");
  for (const auto* text : {"", "a<end>", "one two three", "\xff\xfe"}) {
    const auto near = ask<letter<schema::TokenIds>>(here, words(text));
    const auto far = ask<letter<schema::TokenIds>>(remote, words(text));
    REQUIRE(near);
    REQUIRE(far);
    CHECK(std::ranges::equal(near->bytes(), far->bytes()));
  }
  CHECK(ask<letter<schema::ActorStatus>>(remote, status_atom::value)->read().getState() == "ready");
  // A failure keeps its parts.
  const auto bad = ask<letter<schema::DecodedText>>(remote,
    letter<schema::DecodeRequest>::make([](schema::DecodeRequest::Builder b) { b.initIds(1).set(0, 9999); }));
  REQUIRE_FALSE(bad);
  CHECK(bad.error().code == errc::invalid_argument);
  CHECK(bad.error().param == "ids");
  // One handle for one actor.
  CHECK(remote == alpha.exchange->remote<tokenizer_actor>("beta", "tokenizer"));
  self->send(here, stop_atom::value);
  self->send(remote, stop_atom::value); // stops the one over there
  CHECK(eventually([&] {
    const auto out = ask<letter<schema::ActorStatus>>(remote, status_atom::value);
    return !out && out.error().code == errc::peer_lost;
  }));
}

TEST_CASE_METHOD(fixture, "an actor that is not published is not found") {
  const auto out =
    ask<letter<schema::TokenIds>>(alpha.exchange->remote<tokenizer_actor>("beta", "nobody"), words("x"));
  REQUIRE_FALSE(out);
  CHECK(out.error().code == errc::not_found);
  const auto nowhere =
    ask<letter<schema::TokenIds>>(alpha.exchange->remote<tokenizer_actor>("gamma", "tokenizer"), words("x"));
  REQUIRE_FALSE(nowhere);
  CHECK(nowhere.error().code == errc::unavailable);
}

TEST_CASE_METHOD(fixture, "an actor of another interface does not know the message") {
  auto there = spawn_words(*beta.system);
  beta.exchange->publish("tokenizer", there);
  const auto out = ask<letter<schema::CacheEvicted>>(
    alpha.exchange->remote<cache_actor>("beta", "tokenizer"), letter<schema::CacheEvict>());
  REQUIRE_FALSE(out);
  CHECK(out.error().code == errc::unsupported);
  self->send(there, stop_atom::value);
}

TEST_CASE("a remote actor that does not answer is given up at the deadline") {
  two_nodes nodes({.answer = 200ms, .letter = 1s, .references = 10});
  auto mute = nodes.beta.system->spawn([](tokenizer_actor::pointer self) -> tokenizer_actor::behavior_type {
    auto kept = std::make_shared<std::vector<caf::typed_response_promise<letter<schema::TokenIds>>>>();
    return {
      [self, kept](const letter<schema::EncodeRequest>&) {
        kept->push_back(self->make_response_promise<letter<schema::TokenIds>>());
        return kept->back();
      },
      [](const letter<schema::DecodeRequest>&) { return letter<schema::DecodedText>(); },
      [](const letter<schema::RenderRequest>&) { return letter<schema::RenderedChat>(); },
      [](status_atom) { return letter<schema::ActorStatus>(); },
      [](drain_atom) { return letter<schema::Drained>(); },
      [self](stop_atom) { self->quit(); },
    };
  });
  nodes.beta.exchange->publish("tokenizer", mute);
  const auto remote = nodes.alpha.exchange->remote<tokenizer_actor>("beta", "tokenizer");
  const auto out = nodes.ask<letter<schema::TokenIds>>(remote, words("x"));
  REQUIRE_FALSE(out);
  CHECK(out.error().code == errc::deadline);
  CHECK(eventually([&] { return nodes.beta.link->counters().serving_requests == 0; }));
  nodes.self->send(mute, stop_atom::value);
}

TEST_CASE_METHOD(fixture, "when its node goes, a remote actor is dead: requests fail, monitors hear of it") {
  auto there = spawn_words(*beta.system);
  beta.exchange->publish("tokenizer", there);
  const auto remote = alpha.exchange->remote<tokenizer_actor>("beta", "tokenizer");
  REQUIRE(ask<letter<schema::TokenIds>>(remote, words("x")));
  self->monitor(remote);
  beta.stop(end_cause::draining);
  bool heard = false;
  self->receive(
    [&](const caf::down_msg& down) { heard = down.source == remote.address(); }, caf::after(10s) >> [] {});
  CHECK(heard);
  const auto out = ask<letter<schema::TokenIds>>(remote, words("x"));
  REQUIRE_FALSE(out);
  CHECK(out.error().code == errc::peer_lost);
  self->send(there, stop_atom::value);
}

TEST_CASE_METHOD(fixture, "a handle in a message is an actor that the other node can send to") {
  std::atomic<int> downs{0};
  auto there = beta.system->spawn(worker, &downs);
  beta.exchange->publish("worker", there);
  const auto remote = alpha.exchange->remote<worker_actor>("beta", "worker");
  const auto seen = std::make_shared<sink_seen>();
  auto here = alpha.system->spawn(sink, seen);
  const auto start =
    letter<schema::GenerateRequest>::make([](schema::GenerateRequest::Builder b) { b.setRequest(5); });
  const auto accepted = ask<letter<schema::GenerateAccepted>>(remote, start, here);
  REQUIRE(accepted);
  CHECK(accepted->read().getWorker() == "beta");
  CHECK(eventually([&] {
    const std::lock_guard lock(seen->mutex);
    return seen->positions.size() == 10;
  }));
  CHECK(seen->positions == std::vector<std::uint32_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  // The worker holds it: it is kept alive, whoever else lets it go.
  CHECK(alpha.exchange->references() == 1);
  // When it ends, the worker over there hears of it.
  self->send(here, letter<schema::TokenBatch>::make([](schema::TokenBatch::Builder b) { b.setRequest(99); }));
  CHECK(eventually([&] { return downs == 1; }));
  CHECK(alpha.exchange->references() == 0);
  self->send(there, stop_atom::value);
}

TEST_CASE_METHOD(fixture, "a handle that the other node drops is let go") {
  std::atomic<int> downs{0};
  auto there = beta.system->spawn(worker, &downs);
  beta.exchange->publish("worker", there);
  const auto remote = alpha.exchange->remote<worker_actor>("beta", "worker");
  const auto seen = std::make_shared<sink_seen>();
  auto here = alpha.system->spawn(sink, seen);
  const letter<schema::GenerateRequest> start;
  REQUIRE(ask<letter<schema::GenerateAccepted>>(remote, start, here));
  REQUIRE(ask<letter<schema::GenerateAccepted>>(remote, start, here));
  CHECK(alpha.exchange->references() == 1);
  self->send(there, stop_atom::value);
  there = nullptr;
  CHECK(eventually([&] { return alpha.exchange->references() == 0; }));
  CHECK(downs == 0);
}

TEST_CASE_METHOD(
  fixture, "a handle of an actor that has ended is not passed on: nobody would be told of its end") {
  std::atomic<int> downs{0};
  auto there = beta.system->spawn(worker, &downs);
  beta.exchange->publish("worker", there);
  const auto remote = alpha.exchange->remote<worker_actor>("beta", "worker");
  auto here = alpha.system->spawn(sink, std::make_shared<sink_seen>());
  self->monitor(here);
  self->send(here, letter<schema::TokenBatch>::make([](schema::TokenBatch::Builder b) { b.setRequest(99); }));
  self->receive([](const caf::down_msg&) {}, caf::after(10s) >> [] { FAIL("it did not end"); });
  const auto out = ask<letter<schema::GenerateAccepted>>(remote, letter<schema::GenerateRequest>(), here);
  REQUIRE_FALSE(out);
  CHECK(out.error().code == errc::peer_lost);
  CHECK(alpha.exchange->references() == 0);
  self->send(there, stop_atom::value);
}

TEST_CASE_METHOD(fixture, "a node that is closing says that it drains, not that its actors are unknown") {
  auto there = spawn_words(*beta.system);
  beta.exchange->publish("tokenizer", there);
  const auto remote = alpha.exchange->remote<tokenizer_actor>("beta", "tokenizer");
  REQUIRE(ask<letter<schema::TokenIds>>(remote, words("x")));
  beta.exchange->close();
  const auto out = ask<letter<schema::TokenIds>>(remote, words("x"));
  REQUIRE_FALSE(out);
  CHECK(out.error().code == errc::draining);
  self->send(there, stop_atom::value);
}

TEST_CASE_METHOD(fixture, "an answer may hold a handle") {
  std::atomic<int> downs{0};
  auto there = beta.system->spawn(worker, &downs);
  beta.exchange->publish("worker", there);
  const auto remote = alpha.exchange->remote<worker_actor>("beta", "worker");
  auto found = ask<tokenizer_actor>(remote, info_atom::value);
  REQUIRE(found);
  const auto ids = ask<letter<schema::TokenIds>>(*found, words("ab"));
  REQUIRE(ids);
  CHECK(ids->read().getIds().size() == 2);
  CHECK(beta.exchange->references() == 1);
  self->send(*found, stop_atom::value);
  CHECK(eventually([&] { return beta.exchange->references() == 0; }));
  self->send(there, stop_atom::value);
}

TEST_CASE_METHOD(fixture, "a handle that comes home is the actor itself: nothing takes a detour") {
  std::atomic<int> downs{0};
  auto there = beta.system->spawn(worker, &downs);
  beta.exchange->publish("worker", there);
  const auto seen = std::make_shared<sink_seen>();
  auto home = beta.system->spawn(sink, seen);
  beta.exchange->publish("sink", home);
  const auto before = alpha.link->counters().letters_sent.load();
  REQUIRE(ask<letter<schema::GenerateAccepted>>(alpha.exchange->remote<worker_actor>("beta", "worker"),
    letter<schema::GenerateRequest>(), alpha.exchange->remote<generation_sink_actor>("beta", "sink")));
  CHECK(eventually([&] {
    const std::lock_guard lock(seen->mutex);
    return seen->positions.size() == 10;
  }));
  CHECK(alpha.link->counters().letters_sent == before + 1);
  CHECK(alpha.exchange->references() == 0);
  CHECK(beta.exchange->references() == 0);
  self->send(there, stop_atom::value);
}

TEST_CASE_METHOD(fixture, "a peer that goes lets go of what it held") {
  std::atomic<int> downs{0};
  auto there = beta.system->spawn(worker, &downs);
  beta.exchange->publish("worker", there);
  const auto remote = alpha.exchange->remote<worker_actor>("beta", "worker");
  const auto seen = std::make_shared<sink_seen>();
  REQUIRE(ask<letter<schema::GenerateAccepted>>(
    remote, letter<schema::GenerateRequest>(), alpha.system->spawn(sink, seen)));
  CHECK(alpha.exchange->references() == 1);
  beta.link->stop(end_cause::draining, 0ms);
  CHECK(eventually([&] { return alpha.exchange->references() == 0; }));
  self->send(there, stop_atom::value);
}

TEST_CASE("a handle of an earlier start of a node takes nothing from the next start") {
  std::atomic<int> downs{0};
  actor_node alpha("alpha");
  caf::scoped_actor self{*alpha.system};
  // A node that lets another have an actor by its number.
  const auto meet = [&](actor_node& beta) {
    const auto there = beta.system->spawn(worker, &downs);
    beta.exchange->publish("worker", there);
    alpha.link->add_peer(beta.record());
    beta.link->add_peer(alpha.record());
    REQUIRE(eventually([&] { return alpha.up() && beta.up(); }));
    tokenizer_actor out;
    self->request(alpha.exchange->remote<worker_actor>("beta", "worker"), 10s, info_atom::value)
      .receive([&](const tokenizer_actor& one) { out = one; }, [](const caf::error&) { FAIL("no answer"); });
    self->send(there, stop_atom::value);
    return out;
  };
  tokenizer_actor before;
  {
    actor_node beta("beta");
    before = meet(beta);
    REQUIRE(beta.exchange->references() == 1);
  }
  REQUIRE(eventually([&] { return !alpha.up(); }));
  actor_node beta("beta");
  const auto now = meet(beta);
  REQUIRE(beta.exchange->references() == 1);
  before = nullptr;
  int answers = 0;
  for (int i = 0; i < 2; ++i)
    self->request(now, 10s, words("x"))
      .receive([&](const letter<schema::TokenIds>&) { ++answers; }, [](const caf::error&) {});
  CHECK(answers == 2);
  CHECK(beta.exchange->references() == 1);
  self->send(now, stop_atom::value);
}

TEST_CASE_METHOD(fixture, "a letter that is malformed is refused before the actor sees it") {
  auto there = spawn_words(*beta.system);
  beta.exchange->publish("tokenizer", there);
  const std::vector<std::byte> garbage(64, std::byte{0xee});
  std::atomic<int> code{0};
  alpha.link->request({"beta", "tokenizer", 0},
    {.type = capnp::typeId<schema::EncodeRequest>(),
      .words = garbage,
      .attachments = {},
      .extras = {},
      .source = 0,
      .trace = {}},
    5s, [&](const result<incoming>& got) { code = got ? -1 : static_cast<int>(got.error().code); });
  CHECK(eventually([&] { return code != 0; }));
  CHECK(code == static_cast<int>(errc::corrupt));
  self->send(there, stop_atom::value);
}
