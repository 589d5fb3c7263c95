#include "actors/session/fork.hpp"
#include "actors/session/memory_journal.hpp"
#include "tests/support/toy_model.hpp"
#include "tests/unit/actors/session/journal_builder.hpp"

#include <catch2/catch.hpp>

using namespace godwit;

namespace {

const session_id parent_id{"ses_0123456789abcdef0123456789abcdef"};
const session_id child_id{"ses_00000000000000000000000000000000"};
const auto vocabulary = std::make_shared<toy_text>();

class world {
 public:
  explicit world(const journal_builder& journal) {
    std::vector<journal_record> records;
    for (const auto& placed : journal.records) {
      records.push_back(placed.record);
      REQUIRE(parent.apply(placed));
    }
    REQUIRE(log.open(parent_id, tenant_id("t"), node_name("a"), records, false));
  }

  result<letter<schema::SessionInfo>> fork(const std::string& at, std::size_t most = 1'000) {
    return fork_session(
      log, parent, at, {child_id, {node_name("b"), "i2", "f1"}, 90'000, vocabulary, most, 2});
  }

  session_machine child() {
    session_machine machine(child_id);
    const auto records = log.read(child_id, 1, 1'000);
    REQUIRE(records);
    for (const auto& record : *records)
      REQUIRE(machine.apply(record));
    return machine;
  }

  memory_journal log;
  session_machine parent{parent_id};
};

journal_builder two_turns() {
  return journal_builder()
    .opened(schema::OnBusy::QUEUE, {}, 60)
    .claimed("a", 1)
    .accepted(1, "one", "k1")
    .prompted(1, 0, {1, 2})
    .released(1, 2, {'x', 'y'}, "xy")
    .ended(1, "stop")
    .accepted(2, "two", "k2")
    .prompted(2, 4, {7})
    .released(2, 5, {'z', 0xe2}, "z");
}

} // namespace

TEST_CASE("a fork at a finished turn holds what came before, and nothing of the parent afterwards") {
  world w(two_turns());
  const auto info = w.fork("1");
  REQUIRE(info);
  CHECK(std::string(info->read().getId().cStr()) == child_id.value);
  CHECK(info->read().getTurns() == 1);
  CHECK(std::string(info->read().getStatus().cStr()) == "idle");
  CHECK(std::string(info->read().getForkedFrom().cStr()) == parent_id.value);
  CHECK(std::string(info->read().getForkedAt().cStr()) == w.parent.ids().text({6, event_place::end}));
  CHECK(std::string(info->read().getOwnerNode().cStr()) == "b");
  CHECK(info->read().getCreatedAt() == 90);
  CHECK(info->read().getExpiresAt() == 150);
  REQUIRE(w.log.erase(parent_id));
  const auto child = w.child();
  CHECK(child.find(1)->answer == "xy");
  CHECK(child.tokens() == std::vector<token_id>{1, 2, 'x', 'y'});
  CHECK(child.tokens_are_ours());
  CHECK(child.find_key("k1") != nullptr);
  CHECK(child.find_key("k2") == nullptr);
  CHECK(w.log.head(child_id)->epoch == 1);
  CHECK(!w.log.head(child_id)->running);
}

TEST_CASE("a fork in the middle of a turn ends it there and says so") {
  for (const auto* at : {"", "2", "event"}) {
    world w(two_turns());
    const auto place = at == std::string("event") ? w.parent.ids().text({9, 0}) : std::string(at);
    REQUIRE(w.fork(place));
    const auto child = w.child();
    CHECK(child.running() == 0);
    CHECK(child.find(2)->now == session_turn::state::cancelled);
    // The character that had not ended is shown as what it is.
    CHECK(child.find(2)->answer == "z\uFFFD");
    CHECK(child.conversation() == std::vector<turn_number>{1, 2});
    const auto records = *w.log.read(child_id, 10, 1);
    REQUIRE(records.front().record.read().isCancelled());
    CHECK(records.front().record.read().getCancelled().getCause() == schema::EndCause::FORKED);
  }
}

TEST_CASE("a fork leaves out messages that were waiting") {
  auto journal = two_turns();
  world w(journal.accepted(3, "three").accepted(4, "four"));
  REQUIRE(w.fork(""));
  CHECK(w.child().turns().size() == 2);
  world early(
    journal_builder().opened().accepted(1, "one").accepted(2, "two").prompted(1, 0, {1}).ended(1, "stop"));
  REQUIRE(early.fork("1"));
  CHECK(early.child().turns().size() == 1);
  CHECK(early.child().running() == 0);
}

TEST_CASE("a place that is none is refused") {
  world w(two_turns());
  const auto refused = [&](const std::string& at) {
    const auto info = w.fork(at);
    return !info && info.error().code == errc::invalid_argument && info.error().param == "at";
  };
  CHECK(refused("77"));
  CHECK(refused("0"));
  CHECK(refused("-1"));
  CHECK(refused("one"));
  CHECK(refused("1 "));
  CHECK(refused("99999999999999"));
  CHECK(refused(w.parent.ids().text({10, 0})));
  CHECK(refused(event_ids(child_id).text({1, 0})));
  CHECK(w.log.head(child_id).error().code == errc::not_found);
}

TEST_CASE("a session that is too long or closed is not forked") {
  world w(two_turns());
  CHECK(w.fork("", 5).error().code == errc::too_large);
  world closed(journal_builder().opened().closed());
  CHECK(closed.fork("").error().reason == "session_closed");
}
