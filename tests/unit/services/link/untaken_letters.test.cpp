// Letters of other nodes are bounded also behind the link: in the mailboxes of actors that do not take them.

#include "services/link/untaken_letters.hpp"

#include "messages/catalogue.hpp"
#include "services/link/actor_exchange.hpp"
#include "tests/unit/actors/node/scripted_part.hpp"
#include "tests/unit/services/link/silent_link.hpp"
#include "tests/unit/services/link/two_nodes.hpp"

#include <caf/exit_reason.hpp>
#include <caf/send.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <catch2/catch.hpp>

#include <algorithm>
#include <atomic>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace godwit;
using namespace godwit::link;

namespace {

caf::message nothing() {
  return caf::make_message(stop_atom::value);
}

struct world : test::still_system {
  std::shared_ptr<actor_exchange> exchange = actor_exchange::make(system, {.untaken = 8});
  std::shared_ptr<silent_link> link = std::make_shared<silent_link>();
  std::vector<request_id> taken; ///< by the actor, of what it was told
  generation_sink_actor actor =
    system.spawn([this](generation_sink_actor::pointer self) -> generation_sink_actor::behavior_type {
      return {[this, self](const letter<schema::TokenBatch>& mail) {
        taken.push_back(mail.read().getRequest());
        if (taken.back() == 99)
          self->quit();
      }};
    });

  world() {
    exchange->use(link);
    exchange->publish("sink", actor);
    scheduler.run();
    peer("n", true);
    peer("m", true);
  }
  ~world() {
    exchange->close();
    caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
    finish();
  }

  void peer(const std::string& name, bool up) const {
    exchange->on_peer({name, 1, up, up ? end_cause::none : end_cause::overloaded, {}});
  }
  /// @param bytes of text in the letter
  void send(request_id what, const std::string& from = "n", std::size_t bytes = 0) const {
    const auto mail = letter<schema::TokenBatch>::make([&](schema::TokenBatch::Builder b) {
      b.setRequest(what);
      if (bytes != 0)
        b.setErrorMessage(std::string(bytes, 'x'));
    });
    incoming in;
    in.from = from;
    in.header.kind = frame_kind::letter;
    in.header.name = "sink";
    in.header.type = capnp::typeId<schema::TokenBatch>();
    in.words = mail.bytes();
    exchange->on_letter(in);
  }
  std::vector<std::string> overloaded() const { return link->get(&silent_link::overloaded); }
};

} // namespace

TEST_CASE("a letter takes a place until its actor is done with it") {
  untaken_letters letters(3);
  auto one = letters.hand_out(nothing(), 0);
  auto two = letters.hand_out(nothing(), untaken_letters::bytes_a_place - 1);
  CHECK(letters.places() == 2);
  CHECK_FALSE(letters.full());
  CHECK(two->content().match_elements<stop_atom>());
  // The last one may be larger: a letter that is larger than all places could never be handed out.
  auto three = letters.hand_out(nothing(), 10 * untaken_letters::bytes_a_place);
  CHECK(letters.places() == 13);
  CHECK(letters.full());
  three.reset();
  CHECK(letters.places() == 2);
  CHECK_FALSE(letters.full());
  two.reset();
  one.reset();
  CHECK(letters.places() == 0);
}

TEST_CASE("letters outlive whoever counts them") {
  for (const std::size_t left : {0U, 1U, 5U}) {
    auto letters = std::make_unique<untaken_letters>(100);
    std::vector<caf::mailbox_element_ptr> all;
    for (int i = 0; i < 10; ++i)
      all.push_back(letters->hand_out(nothing(), 3000));
    all.resize(left);
    CHECK(letters->places() == static_cast<std::int64_t>(left) * 3);
    letters.reset();
    all.clear();
  }
}

TEST_CASE("letters are counted right while another thread takes them, and whoever is last clears up") {
  for (int round = 0; round < 100; ++round) {
    std::mutex mutex;
    std::vector<caf::mailbox_element_ptr> box;
    bool ended = false;
    std::thread taker([&] {
      for (bool more = true; more; std::this_thread::yield()) {
        std::vector<caf::mailbox_element_ptr> got;
        const std::lock_guard lock(mutex);
        got.swap(box);
        more = !ended || !got.empty();
      }
    });
    std::int64_t most = 0;
    {
      untaken_letters letters(50);
      for (std::size_t i = 0; i < 200; ++i) {
        while (letters.full())
          std::this_thread::yield();
        auto one = letters.hand_out(nothing(), i % 3 * untaken_letters::bytes_a_place);
        most = std::max(most, letters.places());
        const std::lock_guard lock(mutex);
        box.push_back(std::move(one));
      }
    }
    {
      const std::lock_guard lock(mutex);
      ended = true;
    }
    taker.join();
    CHECK(most <= 52);
  }
}

TEST_CASE("an actor that takes its letters gets all of them, in their order") {
  world w;
  std::vector<request_id> sent;
  for (request_id i = 1; i <= 50; ++i) {
    sent.push_back(i);
    w.send(i);
    if (i % 8 == 0)
      w.scheduler.run();
  }
  CHECK(w.exchange->counts().untaken == 2);
  w.scheduler.run();
  CHECK(w.taken == sent);
  CHECK(w.exchange->counts().untaken == 0);
  CHECK(w.exchange->counts().untaken_overflows == 0);
  CHECK(w.overloaded().empty());
}

TEST_CASE("a node whose letter finds no place loses its own, and none of its letters comes behind a gap") {
  world w;
  for (request_id i = 1; i <= 12; ++i)
    w.send(i);
  // Once, however many there are.
  CHECK(w.overloaded() == std::vector<std::string>{"n"});
  CHECK(w.exchange->counts().untaken == 8);
  CHECK(w.exchange->counts().untaken_overflows == 1);
  CHECK(w.exchange->counts().dead_letters == 4);
  // Others have places of their own.
  w.send(13, "m");
  w.scheduler.run();
  CHECK(w.taken == std::vector<request_id>{1, 2, 3, 4, 5, 6, 7, 8, 13});
  // There is place again, and the conversation is the one that misses letters.
  w.send(14);
  w.scheduler.run();
  CHECK(w.taken.back() == 13);
  w.peer("n", false);
  w.peer("n", true);
  w.send(15);
  w.scheduler.run();
  CHECK(w.taken.back() == 15);
  CHECK(w.overloaded().size() == 1);
}

TEST_CASE("what an actor has not taken counts in the node's next conversation") {
  world w;
  for (request_id i = 1; i <= 8; ++i)
    w.send(i);
  for (int round = 1; round <= 3; ++round) {
    w.peer("n", false);
    w.peer("n", true);
    w.send(100);
    CHECK(w.overloaded().size() == static_cast<std::size_t>(round));
    CHECK(w.exchange->counts().untaken == 8);
  }
  w.scheduler.run();
  w.peer("n", false);
  w.peer("n", true);
  w.send(9);
  w.scheduler.run();
  CHECK(w.taken == std::vector<request_id>{1, 2, 3, 4, 5, 6, 7, 8, 9});
}

TEST_CASE("large letters take more places, and those of an actor that ends are free again") {
  world w;
  w.send(1, "n", 6000);
  CHECK(w.exchange->counts().untaken == 6);
  w.send(2, "n", 6000);
  CHECK(w.exchange->counts().untaken == 12);
  CHECK(w.overloaded().empty());
  w.send(3);
  CHECK(w.overloaded().size() == 1);
  w.send(99, "m");
  w.send(4, "m");
  CHECK(w.exchange->counts().untaken == 14);
  w.scheduler.run();
  CHECK(w.taken == std::vector<request_id>{1, 2, 99});
  CHECK(w.exchange->counts().untaken == 0);
}

TEST_CASE("a node that sends more than an actor takes loses its place, is told, and is used again later") {
  std::atomic<std::size_t> taken{0}; // before the nodes, whose actors count
  exchange_options options;
  options.untaken = 100;
  two_nodes nodes(options);
  std::promise<void> go_on;
  const auto slow = nodes.beta.system->spawn<caf::detached>(
    [&taken, wait = go_on.get_future().share()](
      generation_sink_actor::pointer self) -> generation_sink_actor::behavior_type {
      return {[=, &taken](const letter<schema::TokenBatch>& mail) {
        wait.wait();
        ++taken;
        if (mail.read().getRequest() != 0)
          self->quit();
      }};
    });
  nodes.beta.exchange->publish("sink", slow);
  const auto sink = [&] { return nodes.alpha.exchange->remote<generation_sink_actor>("beta", "sink"); };
  const auto first = sink();
  for (int i = 0; i < 1000; ++i)
    nodes.self->send(first, letter<schema::TokenBatch>());
  CHECK(eventually([&] { return nodes.beta.exchange->counts().untaken_overflows == 1; }));
  CHECK(nodes.beta.exchange->counts().untaken <= 100);
  CHECK(eventually([&] { return nodes.alpha.link->counters().peers_lost >= 1; }));
  go_on.set_value();
  CHECK(eventually([&] { return taken == 100 && nodes.beta.exchange->counts().untaken == 0; }));
  // In the next conversation, with another handle.
  REQUIRE(eventually([&] { return nodes.alpha.up() && nodes.beta.up() && sink() != first; }));
  nodes.self->send(sink(), letter<schema::TokenBatch>());
  CHECK(eventually([&] { return taken == 101; }));
  caf::anon_send(slow, letter<schema::TokenBatch>::make([](auto b) { b.setRequest(1); }));
}
