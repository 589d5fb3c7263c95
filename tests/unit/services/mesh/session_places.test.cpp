// Which of several nodes with sessions may have them.

#include "services/mesh/mesh_view.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

using namespace godwit;
using namespace std::chrono_literals;

namespace {

const node_name beta("beta");

struct peer {
  std::vector<std::string> roles{"session"};
  std::int64_t started_at = 1'000;
  std::optional<double> shared{}; ///< the gauge of its journal; nothing: it does not tell
  std::string journal = "ready";

  letter<schema::NodeStatus> mail() const {
    return letter<schema::NodeStatus>::make([this](schema::NodeStatus::Builder b) {
      b.setName("beta");
      b.setState("ready");
      b.setStartedAt(started_at);
      auto all = b.initRoles(static_cast<unsigned>(roles.size()));
      for (unsigned i = 0; i < roles.size(); ++i)
        all.set(i, roles[i]);
      if (!shared)
        return;
      auto parts = b.initActors(1);
      parts[0].setName("journal");
      parts[0].setState(journal);
      auto gauges = parts[0].initGauges(1);
      gauges[0].setName("shared");
      gauges[0].setValue(*shared);
    });
  }
};

/// What a node makes of a peer: whether it uses its directory, and whether it may have sessions itself.
struct verdict {
  bool directory = false;
  bool refused = false;

  bool operator==(const verdict&) const = default;
};

verdict meet(session_store ours, std::int64_t started_at, const peer& other) {
  mesh_view view({}, {}, {ours, node_name("alpha"), started_at});
  view.known(beta);
  view.came(beta, 0ms);
  const auto due = view.due(0ms);
  REQUIRE(due.size() == 1);
  const auto changes = view.answered(due[0], other.mail().read(), 0ms);
  const bool used =
    std::ranges::any_of(changes, [](const auto& each) { return each.name == "directory" && each.there; });
  return {used, !view.sessions_refused().empty()};
}

constexpr verdict together{true, false};
constexpr verdict we_are_wrong{false, true};
constexpr verdict it_is_wrong{false, false};

} // namespace

TEST_CASE("nodes that share a journal have sessions together") {
  CHECK(meet(session_store::shared, 5, {.shared = 1}) == together);
  CHECK(meet(session_store::shared, 5'000, {.shared = 1}) == together);
}

TEST_CASE("a node without sessions uses whoever has some") {
  for (const double shared : {0, 1})
    CHECK(meet(session_store::none, 5, {.shared = shared}) == together);
}

TEST_CASE("of two nodes with a journal of their own the one that started later is refused") {
  const peer other{.started_at = 1'000, .shared = 0};
  CHECK(meet(session_store::own, 999, other) == it_is_wrong);
  CHECK(meet(session_store::own, 1'001, other) == we_are_wrong);
  // At the same second by name: alpha is before beta.
  CHECK(meet(session_store::own, 1'000, other) == it_is_wrong);
}

TEST_CASE("a journal of its own is wrong beside a shared one, whoever came first") {
  CHECK(meet(session_store::own, 5, {.shared = 1}) == we_are_wrong);
  CHECK(meet(session_store::shared, 5, {.shared = 0}) == it_is_wrong);
  CHECK(meet(session_store::shared, 5'000, {.shared = 0}) == it_is_wrong);
}

TEST_CASE("a node that does not tell of its journal is taken for one with its own") {
  CHECK(meet(session_store::own, 5'000, {}) == we_are_wrong);
  CHECK(meet(session_store::shared, 5'000, {}) == it_is_wrong);
}

TEST_CASE("nodes without the role session are no matter") {
  CHECK(meet(session_store::own, 5'000, {.roles = {"gateway"}}) == it_is_wrong);
}

TEST_CASE("a node that must not have sessions is not asked for them") {
  CHECK(meet(session_store::none, 5, {.shared = 0, .journal = "waiting"}).directory == false);
}

TEST_CASE("a node may have sessions again when the other has gone") {
  mesh_view view({}, {}, {session_store::own, node_name("alpha"), 5'000});
  view.known(beta);
  view.came(beta, 0ms);
  view.answered(view.due(0ms).at(0), peer{.shared = 0}.mail().read(), 0ms);
  CHECK(view.sessions_refused().find("the node beta has the role session too") == 0);
  view.went(beta, "it is gone");
  CHECK(view.sessions_refused().empty());
}
