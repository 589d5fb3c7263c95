// The exchange over a link that only remembers, on CAF's scheduler for tests.

#include "services/link/actor_exchange.hpp"

#include "actors/trace/spawn_traced.hpp"
#include "messages/actor_error.hpp"
#include "messages/catalogue.hpp"
#include "tests/unit/actors/node/scripted_part.hpp"
#include "tests/unit/services/link/silent_link.hpp"

#include <caf/actor_cast.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/exit_reason.hpp>
#include <caf/sec.hpp>
#include <caf/send.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <catch2/catch.hpp>

#include <algorithm>
#include <atomic>
#include <thread>

using namespace godwit;
using namespace godwit::link;
using namespace std::chrono_literals;

namespace {

/// A sink of which one can see how much is attached to it. A batch of tokens ends it.
class counted_sink final : public generation_sink_actor::base {
 public:
  explicit counted_sink(caf::actor_config& config) : generation_sink_actor::base(config) {}

  std::size_t attached() const {
    const std::lock_guard lock(mtx_);
    std::size_t count = 0;
    for (const auto* each = attachables_head_.get(); each != nullptr; each = each->next.get())
      ++count;
    return count;
  }

 protected:
  behavior_type make_behavior() override {
    return {[this](const letter<schema::TokenBatch>&) { quit(); }};
  }
};

struct world : test::still_system {
  std::vector<std::string> served;
  std::shared_ptr<actor_exchange> exchange = actor_exchange::make(system,
    {.references = 10, .served = [this](const served_request& one) {
       served.push_back(std::string(one.node) + " " + std::string(one.actor) + " " + to_traceparent(one.trace)
                        + " " + (one.failure ? std::string(to_string(*one.failure)) : "answered"));
     }});
  std::shared_ptr<silent_link> link = std::make_shared<silent_link>();

  world() {
    exchange->use(link);
    peer("n", true);
  }
  ~world() {
    exchange->close();
    finish();
  }

  void peer(const std::string& name, bool up) const {
    exchange->on_peer({name, 1, up, up ? end_cause::none : end_cause::peer_lost, {}});
  }
  generation_sink_actor spawn_sink() {
    auto made = system.spawn<counted_sink>();
    scheduler.run();
    return made;
  }
  void end(const generation_sink_actor& sink) {
    caf::anon_send(sink, letter<schema::TokenBatch>());
    scheduler.run();
  }
  /// Sends a sink to the router of a node.
  void give(const std::string& node, const generation_sink_actor& sink) {
    caf::anon_send(exchange->remote<router_actor>(node, "router"), letter<schema::GenerateRequest>(), sink);
  }
  /// The number under which a message that was sent names an actor.
  static std::uint64_t number_in(const silent_link::sent& mail) {
    constexpr std::uint8_t actor_kind = 3;
    extras_reader extras(mail.extras);
    return decode_reference(extras.next(actor_kind).value()).value().id;
  }
  void release(const std::string& node, std::uint64_t number) const {
    incoming mail;
    mail.from = node;
    mail.header.kind = frame_kind::released;
    mail.header.source = number;
    mail.header.correlation = 1;
    exchange->on_reference(mail);
  }
  /// A letter of another node.
  void letter_for(const std::string& name, std::uint64_t type, std::span<const std::byte> extras = {},
    std::span<const std::byte> words = {}) const {
    incoming mail;
    mail.from = "n";
    mail.header.kind = frame_kind::letter;
    mail.header.name = name;
    mail.header.type = type;
    mail.header.extras = extras;
    mail.words = words;
    exchange->on_letter(mail);
  }
};

const counted_sink& sink_of(const generation_sink_actor& handle) {
  return static_cast<const counted_sink&>(*caf::actor_cast<caf::abstract_actor*>(handle));
}

/// An actor that asks for a status, and how often it had an answer or a failure.
caf::actor spawn_asker(world& w, const common_actor& whom, std::chrono::milliseconds patience, int* answers,
  const trace_context& trace = {}) {
  auto made = spawn_for(trace, w.system, [=](caf::event_based_actor* self) -> caf::behavior {
    self->request(whom, patience, status_atom::value)
      .then([=](const letter<schema::ActorStatus>&) { ++*answers; }, [=](const caf::error&) { ++*answers; });
    return {
      [self](stop_atom) { self->quit(); }, [self](escalate_atom) { self->quit(caf::sec::runtime_error); }};
  });
  w.scheduler.run();
  return made;
}

/// An actor that asks the next one whenever it is asked, and tells a router in a letter.
common_actor spawn_relay(world& w, const common_actor& next, const router_actor& router) {
  auto made = spawn_traced(w.system, [=](common_actor::pointer self) -> common_actor::behavior_type {
    return {
      [=](status_atom) {
        auto promise = self->make_response_promise<letter<schema::ActorStatus>>();
        self->send(router, letter<schema::CreditGrant>());
        self->request(next, 60min, status_atom::value)
          .then([=](const letter<schema::ActorStatus>& status) mutable { promise.deliver(status); },
            [=](caf::error& why) mutable { promise.deliver(std::move(why)); });
        return promise;
      },
      [](drain_atom) { return letter<schema::Drained>(); },
      [=](stop_atom) { self->quit(); },
    };
  });
  w.stops.push_back(made);
  return made;
}

template <class Interface, class... Message>
std::uint64_t type_of(const Message&... message) {
  return codec_of<Interface>().match(caf::make_message(message...))->in.type;
}

} // namespace

TEST_CASE("an actor that is given and dropped again and again keeps no trace of it") {
  world w;
  const auto sink = w.spawn_sink();
  const auto before = sink_of(sink).attached();
  std::uint64_t last = 0;
  for (int i = 0; i < 100'000; ++i) {
    w.give("n", sink);
    const auto number = world::number_in(w.link->letters.at(0));
    if (number == last)
      FAIL("the same number for what was held anew");
    last = number;
    w.release("n", number);
    w.link->clear();
  }
  CHECK(w.exchange->references() == 0);
  CHECK(sink_of(sink).attached() <= before + 1);
  w.give("n", sink);
  CHECK(w.exchange->references() == 1);
  const auto number = world::number_in(w.link->letters.at(0));
  w.end(sink);
  CHECK(w.exchange->references() == 0);
  const auto told = w.link->get(&silent_link::references);
  REQUIRE(told.size() == 1);
  CHECK(told[0].kind == frame_kind::gone);
  CHECK(told[0].actor == number);
}

TEST_CASE("the end of an actor is told to each node that holds it, once, and to none that has dropped it") {
  world w;
  w.peer("m", true);
  w.peer("o", true);
  const auto sink = w.spawn_sink();
  for (const auto* node : {"m", "n", "n", "o"})
    w.give(node, sink);
  const auto sent = w.link->get(&silent_link::letters);
  CHECK(world::number_in(sent.at(1)) == world::number_in(sent.at(2)));
  w.release("o", world::number_in(sent.at(3)));
  CHECK(sink_of(sink).attached() == 1);
  w.end(sink);
  const auto told = w.link->get(&silent_link::references);
  REQUIRE(told.size() == 2);
  CHECK(told[0].node == "m");
  CHECK(told[1].node == "n");
  CHECK(told[1].actor == world::number_in(sent.at(1)));
}

TEST_CASE("what is given in a message that cannot be sent is not held for it") {
  world w;
  const auto sink = w.spawn_sink();
  const auto node = w.exchange->remote<node_actor>("n", "node");
  const auto part = test::spawn_part(w.system, "part", {});
  w.stops.push_back(part);
  // The name is too long for a frame.
  caf::anon_send(node, join_atom::value, std::string(5'000, 'x'), part);
  CHECK(w.link->get(&silent_link::letters).empty());
  CHECK(w.exchange->references() == 0);
  CHECK(w.exchange->counts().dead_letters == 1);
}

TEST_CASE("letters that no actor gets are counted, in both directions") {
  world w;
  const auto stop = type_of<common_actor>(stop_atom::value);
  w.letter_for("nobody", stop);
  CHECK(w.exchange->counts().dead_letters == 1);
  // One that has ended and is still published.
  const auto part = test::spawn_part(w.system, "part", {});
  w.exchange->publish("part", part);
  w.letter_for("part", stop);
  w.scheduler.run();
  CHECK(w.exchange->counts().dead_letters == 1);
  w.letter_for("part", stop);
  CHECK(w.exchange->counts().dead_letters == 2);
  // One whose sender names an actor that is not here any more.
  std::vector<std::byte> extras;
  append_extra(extras, 3, encode_reference({true, 17, {}}));
  const auto sink = w.spawn_sink();
  w.exchange->publish("router", w.exchange->remote<router_actor>("n", "router"));
  w.letter_for("router", type_of<router_actor>(letter<schema::GenerateRequest>(), sink), extras,
    letter<schema::GenerateRequest>().bytes());
  CHECK(w.exchange->counts().dead_letters == 3);
  CHECK(w.exchange->counts().malformed == 0);
  // To a node that is gone.
  const auto remote = w.exchange->remote<router_actor>("n", "router");
  w.peer("n", false);
  caf::anon_send(remote, letter<schema::CreditGrant>());
  CHECK(w.exchange->counts().dead_letters == 4);
  // One that ended before it was given.
  w.peer("n", true);
  w.end(sink);
  w.give("n", sink);
  CHECK(w.exchange->counts().dead_letters == 5);
  CHECK(w.link->get(&silent_link::letters).empty());
}

TEST_CASE("messages that no actor could be given are counted as malformed") {
  world w;
  const auto part = test::spawn_part(w.system, "part", {});
  w.stops.push_back(part);
  w.exchange->publish("part", part);
  w.letter_for("part", 12'345);
  CHECK(w.exchange->counts().malformed == 1);
  const std::vector<std::byte> garbage(8, std::byte{0xee});
  w.letter_for("part", type_of<common_actor>(stop_atom::value), garbage);
  CHECK(w.exchange->counts().malformed == 2);
  incoming mail;
  mail.from = "n";
  mail.header.kind = frame_kind::request;
  mail.header.name = "part";
  mail.header.type = type_of<common_actor>(status_atom::value);
  mail.header.extras = garbage;
  w.exchange->on_request(mail, {"n", 1, 1});
  CHECK(w.exchange->counts().malformed == 3);
  CHECK(w.link->get(&silent_link::failures) == std::vector{errc::corrupt});
  CHECK(w.exchange->counts().dead_letters == 0);
}

TEST_CASE("what an actor has asked for is cancelled when it ends, for its cause, and nothing else is") {
  world w;
  int answers = 0;
  const auto remote = w.exchange->remote<common_actor>("n", "part");
  const auto done = spawn_asker(w, remote, 60min, &answers);
  const auto crashing = spawn_asker(w, remote, 60min, &answers);
  const auto stopped = spawn_asker(w, remote, 60min, &answers);
  const auto answered = spawn_asker(w, remote, 60min, &answers);
  const auto waiting = spawn_asker(w, remote, 60min, &answers);
  REQUIRE(w.link->get(&silent_link::requests).size() == 5);
  w.link->answer(3, godwit::fail(errc::overloaded, "no"));
  caf::anon_send(done, stop_atom::value);
  w.scheduler.run();
  caf::anon_send(crashing, escalate_atom::value);
  w.scheduler.run();
  caf::anon_send_exit(stopped, caf::exit_reason::user_shutdown);
  w.scheduler.run();
  caf::anon_send(answered, stop_atom::value);
  w.scheduler.run();
  using ended = silent_link::ended;
  const std::vector<ended> expected{
    {1, end_cause::cancelled}, {2, end_cause::peer_lost}, {3, end_cause::draining}};
  CHECK((w.link->get(&silent_link::cancels) == expected));
  CHECK(answers == 1);
  caf::anon_send(waiting, stop_atom::value);
  w.scheduler.run();
}

TEST_CASE("a request that timed out where it was asked is cancelled, and one that was answered is not") {
  world w;
  int answers = 0;
  const auto remote = w.exchange->remote<common_actor>("n", "part");
  const auto patient = spawn_asker(w, remote, 60min, &answers);
  const auto hasty = spawn_asker(w, remote, 50ms, &answers);
  const auto lucky = spawn_asker(w, remote, 50ms, &answers);
  w.link->answer(2, godwit::fail(errc::overloaded, "no"));
  w.scheduler.run();
  CHECK(answers == 1);
  w.pass(100);
  CHECK(answers == 2);
  const std::vector<silent_link::ended> expected{{2, end_cause::deadline}};
  CHECK((w.link->get(&silent_link::cancels) == expected));
  for (const auto& each : {patient, hasty, lucky})
    caf::anon_send(each, stop_atom::value);
  w.scheduler.run();
  // Nothing is cancelled twice.
  CHECK(w.link->get(&silent_link::cancels).size() == 2);
}

TEST_CASE("whoever works for another node is told why nobody waits any more, and nothing behind its answer") {
  world w;
  std::vector<errc> ends;
  caf::typed_response_promise<letter<schema::ActorStatus>> promise;
  const auto part = w.system.spawn([&](common_actor::pointer self) -> common_actor::behavior_type {
    self->set_down_handler(
      [&](const caf::down_msg& down) { ends.push_back(from_caf_error(down.reason).code); });
    return {
      [&, self](status_atom) {
        self->monitor(self->current_sender());
        promise = self->make_response_promise<letter<schema::ActorStatus>>();
        return promise;
      },
      [](drain_atom) { return letter<schema::Drained>(); },
      [self](stop_atom) { self->quit(); },
    };
  });
  w.stops.push_back(part);
  w.exchange->publish("part", part);
  const auto ask = [&](std::uint64_t correlation) {
    incoming mail;
    mail.from = "n";
    mail.header.kind = frame_kind::request;
    mail.header.name = "part";
    mail.header.type = type_of<common_actor>(status_atom::value);
    w.exchange->on_request(mail, {"n", 1, correlation});
    w.scheduler.run();
  };
  std::uint64_t correlation = 0;
  for (const auto cause :
    {end_cause::cancelled, end_cause::deadline, end_cause::peer_lost, end_cause::draining}) {
    ask(++correlation);
    w.exchange->on_cancel({"n", 1, correlation}, cause);
    w.scheduler.run();
    REQUIRE(ends.size() == correlation);
    CHECK(ends.back() == error_of(cause));
    // Too late.
    promise.deliver(letter<schema::ActorStatus>());
    w.scheduler.run();
  }
  CHECK(w.link->get(&silent_link::replies).empty());
  ask(++correlation);
  promise.deliver(letter<schema::ActorStatus>());
  w.scheduler.run();
  CHECK(w.link->get(&silent_link::replies).size() == 1);
  w.exchange->on_cancel({"n", 1, correlation}, end_cause::cancelled);
  w.scheduler.run();
  CHECK(ends.size() == 4);
}

TEST_CASE("a request that comes while its node stops is answered with that, wherever it meets it") {
  for (int round = 0; round < 60; ++round) {
    world w;
    w.exchange->publish("part", w.system.spawn([](common_actor::pointer) -> common_actor::behavior_type {
      return {
        [](status_atom) { return letter<schema::ActorStatus>(); },
        [](drain_atom) { return letter<schema::Drained>(); },
        [](stop_atom) {},
      };
    }));
    w.scheduler.run();
    // More than there are cores, so that some have been halted somewhere.
    std::atomic<std::uint64_t> sent = 0;
    std::atomic<bool> over = false;
    std::vector<std::thread> networks;
    for (int i = 0; i < 5; ++i)
      networks.emplace_back([&] {
        incoming mail;
        mail.from = "n";
        mail.header.kind = frame_kind::request;
        mail.header.name = "part";
        mail.header.type = type_of<common_actor>(status_atom::value);
        while (!over)
          w.exchange->on_request(mail, {"n", 1, ++sent});
      });
    while (sent < 1000)
      std::this_thread::yield();
    w.exchange->close();
    const auto before = sent.load();
    while (sent < before + 10)
      std::this_thread::yield();
    over = true;
    for (auto& each : networks)
      each.join();
    const auto failures = w.link->get(&silent_link::failures);
    CHECK(failures.size() >= 5);
    CHECK(std::ranges::count(failures, errc::draining) == std::ssize(failures));
  }
}

TEST_CASE("the trace of a call goes with its requests, over actors between, to other nodes, and no further") {
  world w;
  const trace_context trace{0x4bf92f3577b34da6, 0xa3ce929d0e0e4736, 0x00f067aa0ba902b7, 1};
  const auto remote = w.exchange->remote<common_actor>("n", "part");
  const auto router = w.exchange->remote<router_actor>("n", "router");
  const auto relay = spawn_relay(w, spawn_relay(w, remote, router), router);
  int answers = 0;
  const auto untraced = spawn_asker(w, relay, 60min, &answers);
  const auto direct = spawn_asker(w, remote, 60min, &answers, trace);
  const auto far = spawn_asker(w, relay, 60min, &answers, trace);
  const auto again = spawn_asker(w, relay, 60min, &answers);
  const auto requests = w.link->get(&silent_link::requests);
  REQUIRE(requests.size() == 4);
  CHECK_FALSE(requests[0].trace.known());
  CHECK((requests[1].trace == trace));
  CHECK((requests[2].trace == trace));
  CHECK_FALSE(requests[3].trace.known());
  // Of each relay, one.
  const auto letters = w.link->get(&silent_link::letters);
  REQUIRE(letters.size() == 6);
  CHECK_FALSE(letters[1].trace.known());
  CHECK((letters[2].trace == trace));
  CHECK((letters[3].trace == trace));
  CHECK_FALSE(letters[4].trace.known());
  // Nothing of it is left when the calls are over.
  for (std::size_t i = 0; i < 4; ++i)
    w.link->answer(i, godwit::fail(errc::overloaded, "no"));
  w.scheduler.run();
  CHECK(answers == 4);
  for (const auto& each : {untraced, direct, far, again})
    caf::anon_send(each, stop_atom::value);
  w.scheduler.run();
}

TEST_CASE("a request of another node is served for its trace, and told of if that is sampled") {
  world w;
  const trace_context trace{1, 2, 3, 1};
  const auto remote = w.exchange->remote<common_actor>("m", "part");
  const auto router = w.exchange->remote<router_actor>("m", "router");
  w.exchange->publish("part", spawn_relay(w, remote, router));
  const auto ask = [&](std::uint64_t correlation, const trace_context& by) {
    incoming mail;
    mail.from = "n";
    mail.header.kind = frame_kind::request;
    mail.header.name = "part";
    mail.header.type = type_of<common_actor>(status_atom::value);
    mail.header.trace = by;
    w.exchange->on_request(mail, {"n", 1, correlation});
    w.scheduler.run();
  };
  ask(1, trace);
  ask(2, {});
  ask(3, {1, 2, 3, 0});
  ask(4, trace);
  const auto requests = w.link->get(&silent_link::requests);
  REQUIRE(requests.size() == 4);
  CHECK((requests[0].trace == trace));
  CHECK_FALSE(requests[1].trace.known());
  CHECK((requests[2].trace == trace_context{1, 2, 3, 0}));
  w.exchange->on_cancel({"n", 1, 4}, end_cause::deadline);
  for (std::size_t i = 0; i < 3; ++i)
    w.link->answer(i, godwit::fail(errc::overloaded, "no"));
  w.scheduler.run();
  REQUIRE(w.served.size() == 2);
  CHECK(w.served[0] == "n part 00-00000000000000010000000000000002-0000000000000003-01 deadline");
  CHECK(w.served[1] == "n part 00-00000000000000010000000000000002-0000000000000003-01 overloaded");
}
