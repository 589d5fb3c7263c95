#include "actors/supervisor/part_handle.hpp"

#include "messages/actor_error.hpp"
#include "tests/unit/actors/node/scripted_part.hpp"

#include <caf/scoped_actor.hpp>
#include <catch2/catch.hpp>

using namespace godwit;
using namespace godwit::test;

namespace {

/// A part behind a handle, and what became of questions to it.
struct world : still_system {
  part_handle<common_actor> part{system, "tokenizer"};
  std::vector<std::string> log;

  ~world() {
    part.close();
    finish();
  }

  common_actor start(const part_script& script = {}) {
    const auto made = spawn_part(system, "part", script);
    stops.push_back(made);
    part.put(made);
    return made;
  }
  /// The state that it tells, or the code of the failure; empty: neither yet.
  std::shared_ptr<std::string> told() {
    auto out = std::make_shared<std::string>();
    system.spawn([out, whom = part.handle()](caf::event_based_actor* self) {
      self->request(whom, std::chrono::seconds(1'000), status_atom::value)
        .then([out](const letter<schema::ActorStatus>& status) { *out = status.read().getState().cStr(); },
          [out](const caf::error& why) {
            const auto said = from_caf_error(why);
            *out = std::string(to_string(said.code)) + ": " + said.message;
          });
    });
    scheduler.run();
    return out;
  }
};

} // namespace

TEST_CASE("a handle of a part is that of the actor that the part is now") {
  world w;
  const auto handle = w.part.handle();
  CHECK(*w.told() == "unavailable: the tokenizer is being started again");
  const auto first = w.start({.state = "first"});
  CHECK(*w.told() == "first");
  caf::anon_send(first, stop_atom::value);
  w.scheduler.run();
  CHECK(*w.told() == "unavailable: the tokenizer is being started again");
  w.start({.state = "second"});
  CHECK(*w.told() == "second");
  CHECK(w.part.handle() == handle);
  w.part.close();
  CHECK(*w.told() == "draining: this node is stopping");
}

TEST_CASE("what a part was asked when it ends fails at once") {
  world w;
  const auto first = w.start({.answers = false});
  const auto waiting = w.told();
  const auto more = w.told();
  CHECK(waiting->empty());
  caf::anon_send_exit(first, caf::exit_reason::kill);
  w.scheduler.run();
  CHECK(*waiting == "peer_lost: the tokenizer has ended");
  CHECK(*more == "peer_lost: the tokenizer has ended");
  // One that ended before it was put into its place is none.
  const auto dead = spawn_part(w.system, "part", {});
  caf::anon_send_exit(dead, caf::exit_reason::kill);
  w.scheduler.run();
  w.part.put(dead);
  CHECK(*w.told() == "unavailable: the tokenizer is being started again");
}

TEST_CASE("the end of an earlier actor is nothing to the present one") {
  world w;
  const auto first = w.start({.answers = false});
  const auto second = w.start({.answers = false});
  const auto waiting = w.told();
  caf::anon_send_exit(first, caf::exit_reason::kill);
  w.scheduler.run();
  CHECK(waiting->empty());
  caf::anon_send_exit(second, caf::exit_reason::kill);
  w.scheduler.run();
  CHECK_FALSE(waiting->empty());
}

TEST_CASE("the latest requests are remembered, and what was answered takes no second answer") {
  world w;
  const auto first = w.start();
  for (std::size_t i = 0; i < part_place::most_asked; ++i)
    CHECK(*w.told() == "ready");
  auto answered = w.told();
  *answered = "seen";
  caf::anon_send_exit(first, caf::exit_reason::kill);
  w.scheduler.run();
  CHECK(*answered == "seen");
}

TEST_CASE("a handle of a part takes no part in the node's end") {
  world w;
  w.start({.log = &w.log});
  caf::anon_send(w.part.handle(), stop_atom::value);
  caf::anon_send_exit(w.part.handle(), caf::exit_reason::kill);
  w.scheduler.run();
  const auto drained = w.ask<letter<schema::Drained>>(w.part.handle(), drain_atom::value);
  CHECK(drained->has_value());
  CHECK(w.log.empty());
  CHECK(*w.told() == "ready");
}
