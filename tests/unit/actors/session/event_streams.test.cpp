#include "actors/session/event_streams.hpp"
#include "actors/session/memory_journal.hpp"
#include "tests/unit/actors/session/journal_builder.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <deque>
#include <map>
#include <optional>

using namespace godwit;

namespace {

/// A session with its journal and streams; what was sent is kept by subscription.
class world {
 public:
  explicit world(std::size_t most = 64, std::size_t page = 3)
    : history_(id, page), streams(
                            machine, history_, most,
                            [this](std::uint64_t number, const letter<schema::EventBatch>& batch) {
                              for (const auto event : batch.read().getEvents()) {
                                ids[number].emplace_back(event.getId().cStr());
                                types[number].emplace_back(event.getType().cStr());
                                last_data = event.getData().cStr();
                              }
                              ended[number] = batch.read().getEnded();
                              errors[number] = batch.read().getErrorCode();
                            },
                            [this](journal_question question) {
                              if (slow)
                                questions.push_back(std::move(question));
                              else
                                question (*log)();
                            }) {}

  /// Writes what a journal has behind what we have, in appends of one record.
  void write(const journal_builder& journal) {
    for (auto i = machine.sequence(); i < journal.records.size(); ++i) {
      const auto& record = journal.records[i];
      if (record.sequence == 1)
        REQUIRE(log->open(id, tenant_id("t"), node_name("a"), {record.record}, false));
      else
        log->append(
          {id, record.sequence - 1, 1, {record.record}, false}, [](auto outcome) { REQUIRE(outcome); });
      const auto events = machine.apply(record);
      REQUIRE(events);
      history_.passed(machine.order());
      all.insert(all.end(), events->begin(), events->end());
      streams.committed(*events);
    }
  }

  /// A stream of what there is now, behind an event.
  result<std::uint64_t> open_past(std::uint32_t credit, const std::string& after = {}) {
    const auto request = letter<schema::SubscribeRequest>::make([&](schema::SubscribeRequest::Builder b) {
      b.setAfter(after);
      b.setCredit(credit);
      b.setPastOnly(true);
    });
    auto number = opened(request);
    if (number)
      streams.feed(*number);
    return number;
  }
  std::uint64_t open(
    std::uint32_t credit, const std::string& after = {}, turn_number only = 0, bool snapshot = false) {
    const auto number = try_open(credit, after, only, snapshot);
    REQUIRE(number);
    streams.feed(*number);
    return *number;
  }
  result<std::uint64_t> try_open(
    std::uint32_t credit, const std::string& after = {}, turn_number only = 0, bool snapshot = false) {
    const auto request = letter<schema::SubscribeRequest>::make([&](schema::SubscribeRequest::Builder b) {
      b.setAfter(after);
      b.setCredit(credit);
      b.setOnlyTurn(only);
      b.setSnapshot(snapshot);
    });
    return opened(request);
  }
  result<std::uint64_t> opened(const letter<schema::SubscribeRequest>& request) {
    result<std::uint64_t> number = fail(errc::internal, "no answer yet");
    streams.open(request.read(), [&](result<std::uint64_t> outcome) { number = std::move(outcome); });
    return number;
  }
  /// Lets the journal answer the oldest question.
  void answer() {
    REQUIRE(!questions.empty());
    const auto question = std::move(questions.front());
    questions.pop_front();
    question (*log)();
  }

  std::vector<std::string> all_ids(
    std::size_t from = 0, std::size_t count = static_cast<std::size_t>(-1)) const {
    std::vector<std::string> out;
    for (std::size_t i = from; i < all.size() && out.size() < count; ++i)
      out.push_back(machine.ids().text(all[i].place));
    return out;
  }

  session_id id{"ses_0123456789abcdef0123456789abcdef"};
  std::shared_ptr<memory_journal> log = std::make_shared<memory_journal>();
  session_machine machine{id};
  std::vector<session_event> all;
  std::map<std::uint64_t, std::vector<std::string>> ids;
  std::map<std::uint64_t, std::vector<std::string>> types;
  std::string last_data; ///< of the last event that anybody got
  std::map<std::uint64_t, bool> ended;
  std::map<std::uint64_t, int> errors;
  bool slow = false; ///< questions to the journal wait for answer()
  std::deque<journal_question> questions;

 private:
  event_history history_;

 public:
  event_streams streams;
};

journal_builder two_turns() {
  return journal_builder()
    .opened()
    .accepted(1, "one")
    .prompted(1, 0, {1})
    .accepted(2, "two")
    .released(1, 1, {5}, "a")
    .released(1, 2, {6}, "b")
    .ended(1, "stop")
    .prompted(2, 3, {7})
    .released(2, 4, {8}, "c")
    .ended(2, "stop");
}

} // namespace

TEST_CASE("a stream that is opened before, during or after gives the same events") {
  world w;
  auto journal = two_turns();
  auto half = journal;
  half.records.resize(5);
  w.write(journal_builder().opened());
  const auto early = w.open(100);
  w.write(half);
  const auto middle = w.open(100);
  w.write(journal);
  const auto late = w.open(100);
  CHECK(w.ids[early].size() == 9);
  CHECK(w.ids[early] == w.all_ids());
  CHECK(w.ids[middle] == w.all_ids());
  CHECK(w.ids[late] == w.all_ids());
  CHECK(!w.ended[late]);
}

TEST_CASE("a stream begins behind any event") {
  world w;
  w.write(two_turns());
  for (std::size_t i = 0; i < w.all.size(); ++i) {
    const auto number = w.open(100, w.all_ids()[i]);
    CHECK(w.ids[number] == w.all_ids(i + 1));
  }
  const auto end = w.machine.ids().text({4, event_place::end});
  CHECK(w.ids[w.open(100, end)] == w.all_ids(3));
}

TEST_CASE("a stream gets no more than its credit, falls behind, and catches up") {
  world w;
  w.write(journal_builder().opened());
  const auto slow = w.open(1);
  const auto fast = w.open(100);
  w.write(two_turns());
  CHECK(w.ids[slow] == w.all_ids(0, 1));
  CHECK(w.ids[fast] == w.all_ids());
  w.streams.grant(slow, 4);
  CHECK(w.ids[slow] == w.all_ids(0, 5));
  w.streams.grant(slow, 4'000'000'000);
  CHECK(w.ids[slow] == w.all_ids());
  auto more = two_turns();
  w.write(more.accepted(3, "three"));
  CHECK(w.ids[slow] == w.all_ids());
}

TEST_CASE("a turn's stream leaves out other turns and ends with it") {
  world w;
  auto journal = two_turns();
  auto half = journal;
  half.records.resize(5);
  w.write(half);
  const auto first = w.open(100, {}, 1);
  const auto second = w.open(100, {}, 2);
  w.write(journal);
  CHECK(w.types[first]
        == std::vector<std::string>{"message.accepted", "turn.started", "token", "token", "turn.completed"});
  CHECK(w.types[second]
        == std::vector<std::string>{"message.accepted", "turn.started", "token", "turn.completed"});
  CHECK(w.ended[first]);
  CHECK(w.ended[second]);
  CHECK(w.streams.size() == 0);
  // Again, from the past; and once everything was read.
  const auto again = w.open(100, {}, 2);
  CHECK(w.ids[again] == w.ids[second]);
  CHECK(w.ended[again]);
  const auto nothing = w.open(100, w.ids[second].back(), 2);
  CHECK(w.ids[nothing].empty());
  CHECK(w.ended[nothing]);
}

TEST_CASE("a snapshot stands at the last event, and what comes after it follows") {
  world w;
  auto journal = two_turns();
  w.write(journal);
  const auto number = w.open(0, {}, 0, true);
  CHECK(w.ids[number].empty());
  w.streams.grant(number, 10);
  CHECK(w.types[number] == std::vector<std::string>{"snapshot"});
  CHECK(w.ids[number].back() == w.all_ids().back());
  w.write(journal.accepted(3, "three"));
  CHECK(w.types[number] == std::vector<std::string>{"snapshot", "message.accepted", "turn.started"});
}

TEST_CASE("a snapshot tells the first place that the journal still has") {
  world w;
  w.write(two_turns());
  w.log->forget(w.id, 5);
  w.slow = true;
  const auto request = letter<schema::SubscribeRequest>::make([](schema::SubscribeRequest::Builder b) {
    b.setCredit(1);
    b.setSnapshot(true);
  });
  std::optional<std::uint64_t> number;
  w.streams.open(request.read(), [&](result<std::uint64_t> outcome) { number = outcome.value(); });
  CHECK(!number);
  w.answer();
  REQUIRE(number);
  w.streams.feed(*number);
  CHECK(w.types[*number] == std::vector<std::string>{"snapshot"});
  CHECK(w.last_data.find("\"oldest_event\":\"" + w.machine.ids().text({5, 0}) + "\"") != std::string::npos);
}

TEST_CASE("the end of a session ends its streams") {
  world w;
  auto journal = two_turns();
  w.write(journal);
  const auto number = w.open(100);
  const auto slow = w.open(1);
  w.write(journal.closed());
  CHECK(w.ended[number]);
  CHECK(!w.ended[slow]);
  w.streams.grant(slow, 100);
  CHECK(w.ids[slow] == w.all_ids());
  CHECK(w.ended[slow]);
  CHECK(w.ended[w.open(100)]);
}

TEST_CASE("bad places, unknown turns and too many streams are refused") {
  world w(2);
  w.write(two_turns());
  CHECK(w.try_open(1, "x").error().param == "after");
  CHECK(w.try_open(1, w.machine.ids().text({11, 0})).error().code == errc::invalid_argument);
  CHECK(w.try_open(1, {}, 3).error().code == errc::invalid_argument);
  const auto one = w.open(0);
  w.open(0);
  CHECK(w.try_open(1).error().code == errc::overloaded);
  CHECK(w.streams.drop(one, true) == 0);
  CHECK(w.try_open(1));
}

TEST_CASE("a client that leaves cancels its turn only if its message said so") {
  const auto post = [](bool cancel) {
    return letter<schema::PostMessage>::make(
      [&](schema::PostMessage::Builder b) { b.setCancelOnDisconnect(cancel); });
  };
  world w;
  w.write(journal_builder()
            .opened()
            .add(accepted_record(1, post(true).read(), 0))
            .add(accepted_record(2, post(false).read(), 0)));
  CHECK(w.streams.drop(w.open(1, {}, 1), false) == 0);
  CHECK(w.streams.drop(w.open(1), true) == 0);
  CHECK(w.streams.drop(w.open(1, {}, 2), true) == 0);
  CHECK(w.streams.drop(w.open(1, {}, 1), true) == 1);
  CHECK(w.streams.drop(99, true) == 0);
}

TEST_CASE("a journal that cannot be read ends the stream with the error") {
  world w;
  w.write(two_turns());
  const auto number = w.open(1);
  w.log->fail_next(memory_journal::call::read, {errc::io, "no", "", ""}, 5);
  w.streams.grant(number, 100);
  CHECK(w.ended[number]);
  CHECK(w.errors[number] == static_cast<int>(errc::io));
}

TEST_CASE("records that are gone say so") {
  world w;
  w.write(two_turns());
  const auto number = w.open(1);
  w.log->fail_next(memory_journal::call::read, {errc::gone, "not kept", "after", ""}, 5);
  w.streams.grant(number, 100);
  CHECK(w.errors[number] == static_cast<int>(errc::gone));
}

TEST_CASE("a stream of past events ends behind the last one, also while a turn runs") {
  world w;
  auto journal = journal_builder().opened().accepted(1, "one").prompted(1, 0, {1}).released(1, 1, {5}, "a");
  w.write(journal);
  const auto all = w.open_past(100);
  REQUIRE(all);
  CHECK(w.ids[*all] == w.all_ids());
  CHECK(w.ended[*all]);
  CHECK(w.errors[*all] == 0);
  const auto nothing = w.open_past(100, w.all_ids().back());
  REQUIRE(nothing);
  CHECK(w.ids[*nothing].empty());
  CHECK(w.ended[*nothing]);
  CHECK(w.streams.size() == 0);

  // One that reads slowly does not get what comes meanwhile.
  const auto slow = w.open_past(1);
  REQUIRE(slow);
  CHECK_FALSE(w.ended[*slow]);
  const auto before = w.all_ids();
  journal.released(1, 2, {6}, "b");
  w.write(journal);
  w.streams.grant(*slow, 100);
  CHECK(w.ids[*slow] == before);
  CHECK(w.ended[*slow]);
  CHECK_FALSE(w.open_past(100, "no-id"));
}

TEST_CASE("a place before what is kept is gone, and the history knows the oldest one") {
  world w(64, 100);
  w.write(two_turns());
  const event_pages pages(w.id, 3);
  CHECK(pages.oldest(*w.log).value() == 1);
  w.log->forget(w.id, 5);
  CHECK(pages.oldest(*w.log).value() == 5);
  const auto refused = w.try_open(100, w.all_ids().front());
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == errc::gone);
}

TEST_CASE("the marks of a long history stay few, and reading from any place is right") {
  world w(64, 100);
  journal_builder journal;
  journal.opened().accepted(1, "one").prompted(1, 0, {1});
  for (position_t i = 1; i <= 40'000; ++i)
    journal.released(1, i, {5}, "a");
  event_history history(w.id, 100);
  const auto& pages = history.pages();
  event_maker order;
  std::vector<journal_record> records;
  for (const auto& record : journal.records) {
    records.push_back(record.record);
    REQUIRE(order.apply(record));
    history.passed(order);
  }
  CHECK(history.marks() <= 64);
  REQUIRE(w.log->open(w.id, tenant_id("t"), node_name("a"), records, true));
  for (const sequence_number sequence : {3U, 4U, 255U, 256U, 257U, 20'000U, 40'003U}) {
    const event_place at{sequence, event_place::end};
    const auto place = pages.seek(*w.log, history.before(at), at);
    REQUIRE(place);
    CHECK(place->order.sequence() == sequence);
    CHECK(place->events.empty());
  }
  const event_place at{30'000, event_place::end};
  CHECK(history.before(at).sequence() > 20'000);
  auto place = pages.seek(*w.log, history.before(at), at);
  const auto next = pages.next(*w.log, place->order, 40'003);
  REQUIRE(next->size() == 100);
  CHECK(next->front().place == event_place{30'001, 0});
}

TEST_CASE("while the journal is asked for the past, streams miss nothing and get nothing twice") {
  world w(3);
  auto journal = two_turns();
  w.write(journal);
  w.slow = true;
  const auto behind = w.open(4);
  const auto other = w.open(0);
  REQUIRE(w.questions.size() == 2);
  CHECK(w.ids[behind].empty());
  // What is committed, granted and asked for meanwhile waits for the answer.
  w.streams.grant(behind, 2);
  w.write(journal.accepted(3, "three"));
  CHECK(w.questions.size() == 2);
  w.answer();
  CHECK(w.ids[behind].empty()); // the next page
  while (!w.questions.empty())
    w.answer();
  CHECK(w.ids[behind] == w.all_ids(0, 6));
  w.streams.grant(behind, 100);
  w.streams.grant(other, 3);
  while (!w.questions.empty())
    w.answer();
  CHECK(w.ids[behind] == w.all_ids());
  CHECK(w.ids[other] == w.all_ids(0, 3));
  // A live one needs no journal.
  w.write(journal.accepted(4, "four"));
  CHECK(w.ids[behind] == w.all_ids());

  // A stream that is given up while the journal is asked stays so, and one that is being opened counts.
  w.streams.grant(other, 100);
  REQUIRE(w.questions.size() == 1);
  w.streams.drop(other, false);
  w.answer();
  CHECK(w.ids[other] == w.all_ids(0, 3));
  std::vector<result<std::uint64_t>> opened;
  const auto request = letter<schema::SubscribeRequest>::make([&](schema::SubscribeRequest::Builder b) {
    b.setAfter(w.all_ids()[5]);
    b.setCredit(100);
  });
  for (int i = 0; i < 3; ++i)
    w.streams.open(
      request.read(), [&](result<std::uint64_t> number) { opened.push_back(std::move(number)); });
  REQUIRE(opened.size() == 1);
  CHECK(opened[0].error().code == errc::overloaded);
  while (!w.questions.empty())
    w.answer();
  REQUIRE(opened.size() == 3);
  REQUIRE(opened[2]);
  w.streams.feed(*opened[2]);
  while (!w.questions.empty())
    w.answer();
  CHECK(w.ids[*opened[2]] == w.all_ids(6));
}
