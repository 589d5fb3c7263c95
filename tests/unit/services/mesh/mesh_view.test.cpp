#include "services/mesh/mesh_view.hpp"

#include "messages/text.hpp"

#include <catch2/catch.hpp>

using namespace godwit;
using namespace std::chrono_literals;

namespace {

using moment = mesh_view::moment;
using changes = mesh_view::changes;

const node_name beta("beta");

struct said {
  std::string name = "beta";
  std::string state = "ready";
  std::vector<std::string> roles{};
  std::vector<std::pair<std::string, std::string>> actors{};
  std::string model = "m";
  std::string fingerprint = "f";
  std::uint32_t capacity = 0;

  letter<schema::NodeStatus> mail() const {
    return letter<schema::NodeStatus>::make([this](schema::NodeStatus::Builder b) {
      b.setName(name);
      b.setState(state);
      auto all = b.initRoles(static_cast<unsigned>(roles.size()));
      for (unsigned i = 0; i < roles.size(); ++i)
        all.set(i, roles[i]);
      auto parts = b.initActors(static_cast<unsigned>(actors.size()));
      for (unsigned i = 0; i < actors.size(); ++i) {
        parts[i].setName(actors[i].first);
        parts[i].setState(actors[i].second);
      }
      b.setModel(model);
      b.setFingerprint(fingerprint);
      b.setCapacity(capacity);
    });
  }
};

std::map<std::string, bool> usable(const said& what) {
  return usable_roles(what.mail().read());
}

struct fixture {
  mesh_view view{{{"m", "f"}}, {.again = 500ms, .refresh = 30s, .hint = 50ms}};

  fixture() { view.known(beta); }

  /// The node's answer to the question that is due.
  changes answer(const said& what, moment now) {
    const auto due = view.due(now);
    REQUIRE(due.size() == 1);
    return view.answered(due[0], what.mail().read(), now);
  }
};

} // namespace

TEST_CASE("a node that is ready serves its roles") {
  CHECK(usable({.roles = {"tokenizer", "gateway"}}) == std::map<std::string, bool>{{"tokenizer", false}});
  CHECK(usable({.roles = {"session"}}) == std::map<std::string, bool>{{"directory", false}});
  CHECK(usable({.roles = {"prefill", "decode", "cache"}}) == std::map<std::string, bool>{{"worker", false}});
  CHECK(usable({.roles = {"prefill"}}) == std::map<std::string, bool>{{"prompts", false}});
  CHECK(usable({.roles = {"decode", "cache"}})
        == std::map<std::string, bool>{{"intake", false}, {"worker", false}});
  CHECK(usable({.roles = {"decode"}}).empty());
  CHECK(usable({.roles = {"cache"}}).empty());
  CHECK(usable({.roles = {"all"}}).size() == 4);
  CHECK(usable({.roles = {"gateway"}}).empty());
}

TEST_CASE("a node that drains still serves, and one that has failed does not") {
  CHECK(usable({.state = "draining", .roles = {"router"}}) == std::map<std::string, bool>{{"router", true}});
  CHECK(usable({.state = "failed", .roles = {"router"}}).empty());
  // What still runs there can end, with the letters that it needs for that; what has stopped is of no use.
  CHECK(usable({.state = "failed",
          .roles = {"router", "tokenizer"},
          .actors = {{"router", "ready"}, {"tokenizer", "stopped"}}})
        == std::map<std::string, bool>{{"router", true}});
  CHECK(usable({.state = "draining",
          .roles = {"router", "tokenizer"},
          .actors = {{"router", "draining"}, {"tokenizer", "stopped"}}})
        == std::map<std::string, bool>{{"router", true}});
  CHECK(usable({.state = "whatever", .roles = {"router"}}).empty());
}

TEST_CASE("a node that is starting serves what is ready of it") {
  const said starting{.state = "starting",
    .roles = {"router", "tokenizer", "prefill", "decode"},
    .actors = {{"router", "starting"}, {"tokenizer", "ready"}, {"prefill", "ready"}}};
  CHECK(usable(starting) == std::map<std::string, bool>{{"tokenizer", false}});
}

TEST_CASE_METHOD(fixture, "a node that computes prompts is used while it takes new ones") {
  view.came(beta, 0ms);
  CHECK(answer({.state = "starting", .roles = {"prefill"}, .actors = {{"prefill", "ready"}}}, 0ms).empty());
  CHECK_FALSE(view.nodes().at(beta).prompts);
  CHECK(answer({.state = "starting", .roles = {"prefill"}, .actors = {{"prompts", "ready"}}}, 500ms).empty());
  CHECK(view.nodes().at(beta).prompts);
  CHECK_FALSE(view.nodes().at(beta).worker);
  view.hinted(beta, 1s);
  CHECK(answer({.state = "draining", .roles = {"prefill"}}, 1s).empty());
  CHECK_FALSE(view.nodes().at(beta).prompts);
  view.hinted(beta, 2s);
  answer({.roles = {"prefill"}}, 2s);
  CHECK(view.nodes().at(beta).prompts);
  view.went(beta, "it is silent");
  CHECK_FALSE(view.nodes().at(beta).prompts);
}

TEST_CASE_METHOD(fixture, "a worker that leaves prompts to others says so") {
  view.came(beta, 0ms);
  answer({.roles = {"decode", "cache"}, .capacity = 9}, 0ms);
  CHECK(view.nodes().at(beta).worker);
  CHECK(view.nodes().at(beta).intake);
  CHECK_FALSE(view.nodes().at(beta).prompts);
  CHECK(view.nodes().at(beta).capacity == 9);
}

TEST_CASE_METHOD(fixture, "a node that comes up is asked at once, and once") {
  CHECK(view.next() == moment::max());
  CHECK(view.due(0ms).empty());
  CHECK_FALSE(view.nodes().at(beta).up);
  view.came(beta, 7ms);
  CHECK(view.next() == 7ms);
  CHECK(view.due(7ms).size() == 1);
  CHECK(view.due(100s).empty());
  CHECK(view.next() == moment::max());
}

TEST_CASE_METHOD(fixture, "what a node says it serves is used, and asked again after a while") {
  view.came(beta, 0ms);
  CHECK(answer({.roles = {"tokenizer", "router"}}, 10ms)
        == changes{{beta, "router", true, false}, {beta, "tokenizer", true, false}});
  CHECK(view.nodes().at(beta).answered);
  CHECK(view.next() == 30'010ms);
  CHECK(view.due(30'009ms).empty());
  // No news is no change.
  CHECK(answer({.roles = {"tokenizer", "router"}}, 30'010ms).empty());
  CHECK(answer({.roles = {"tokenizer"}}, 60'010ms) == changes{{beta, "router", false, false}});
  CHECK(view.in_use("tokenizer") == changes{{beta, "tokenizer", true, false}});
  CHECK(view.in_use("router").empty());
}

TEST_CASE_METHOD(fixture, "a node that does not answer, or is starting, is asked again soon") {
  view.came(beta, 0ms);
  const auto due = view.due(0ms);
  view.failed(due.at(0), {errc::not_found, "no actor is called node here", {}, {}}, 20ms);
  CHECK(view.nodes().at(beta).why == "no actor is called node here");
  CHECK(view.next() == 520ms);
  CHECK(answer({.state = "starting", .roles = {"tokenizer"}}, 520ms).empty());
  CHECK(view.next() == 1020ms);
  CHECK(answer({.roles = {"tokenizer"}}, 1020ms).size() == 1);
  CHECK(view.nodes().at(beta).why.empty());
}

TEST_CASE_METHOD(fixture, "a node that stays as it is while it starts is asked less and less often") {
  const said waiting{
    .state = "starting", .roles = {"router", "tokenizer"}, .actors = {{"tokenizer", "ready"}}};
  view.came(beta, 0ms);
  auto now = 0ms;
  const auto pauses = [&](int count) {
    std::vector<moment> out;
    for (int i = 0; i < count; ++i) {
      answer(waiting, now);
      out.push_back(view.next() - now);
      now = view.next();
    }
    return out;
  };
  CHECK(pauses(7) == std::vector<moment>{500ms, 1s, 2s, 4s, 8s, 8s, 8s});
  // It says that it has changed: asked at once, and soon again.
  now -= 5s;
  view.hinted(beta, now);
  CHECK(view.next() == now);
  CHECK(pauses(3) == std::vector<moment>{500ms, 1s, 2s});
  // A part more is ready, which may not be the last.
  answer({.state = "starting",
           .roles = {"router", "tokenizer"},
           .actors = {{"router", "ready"}, {"tokenizer", "ready"}}},
    now);
  CHECK(view.next() == now + 500ms);
  // It comes anew.
  now = 100s;
  view.went(beta, "it is silent");
  view.came(beta, now);
  CHECK(pauses(3) == std::vector<moment>{500ms, 1s, 2s});
  answer({.roles = {"tokenizer"}}, now);
  CHECK(view.next() == now + 30s);
}

TEST_CASE_METHOD(
  fixture, "a node that does not answer is asked less and less often, until it says something") {
  view.came(beta, 0ms);
  auto now = 0ms;
  const auto fail = [&] {
    const auto due = view.due(now);
    REQUIRE(due.size() == 1);
    view.failed(due[0], {errc::not_found, "no actor is called node here", {}, {}}, now);
    return std::exchange(now, view.next()) - now;
  };
  for (const auto pause : {500ms, 1000ms, 2000ms, 4000ms, 8000ms, 8000ms}) {
    const auto before = now;
    fail();
    CHECK(now - before == pause);
  }
  now -= 1s;
  const auto due = [&] {
    view.hinted(beta, now);
    return view.due(now);
  }();
  REQUIRE(due.size() == 1);
  // What it says while it is asked is not forgotten when the question fails.
  view.hinted(beta, now + 1ms);
  view.failed(due[0], {errc::deadline, "too late", {}, {}}, now + 3s);
  CHECK(view.next() <= now + 3s);
}

TEST_CASE_METHOD(fixture, "one answer that is missing takes nothing away") {
  view.came(beta, 0ms);
  answer({.roles = {"tokenizer"}}, 0ms);
  const auto due = view.due(30s);
  view.failed(due.at(0), {errc::deadline, "too late", {}, {}}, 33s);
  CHECK(view.in_use("tokenizer").size() == 1);
  CHECK(view.next() == 33'500ms);
}

TEST_CASE_METHOD(fixture, "a node that goes takes its roles with it, when it comes back it is asked again") {
  view.came(beta, 0ms);
  answer({.roles = {"tokenizer", "prefill", "decode"}, .capacity = 9}, 0ms);
  CHECK(view.nodes().at(beta).worker);
  CHECK(view.nodes().at(beta).capacity == 9);
  CHECK(view.went(beta, "it is silent") == changes{{beta, "tokenizer", false, false}});
  CHECK_FALSE(view.nodes().at(beta).up);
  CHECK_FALSE(view.nodes().at(beta).worker);
  CHECK(view.nodes().at(beta).why == "it is silent");
  CHECK(view.next() == moment::max());
  view.came(beta, 5s);
  CHECK(answer({.roles = {"tokenizer"}}, 5s) == changes{{beta, "tokenizer", true, false}});
}

TEST_CASE_METHOD(fixture, "an answer to a question of an earlier conversation is of no use") {
  view.came(beta, 0ms);
  const auto old = view.due(0ms);
  view.went(beta, "it is silent");
  CHECK(view.answered(old.at(0), said{.roles = {"tokenizer"}}.mail().read(), 1s).empty());
  view.came(beta, 2s);
  CHECK(view.answered(old.at(0), said{.roles = {"tokenizer"}}.mail().read(), 2s).empty());
  CHECK_FALSE(view.current(old.at(0)));
  view.failed(old.at(0), {}, 2s);
  CHECK(view.due(2s).size() == 1);
}

TEST_CASE_METHOD(fixture, "an answer to a question from before a node left the list is of no use") {
  view.came(beta, 0ms);
  const auto old = view.due(0ms);
  view.forgotten(beta);
  view.known(beta);
  view.came(beta, 1s);
  const auto asked = view.due(1s);
  REQUIRE(asked.size() == 1);
  CHECK_FALSE(view.current(old.at(0)));
  CHECK(view.answered(old.at(0), said{.roles = {"tokenizer"}}.mail().read(), 1s).empty());
  view.failed(old.at(0), {errc::deadline, "too late", {}, {}}, 3s);
  // The one that is open stays the only one.
  CHECK(view.due(100s).empty());
  CHECK(view.answered(asked.at(0), said{.roles = {"tokenizer"}}.mail().read(), 101s).size() == 1);
}

TEST_CASE_METHOD(fixture, "a node that says it has changed is asked at once, but not without end") {
  view.came(beta, 0ms);
  answer({.roles = {"tokenizer"}}, 0ms);
  view.hinted(beta, 10s);
  CHECK(view.next() == 10s);
  const auto due = view.due(10s);
  REQUIRE(due.size() == 1);
  // While it is asked: once more after the answer, however often it says so.
  for (int i = 0; i < 10; ++i)
    view.hinted(beta, 10'001ms);
  view.answered(due[0], said{.roles = {"tokenizer"}}.mail().read(), 10'002ms);
  CHECK(view.next() == 10'050ms);
  answer({.roles = {"tokenizer"}}, 10'050ms);
  CHECK(view.next() == 40'050ms);
  view.hinted(node_name("nobody"), 0ms);
}

TEST_CASE_METHOD(fixture, "what is missing of a node is asked for again after a pause") {
  view.came(beta, 0ms);
  view.again(beta, 0ms); // it will be asked anyway
  CHECK(view.next() == 0ms);
  answer({.roles = {"prefill", "decode"}}, 0ms);
  view.again(beta, 1s);
  CHECK(view.next() == 1500ms);
}

TEST_CASE_METHOD(fixture, "a node that begins to drain is used otherwise") {
  view.came(beta, 0ms);
  answer({.roles = {"router"}}, 0ms);
  view.hinted(beta, 1s);
  CHECK_FALSE(view.nodes().at(beta).draining);
  CHECK(answer({.state = "draining", .roles = {"router"}}, 1s) == changes{{beta, "router", true, true}});
  CHECK(view.nodes().at(beta).draining);
  CHECK(view.in_use("router") == changes{{beta, "router", true, true}});
}

TEST_CASE_METHOD(fixture, "a node with another model is not used, and it is said why") {
  view.came(beta, 0ms);
  CHECK(answer({.roles = {"tokenizer", "prefill", "decode"}, .model = "n"}, 0ms).empty());
  CHECK(view.nodes().at(beta).why.find("another model: n") != std::string::npos);
  CHECK_FALSE(view.nodes().at(beta).worker);
  view.hinted(beta, 1s);
  CHECK(answer({.roles = {"tokenizer"}, .fingerprint = "g"}, 1s).empty());
  CHECK(view.nodes().at(beta).why.find("differ") != std::string::npos);
  // One that says nothing of it was let in by the link, which compares what both know.
  view.hinted(beta, 2s);
  CHECK(answer({.roles = {"tokenizer"}, .fingerprint = ""}, 2s).size() == 1);
  // A node that serves no model itself takes any.
  mesh_view any({}, {});
  any.known(beta);
  any.came(beta, 0ms);
  const auto due = any.due(0ms);
  CHECK(any.answered(due.at(0), said{.roles = {"tokenizer"}, .model = "n"}.mail().read(), 0ms).size() == 1);
}

TEST_CASE_METHOD(fixture, "a node that calls itself by another name is not believed") {
  view.came(beta, 0ms);
  CHECK(answer({.name = "gamma", .roles = {"tokenizer"}}, 0ms).empty());
  CHECK(view.next() == 500ms);
  CHECK_FALSE(view.nodes().at(beta).why.empty());
}

TEST_CASE_METHOD(fixture, "a node that leaves the list is known no more") {
  view.known(beta);
  view.came(beta, 0ms);
  answer({.roles = {"tokenizer"}}, 0ms);
  CHECK(view.forgotten(beta) == changes{{beta, "tokenizer", false, false}});
  CHECK(view.nodes().empty());
  CHECK(view.went(beta, "it was taken off the list").empty());
  CHECK(view.forgotten(beta).empty());
  // The link may have said so before it knew.
  view.came(beta, 1s);
  CHECK(view.nodes().empty());
  CHECK(view.due(1s).empty());
  CHECK(view.next() == moment::max());
  view.known(beta);
  view.came(beta, 2s);
  CHECK(view.nodes().at(beta).up);
  CHECK(answer({.roles = {"tokenizer"}}, 2s).size() == 1);
}
