#include "services/mesh/registry_view.hpp"

#include <catch2/catch.hpp>

using namespace godwit;
using namespace std::chrono_literals;

namespace {

tabled_node node(const std::string& name, std::chrono::milliseconds age, std::uint64_t incarnation = 1) {
  tabled_node out;
  out.record.name = node_name(name);
  out.record.incarnation = incarnation;
  out.age = age;
  return out;
}

/// "+a" for one that came or changed, "-a" for one that went.
std::string told(const std::vector<registry_change>& changes) {
  std::string out;
  for (const auto& each : changes)
    out += (out.empty() ? "" : " ") + std::string(each.there ? "+" : "-") + each.node.name.value;
  return out;
}

} // namespace

TEST_CASE("nodes that beat are listed, but for this one") {
  registry_view view(node_name("self"), 5s);
  CHECK(told(view.read({node("a", 0s), node("self", 0s), node("b", 5s)}, 1s)) == "+a +b");
  CHECK(told(view.read({node("a", 1s), node("self", 0s), node("b", 2s)}, 2s)).empty());
  CHECK(view.listed().size() == 2);
}

TEST_CASE("a node whose beat is older than the limit is not listed") {
  registry_view view(node_name("self"), 5s);
  CHECK(told(view.read({node("old", 5'001ms)}, 1s)).empty());
  CHECK(told(view.read({node("a", 0s)}, 2s)) == "+a");
  CHECK(told(view.read({node("a", 5'001ms)}, 8s)) == "-a");
  // It goes on: it is there again.
  CHECK(told(view.read({node("a", 0s, 2)}, 20s)) == "+a");
}

TEST_CASE("a node that has left the table is not listed") {
  registry_view view(node_name("self"), 5s);
  CHECK(told(view.read({node("a", 0s)}, 1s)) == "+a");
  CHECK(told(view.read({}, 2s)) == "-a");
}

TEST_CASE("another incarnation, key or address is a change, and another age is none") {
  registry_view view(node_name("self"), 5s);
  view.read({node("a", 0s)}, 1s);
  CHECK(told(view.read({node("a", 3s)}, 2s)).empty());
  CHECK(told(view.read({node("a", 0s, 2)}, 3s)) == "+a");
  auto moved = node("a", 0s, 2);
  moved.record.endpoints.letters = "tcp://10.0.0.8:1";
  CHECK(told(view.read({moved}, 4s)) == "+a");
}

TEST_CASE("after the table was away nobody is taken off until all have had time to beat") {
  registry_view view(node_name("self"), 5s);
  view.read({node("a", 0s), node("b", 0s)}, 1s);
  CHECK(view.next() == registry_view::moment::max());
  view.away(60s);
  // It is back, and shows the beats of before; of one the record is gone.
  CHECK(told(view.read({node("a", 59s)}, 61s)).empty());
  CHECK(view.listed().size() == 2);
  CHECK(view.next() == 70s);
  // One beats again, the other has died meanwhile.
  CHECK(told(view.read({node("a", 1s), node("b", 68s)}, 69'999ms)).empty());
  CHECK(told(view.read({node("a", 1s), node("b", 69s)}, 70s)) == "-b");
  CHECK(view.next() == registry_view::moment::max());
}

TEST_CASE("a table that comes and goes takes nobody off, and lets new ones in") {
  registry_view view(node_name("self"), 5s);
  view.read({node("a", 0s)}, 1s);
  std::string all;
  for (auto now = registry_view::moment(2s); now < 100s; now += 3s) {
    view.away(now);
    all += told(view.read({node("a", now), node("b", 0s)}, now + 1s));
  }
  CHECK(all == "+b");
}

TEST_CASE("a name can be had when its holder beats no more") {
  name_watch dead;
  CHECK_FALSE(dead.beats("other", 17));
  CHECK_FALSE(dead.beats("other", 17));
  name_watch alive;
  CHECK_FALSE(alive.beats("other", 17));
  CHECK(alive.beats("other", 18));
  // One that took it meanwhile has to be seen to beat as well.
  name_watch taken;
  CHECK_FALSE(taken.beats("other", 17));
  CHECK_FALSE(taken.beats("third", 18));
  CHECK(taken.beats("third", 19));
}
