// How requests become transactions, against a database that is a map. It is written from the text of the
// statements (schema.cpp), not from the code under test.

#include "services/journal/postgres/batch.hpp"

#include "tests/unit/services/journal/records.hpp"

#include <catch2/catch.hpp>

#include <map>
#include <random>

using namespace godwit;
using namespace godwit::test;
using namespace godwit::postgres;
using change = write_request::change;

namespace {

struct fake_database {
  struct entry {
    journal_head head;
    std::vector<std::pair<std::string, std::string>> records; ///< text and mark
  };
  std::map<session_id, entry> sessions;

  static std::string text_of(const journal_record& record) {
    return record.read().getClosed().getCause().cStr();
  }

  answers run(const plan& what, const std::string& mark) {
    answers out;
    for (const auto& one : what.looks) {
      answers::found found;
      if (const auto place = sessions.find(one.session); place != sessions.end()) {
        found.head = place->second.head;
        const auto& records = place->second.records;
        found.ours = one.place > 0 && one.place <= records.size() && records[one.place - 1].second == mark;
      }
      out.looks.push_back(std::move(found));
    }
    for (const auto& one : what.changes) {
      const auto place = sessions.find(one.session);
      if (place == sessions.end() || place->second.head.sequence != one.expected
          || place->second.head.epoch != one.epoch) {
        out.changes.emplace_back();
        continue;
      }
      auto& head = place->second.head;
      head.sequence = one.next;
      head.epoch = one.next_epoch;
      head.owner = one.owner.value_or(head.owner);
      head.running = one.running.value_or(head.running);
      for (const auto* record : one.records)
        place->second.records.emplace_back(text_of(*record), mark);
      REQUIRE(place->second.records.size() == head.sequence);
      out.changes.emplace_back(head);
    }
    for (const auto& one : what.opens) {
      const auto [place, fresh] = sessions.try_emplace(one.session);
      out.opens.push_back(fresh);
      if (!fresh)
        continue;
      place->second.head = {one.session, one.tenant, one.records.size(), 1, one.owner, one.running, false};
      for (const auto* record : one.records)
        place->second.records.emplace_back(text_of(*record), mark);
    }
    for (const auto& one : what.erases)
      out.erases.push_back(sessions.erase(one) > 0);
    return out;
  }

  std::vector<std::string> texts(const session_id& of) {
    std::vector<std::string> out;
    for (const auto& [text, mark] : sessions[of].records)
      out.push_back(text);
    return out;
  }

  void make(const session_id& of, std::vector<std::string> texts) {
    auto& one = sessions[of];
    one.head = {of, tenant, texts.size(), 1, node_a, false, false};
    for (auto& text : texts)
      one.records.emplace_back(std::move(text), "before");
  }
};

write_request append(
  const session_id& to, sequence_number expected, std::vector<std::string> texts, epoch_t epoch = 1) {
  write_request out;
  out.what = change::append;
  out.session = to;
  out.expected = expected;
  out.epoch = epoch;
  for (const auto& text : texts)
    out.records.push_back(record(text));
  return out;
}

write_request opened(const session_id& to, const std::string& text) {
  auto out = append(to, 0, {text});
  out.what = change::open;
  out.tenant = tenant;
  out.owner = node_a;
  return out;
}

write_request claim(const session_id& to, epoch_t epoch, const node_name& owner) {
  auto out = append(to, 0, {"claimed by " + owner.value}, epoch);
  out.what = change::claim;
  out.owner = owner;
  return out;
}

write_request erase(const session_id& to) {
  write_request out;
  out.what = change::erase;
  out.session = to;
  return out;
}

class requests {
 public:
  requests(std::initializer_list<write_request> list) : all_(list) {
    for (const auto& one : all_)
      pointers_.push_back(&one);
  }
  const std::vector<const write_request*>& pointers() const { return pointers_; }

 private:
  std::vector<write_request> all_;
  std::vector<const write_request*> pointers_;
};

const auto nobody = [](const session_id&) { return false; };

/// @returns how many transactions it took
std::size_t run(write_batch& work, fake_database& database) {
  for (std::size_t count = 0;; ++count) {
    REQUIRE(count < 1000);
    const auto step = work.next();
    if (step.size() == 0)
      return count;
    work.committed(step, database.run(step, "ours"));
  }
}

std::vector<std::string> codes(write_batch& work) {
  std::vector<std::string> out;
  for (const auto& verdict : work.take_verdicts())
    out.push_back(verdict ? std::to_string(verdict->sequence) : std::string(to_string(verdict.error().code)));
  return out;
}

const session_id one = session(1);
const session_id two = session(2);
using words = std::vector<std::string>;

} // namespace

TEST_CASE("appends to many sessions, and those behind one another, are one transaction") {
  fake_database database;
  database.make(one, {"a"});
  database.make(two, {"b"});
  const requests all{
    append(one, 1, {"c"}), append(two, 1, {"d", "e"}), append(one, 2, {"f"}), append(one, 3, {"g", "h"})};
  write_batch work(all.pointers(), nobody);
  CHECK(run(work, database) == 1);
  CHECK(codes(work) == words{"2", "3", "3", "5"});
  CHECK(database.texts(one) == words{"a", "c", "f", "g", "h"});
  CHECK(database.texts(two) == words{"b", "d", "e"});
}

TEST_CASE("of requests for the same place the first wins and the others are stale") {
  fake_database database;
  database.make(one, {"a"});
  const requests all{
    append(one, 1, {"x"}), append(one, 1, {"y"}), append(one, 2, {"z"}), append(one, 2, {"w"})};
  write_batch work(all.pointers(), nobody);
  run(work, database);
  CHECK(codes(work) == words{"2", "stale_sequence", "3", "stale_sequence"});
  CHECK(database.texts(one) == words{"a", "x", "z"});
}

TEST_CASE("what the database does not take is judged by the head that it has") {
  fake_database database;
  database.make(one, {"a", "b"});
  database.sessions[one].head.epoch = 3;
  const requests all{append(one, 1, {"x"}, 3), append(one, 2, {"y"}, 2), append(one, 2, {"z"}, 3),
    append(two, 1, {"u"}), claim(two, 1, node_b), erase(two)};
  write_batch work(all.pointers(), nobody);
  run(work, database);
  CHECK(codes(work) == words{"stale_sequence", "stale_epoch", "3", "not_found", "not_found", "not_found"});
  CHECK(database.texts(one) == words{"a", "b", "z"});
}

TEST_CASE("a session can be opened, written, claimed, erased and opened again in one group") {
  fake_database database;
  const requests all{opened(one, "a"), opened(one, "x"), append(one, 1, {"b"}), claim(one, 1, node_b),
    append(one, 3, {"old"}), append(one, 3, {"c"}, 2), erase(one), append(one, 4, {"y"}, 2),
    opened(one, "new")};
  write_batch work(all.pointers(), nobody);
  run(work, database);
  CHECK(codes(work) == words{"1", "conflict", "2", "3", "stale_epoch", "4", "0", "not_found", "1"});
  CHECK(database.texts(one) == words{"new"});
  CHECK(database.sessions[one].head.epoch == 1);
}

TEST_CASE("a claim tells the head that it made") {
  fake_database database;
  database.make(one, {"a"});
  database.sessions[one].head.running = true;
  const requests all{claim(one, 1, node_b), claim(one, 1, node_a)};
  write_batch work(all.pointers(), nobody);
  run(work, database);
  const auto verdicts = work.take_verdicts();
  REQUIRE(verdicts[0]);
  CHECK(verdicts[0]->epoch == 2);
  CHECK(verdicts[0]->owner == node_b);
  CHECK(verdicts[0]->sequence == 2);
  CHECK(verdicts[0]->running);
  CHECK(verdicts[1].error().code == errc::stale_epoch);
}

TEST_CASE("quarantined sessions can only be erased") {
  fake_database database;
  database.make(one, {"a"});
  database.make(two, {"b"});
  const requests all{append(one, 1, {"x"}), append(two, 1, {"c"}), erase(one), opened(one, "x")};
  write_batch work(all.pointers(), [&](const session_id& which) { return which == one; });
  run(work, database);
  CHECK(codes(work) == words{"quarantined", "2", "0", "quarantined"});
  CHECK(database.sessions.count(one) == 0);
}

TEST_CASE("a transaction without an answer that went in is found by its mark") {
  fake_database database;
  database.make(one, {"a"});
  database.make(two, {"b"});
  const session_id three = session(3);
  database.make(three, {"c"});
  const requests all{append(one, 1, {"x"}), append(one, 2, {"y"}), claim(two, 1, node_b), erase(three),
    opened(session(4), "d")};
  write_batch work(all.pointers(), nobody);
  auto step = work.next();
  if (!step.looks.empty() && step.changes.size() == 1) {
    // The claim's head is read beside the first writes; lose the answer of the second transaction, too.
    database.run(step, "ours");
    work.unknown(step);
    CHECK(work.doubtful());
    CHECK(work.doubtful_sessions().size() == 3);
    step = work.next();
    CHECK(step.settles);
    CHECK(step.changes.empty());
    CHECK(step.opens.empty());
    CHECK(step.erases.empty());
    work.committed(step, database.run(step, "ours"));
    step = work.next();
    REQUIRE(step.changes.size() == 1);
    database.run(step, "ours");
    work.unknown(step);
  }
  run(work, database);
  CHECK(codes(work) == words{"2", "3", "2", "0", "1"});
  CHECK(database.texts(one) == words{"a", "x", "y"});
  CHECK(database.texts(two) == words{"b", "claimed by b"});
  CHECK(database.sessions[two].head.epoch == 2);
}

TEST_CASE("a transaction without an answer that did not go in is written again") {
  fake_database database;
  database.make(one, {"a"});
  const requests all{append(one, 1, {"x"}), opened(two, "b")};
  write_batch work(all.pointers(), nobody);
  work.unknown(work.next());
  run(work, database);
  CHECK(codes(work) == words{"2", "1"});
  CHECK(database.texts(one) == words{"a", "x"});
  CHECK(database.texts(two) == words{"b"});
}

TEST_CASE("a transaction without an answer in whose place another wrote is stale") {
  fake_database database;
  database.make(one, {"a"});
  const requests all{append(one, 1, {"x"}), opened(two, "b"), claim(session(3), 1, node_b)};
  database.make(session(3), {"c"});
  write_batch work(all.pointers(), nobody);
  auto step = work.next();
  work.unknown(step);
  // Another node, meanwhile.
  database.sessions[one].records.emplace_back("theirs", "theirs");
  database.sessions[one].head.sequence = 2;
  database.make(two, {"theirs"});
  database.sessions[session(3)].head.epoch = 2;
  run(work, database);
  CHECK(codes(work) == words{"stale_sequence", "conflict", "stale_epoch"});
  CHECK(database.texts(one) == words{"a", "theirs"});
}

TEST_CASE("a transaction that arrives after it was found missing counts once") {
  fake_database database;
  database.make(one, {"a"});
  database.make(session(3), {"c"});
  const requests all{append(one, 1, {"x", "y"}), opened(two, "b"), erase(session(3))};
  write_batch work(all.pointers(), nobody);
  const auto first = work.next();
  work.unknown(first);
  auto step = work.next();
  CHECK(step.settles);
  work.committed(step, database.run(step, "ours"));
  step = work.next();
  REQUIRE(step.changes.size() == 1);
  // Now what the dead connection had sent gets through, just before the second try.
  database.run(first, "ours");
  work.committed(step, database.run(step, "ours"));
  run(work, database);
  CHECK(codes(work) == words{"3", "1", "0"});
  CHECK(database.texts(one) == words{"a", "x", "y"});
  CHECK(database.texts(two) == words{"b"});
  CHECK(database.sessions.count(session(3)) == 0);
}

TEST_CASE("a step that the database rejects does not take the others with it") {
  fake_database database;
  database.make(one, {"a"});
  database.make(two, {"b"});
  const requests all{append(one, 1, {"bad"}), append(one, 2, {"c"}), append(two, 1, {"d"})};
  write_batch work(all.pointers(), nobody);
  for (std::size_t count = 0; count < 20; ++count) {
    const auto step = work.next();
    if (step.size() == 0)
      break;
    if (!step.changes.empty() && fake_database::text_of(*step.changes[0].records[0]) == "bad")
      work.rejected(step, {errc::io, "bad", "", ""});
    else
      work.committed(step, database.run(step, "ours"));
  }
  CHECK(codes(work) == words{"io", "io", "2"});
  CHECK(database.texts(one) == words{"a"});
  CHECK(database.texts(two) == words{"b", "d"});
}

TEST_CASE("giving up tells what may have gone in from what did not") {
  fake_database database;
  database.make(one, {"a"});
  const requests all{append(one, 1, {"x"}), append(one, 7, {"y"}), append(two, 1, {"z"})};
  write_batch work(all.pointers(), nobody);
  auto step = work.next();
  step.changes.erase(step.changes.begin() + 1);
  work.unknown(step);
  CHECK(work.doubtful_sessions() == std::vector<session_id>{one});
  work.give_up({errc::unavailable, "not written", "", ""}, {errc::io, "unknown", "", ""});
  CHECK(codes(work) == words{"io", "unavailable", "unavailable"});
  CHECK(work.next().size() == 0);
}

TEST_CASE("whatever is lost, what is acknowledged is there once and in order") {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    fake_database database;
    std::vector<write_request> all;
    std::map<session_id, sequence_number> ends;
    for (std::size_t i = 0; i < 3; ++i) {
      database.make(session(i), {"start"});
      ends[session(i)] = 1;
    }
    for (int i = 0; i < 12; ++i) {
      const auto of = session(random() % 3);
      // A writer may be behind; none expects a place that does not exist yet.
      const bool wrong = random() % 5 == 0;
      all.push_back(append(of, wrong ? random() % ends[of] : ends[of], {std::to_string(i)}));
      ends[of] += wrong ? 0 : 1;
    }
    std::vector<const write_request*> pointers;
    for (const auto& request : all)
      pointers.push_back(&request);
    write_batch work(pointers, nobody);
    std::vector<plan> late;
    for (int count = 0; count < 200; ++count) {
      const auto step = work.next();
      if (step.size() == 0)
        break;
      const auto fate = random() % 4;
      if (!late.empty() && random() % 2 == 0) {
        database.run(late.back(), "ours");
        late.pop_back();
      }
      if (fate == 0) {
        database.run(step, "ours");
        work.unknown(step);
      } else if (fate == 1) {
        late.push_back(step);
        work.unknown(step);
      } else {
        work.committed(step, database.run(step, "ours"));
      }
    }
    for (const auto& step : late)
      database.run(step, "ours");
    const auto verdicts = work.take_verdicts();
    std::map<session_id, words> expected;
    for (std::size_t i = 0; i < 3; ++i)
      expected[session(i)] = {"start"};
    for (std::size_t i = 0; i < all.size(); ++i)
      if (verdicts[i]) {
        expected[all[i].session].push_back(std::to_string(i));
        CHECK(verdicts[i]->sequence == expected[all[i].session].size());
      } else {
        CHECK(verdicts[i].error().code == errc::stale_sequence);
      }
    for (auto& [of, texts] : expected)
      CHECK(database.texts(of) == texts);
  }
}
