// What every engine of the journal promises. An engine is added beside those of engines.hpp, and in ENGINES.

#include "tests/unit/services/journal/engines.hpp"
#include "tests/unit/services/journal/postgres_engine.hpp"

#include <atomic>
#include <barrier>
#include <future>
#include <map>
#include <mutex>
#include <random>
#include <thread>

using namespace godwit;
using namespace godwit::test;

#define ENGINES memory_engine, rocks_engine, postgres_engine

namespace {

const session_id one = session(1);

/// The whole journal as text.
std::vector<std::string> all(journal& log, const session_id& of = one) {
  const auto records = log.read(of, 1, 1'000'000);
  REQUIRE(records);
  return texts(*records);
}

} // namespace

TEMPLATE_TEST_CASE("records are read in the order in which they were appended", "[journal]", ENGINES) {
  TestType engine;
  auto& log = engine.log();
  REQUIRE(log.open(one, tenant, node_a, {record("a"), record("b")}, false) == 2);
  CHECK(append_now(log, more(one, 2, {record("c")})) == 3);
  CHECK(append_now(log, more(one, 3, {record("d"), record("e"), record("f")})) == 6);

  const auto records = log.read(one, 1, 100);
  REQUIRE(records);
  CHECK(texts(*records) == std::vector<std::string>{"a", "b", "c", "d", "e", "f"});
  for (std::size_t i = 0; i < records->size(); ++i) {
    CHECK((*records)[i].sequence == i + 1);
    CHECK((*records)[i].epoch == 1);
    CHECK((*records)[i].record.read().getAt() == 7);
  }
  CHECK(texts(*log.read(one, 3, 2)) == std::vector<std::string>{"c", "d"});
  CHECK(texts(*log.read(one, 0, 1)) == std::vector<std::string>{"a"});
  CHECK(log.read(one, 7, 10)->empty());
  CHECK(log.read(one, static_cast<sequence_number>(-1), 10)->empty());
  CHECK(log.read(one, 1, 0)->empty());
}

TEMPLATE_TEST_CASE(
  "a head tells the end of a journal, its owner and whether a turn runs", "[journal]", ENGINES) {
  TestType engine;
  REQUIRE(engine.log().open(one, tenant_id("t"), node_a, {record("a")}, true));
  engine.restart();
  const auto opened = engine.log().head(one);
  REQUIRE(opened);
  CHECK(opened->session == one);
  CHECK(opened->tenant.value == "t");
  CHECK(opened->owner == node_a);
  CHECK(opened->sequence == 1);
  CHECK(opened->epoch == 1);
  CHECK(opened->running);
  REQUIRE(append_now(engine.log(), more(one, 1, {record("b")})));
  CHECK_FALSE(engine.log().head(one)->running);
  CHECK(engine.log().head(one)->sequence == 2);
}

TEMPLATE_TEST_CASE("unknown sessions are not found", "[journal]", ENGINES) {
  TestType engine;
  auto& log = engine.log();
  CHECK(log.head(one).error().code == errc::not_found);
  CHECK(log.read(one, 1, 1).error().code == errc::not_found);
  CHECK(log.erase(one).error().code == errc::not_found);
  CHECK(log.claim(one, 1, node_a, record("x")).error().code == errc::not_found);
  CHECK(code(append_now(log, more(one, 0, {record("x")}))) == errc::not_found);
}

TEMPLATE_TEST_CASE("a session is opened once", "[journal]", ENGINES) {
  TestType engine;
  auto& log = engine.log();
  REQUIRE(log.open(one, tenant, node_a, {record("a")}, false));
  CHECK(code(log.open(one, tenant, node_b, {record("b")}, false)) == errc::conflict);
  CHECK(all(log) == std::vector<std::string>{"a"});
}

TEMPLATE_TEST_CASE("what no journal can hold is refused", "[journal]", ENGINES) {
  TestType engine;
  auto& log = engine.log();
  const session_id overlong(std::string(256, 's'));
  CHECK(code(log.open(session_id(), tenant, node_a, {record("a")}, false)) == errc::invalid_argument);
  CHECK(code(log.open(overlong, tenant, node_a, {record("a")}, false)) == errc::invalid_argument);
  CHECK(code(log.open(one, tenant_id(), node_a, {record("a")}, false)) == errc::invalid_argument);
  CHECK(code(log.open(one, tenant, node_name(), {record("a")}, false)) == errc::invalid_argument);
  CHECK(code(log.open(one, tenant, node_a, {}, false)) == errc::invalid_argument);
  CHECK(log.head(one).error().code == errc::not_found);
  const session_id longest(std::string(255, 's'));
  REQUIRE(log.open(longest, tenant, node_a, {record("a")}, false));
  CHECK(code(append_now(log, more(longest, 1, {}))) == errc::invalid_argument);
  CHECK(all(log, longest) == std::vector<std::string>{"a"});
}

TEMPLATE_TEST_CASE(
  "an append at another place than the end is refused and changes nothing", "[journal]", ENGINES) {
  TestType engine;
  auto& log = engine.log();
  REQUIRE(log.open(one, tenant, node_a, {record("a"), record("b")}, true));
  for (const sequence_number wrong : {sequence_number{0}, sequence_number{1}, sequence_number{3}})
    CHECK(code(append_now(log, more(one, wrong, {record("x"), record("y")}))) == errc::stale_sequence);
  CHECK(all(log) == std::vector<std::string>{"a", "b"});
  CHECK(log.head(one)->running);
}

TEMPLATE_TEST_CASE("a claim raises the epoch and shuts the former owner out", "[journal]", ENGINES) {
  TestType engine;
  auto& log = engine.log();
  REQUIRE(log.open(one, tenant, node_a, {record("a")}, true));
  const auto head = log.claim(one, 1, node_b, record("claimed"));
  REQUIRE(head);
  CHECK(head->epoch == 2);
  CHECK(head->owner == node_b);
  CHECK(head->sequence == 2);
  CHECK(head->running);
  // Also at the right sequence, and before the sequence is looked at.
  CHECK(code(append_now(log, more(one, 2, {record("x")}, 1))) == errc::stale_epoch);
  CHECK(code(append_now(log, more(one, 1, {record("x")}, 1))) == errc::stale_epoch);
  CHECK(code(append_now(log, more(one, 2, {record("x")}, 3))) == errc::stale_epoch);
  CHECK(log.claim(one, 1, node_a, record("x")).error().code == errc::stale_epoch);
  CHECK(append_now(log, more(one, 2, {record("b")}, 2)) == 3);
  const auto records = log.read(one, 1, 10);
  CHECK(texts(*records) == std::vector<std::string>{"a", "claimed", "b"});
  CHECK((*records)[0].epoch == 1);
  CHECK((*records)[1].epoch == 2);
  CHECK((*records)[2].epoch == 2);
}

TEMPLATE_TEST_CASE("of writers that race for a place exactly one wins", "[journal]", ENGINES) {
  TestType engine;
  auto& log = engine.log();
  REQUIRE(log.open(one, tenant, node_a, {record("start")}, false));
  constexpr std::size_t writers = 4;
  constexpr std::size_t rounds = 1000;
  const auto name = [](std::size_t round, std::size_t writer) {
    return std::to_string(round) + "/" + std::to_string(writer);
  };
  std::vector<std::vector<result<sequence_number>>> answers(
    rounds, std::vector<result<sequence_number>>(writers));
  std::barrier gate(static_cast<std::ptrdiff_t>(writers));
  std::vector<std::thread> threads;
  for (std::size_t writer = 0; writer < writers; ++writer)
    threads.emplace_back([&, writer, &mine = engine.node(writer)] {
      for (std::size_t round = 0; round < rounds; ++round) {
        gate.arrive_and_wait();
        answers[round][writer] = append_now(mine, more(one, round + 1, {record(name(round, writer))}));
      }
    });
  for (auto& thread : threads)
    thread.join();

  std::vector<std::string> winners{"start"};
  for (std::size_t round = 0; round < rounds; ++round) {
    int won = 0;
    for (std::size_t writer = 0; writer < writers; ++writer) {
      const auto& answer = answers[round][writer];
      if (answer) {
        ++won;
        CHECK(*answer == round + 2);
        winners.push_back(name(round, writer));
      } else {
        CHECK(answer.error().code == errc::stale_sequence);
      }
    }
    REQUIRE(won == 1);
  }
  CHECK(all(log) == winners);
}

TEMPLATE_TEST_CASE("claims that are not waited for end as others do, each told once", "[journal]", ENGINES) {
  TestType engine;
  auto& log = engine.log();
  REQUIRE(log.open(one, tenant, node_a, {record("a")}, true));
  const auto begin = [&](const session_id& of, epoch_t expected, std::string_view text) {
    auto answer = std::make_shared<std::promise<result<journal_head>>>();
    log.begin_claim(of, expected, node_b, record(text),
      [answer](result<journal_head> head) { answer->set_value(std::move(head)); });
    return answer->get_future();
  };
  const auto end = [](std::future<result<journal_head>> answer) -> result<journal_head> {
    if (answer.wait_for(std::chrono::seconds(60)) != std::future_status::ready)
      return fail(errc::internal, "no answer");
    return answer.get();
  };
  auto first = begin(one, 1, "claimed");
  auto second = begin(one, 1, "x");
  auto third = begin(one, 2, "claimed again");
  auto unknown = begin(session(2), 1, "x");
  auto large = begin(one, 3, std::string(1 << 20, 'x'));
  const auto head = end(std::move(first));
  REQUIRE(head);
  CHECK(head->epoch == 2);
  CHECK(head->owner == node_b);
  CHECK(head->sequence == 2);
  CHECK(end(std::move(second)).error().code == errc::stale_epoch);
  CHECK(end(std::move(third))->epoch == 3);
  CHECK(end(std::move(unknown)).error().code == errc::not_found);
  CHECK(end(std::move(large)).error().code == errc::too_large);
  CHECK(all(log) == std::vector<std::string>{"a", "claimed", "claimed again"});
}

TEMPLATE_TEST_CASE("of nodes that race to claim a session exactly one owns it", "[journal]", ENGINES) {
  TestType engine;
  auto& log = engine.log();
  REQUIRE(log.open(one, tenant, node_a, {record("start")}, false));
  for (epoch_t round = 1; round <= 50; ++round) {
    std::atomic<int> won{0};
    std::atomic<int> ready{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([&, i, &mine = engine.node(static_cast<std::size_t>(i))] {
        ++ready;
        while (ready < 4)
          std::this_thread::yield();
        const node_name name("n" + std::to_string(i));
        const auto head = mine.claim(one, round, name, record(name.value));
        if (head && head->owner == name && head->epoch == round + 1)
          ++won;
      });
    for (auto& thread : threads)
      thread.join();
    REQUIRE(won == 1);
    const auto head = log.head(one);
    CHECK(head->epoch == round + 1);
    CHECK(text(log.read(one, head->sequence, 1)->front()) == head->owner.value);
  }
}

TEMPLATE_TEST_CASE("appends may follow one another without waiting for answers", "[journal]", ENGINES) {
  TestType engine;
  std::mutex mutex;
  std::vector<result<sequence_number>> answers;
  std::vector<std::string> expected{"0"};
  REQUIRE(engine.log().open(one, tenant, node_a, {record("0")}, false));
  for (sequence_number i = 1; i <= 500; ++i) {
    engine.log().append(more(one, i, {record(std::to_string(i))}), [&](result<sequence_number> answer) {
      const std::lock_guard lock(mutex);
      answers.push_back(std::move(answer));
    });
    expected.push_back(std::to_string(i));
  }
  // Closing answers everything that is under way.
  engine.restart();
  REQUIRE(answers.size() == 500);
  for (sequence_number i = 0; i < 500; ++i)
    CHECK(answers[i] == i + 2);
  CHECK(all(engine.log()) == expected);
}

TEMPLATE_TEST_CASE("an append of several records is stored as a whole or not at all", "[journal]", ENGINES) {
  TestType engine;
  REQUIRE(engine.log().open(one, tenant, node_a, {record("0")}, false));
  const auto big = record(std::string(journal::max_record_bytes, 'x'));
  REQUIRE(big.bytes().size() > journal::max_record_bytes);
  CHECK(code(append_now(engine.log(), more(one, 1, {record("1"), big, record("2")}))) == errc::too_large);
  CHECK(all(engine.log()) == std::vector<std::string>{"0"});
  engine.restart();
  CHECK(all(engine.log()) == std::vector<std::string>{"0"});
}

TEMPLATE_TEST_CASE("a record of the largest size is kept, a larger one refused", "[journal]", ENGINES) {
  TestType engine;
  REQUIRE(engine.log().open(one, tenant, node_a, {record("0")}, false));
  const auto overhead = record("").bytes().size();
  // Texts end in a zero byte and fill whole words.
  const std::string content(journal::max_record_bytes - overhead - 8, 'x');
  const auto largest = record(content);
  REQUIRE(largest.bytes().size() <= journal::max_record_bytes);
  REQUIRE(largest.bytes().size() + 16 > journal::max_record_bytes);
  CHECK(append_now(engine.log(), more(one, 1, {largest})) == 2);
  CHECK(code(append_now(engine.log(), more(one, 2, {record(content + std::string(16, 'x'))})))
        == errc::too_large);
  CHECK(code(engine.log().open(session(2), tenant, node_a, {record(std::string(1 << 20, 'x'))}, false))
        == errc::too_large);
  CHECK(
    engine.log().claim(one, 1, node_b, record(std::string(1 << 20, 'x'))).error().code == errc::too_large);
  engine.restart();
  CHECK(text(engine.log().read(one, 2, 1)->front()) == content);
}

TEMPLATE_TEST_CASE("what was acknowledged is there after a restart at any point", "[journal]", ENGINES) {
  TestType engine;
  std::mt19937 random(1);
  std::map<session_id, std::vector<std::string>> expected;
  std::map<session_id, epoch_t> epochs;
  for (int step = 0; step < 400; ++step) {
    const auto of = session(random() % 7);
    auto& texts_of = expected[of];
    const auto content = std::to_string(step) + std::string(random() % 2000, '.');
    switch (random() % 8) {
    case 0:
      if (!texts_of.empty()) {
        const auto head = engine.log().claim(of, epochs[of], node_b, record(content));
        REQUIRE(head);
        epochs[of] = head->epoch;
        texts_of.push_back(content);
      }
      break;
    case 1:
      if (!texts_of.empty() && random() % 4 == 0) {
        REQUIRE(engine.log().erase(of));
        texts_of.clear();
      }
      break;
    case 2:
      if (random() % 4 == 0)
        engine.restart();
      break;
    default:
      if (texts_of.empty()) {
        REQUIRE(engine.log().open(of, tenant, node_a, {record(content)}, false));
        epochs[of] = 1;
      } else {
        REQUIRE(append_now(engine.log(), more(of, texts_of.size(), {record(content)}, epochs[of]))
                == texts_of.size() + 1);
      }
      texts_of.push_back(content);
    }
  }
  engine.restart();
  for (const auto& [of, texts_of] : expected) {
    if (texts_of.empty())
      CHECK(engine.log().head(of).error().code == errc::not_found);
    else
      CHECK(all(engine.log(), of) == texts_of);
  }
}

TEMPLATE_TEST_CASE("an erased session leaves nothing behind", "[journal]", ENGINES) {
  TestType engine;
  REQUIRE(engine.log().open(one, tenant, node_a, {record("a"), record("b"), record("c")}, true));
  REQUIRE(engine.log().open(session(2), tenant, node_a, {record("other")}, false));
  REQUIRE(engine.log().claim(one, 1, node_b, record("d")));
  REQUIRE(engine.log().erase(one));
  CHECK(engine.log().head(one).error().code == errc::not_found);
  engine.restart();
  CHECK(engine.log().read(one, 1, 10).error().code == errc::not_found);
  REQUIRE(engine.log().open(one, tenant, node_b, {record("new")}, false) == 1);
  CHECK(all(engine.log()) == std::vector<std::string>{"new"});
  CHECK(engine.log().head(one)->epoch == 1);
  CHECK(all(engine.log(), session(2)) == std::vector<std::string>{"other"});
}

TEMPLATE_TEST_CASE("names that begin alike do not mix", "[journal]", ENGINES) {
  TestType engine;
  std::vector<session_id> names;
  for (const auto* name : {"a", "aa", "aaa", "b"})
    names.emplace_back(name);
  names.emplace_back(std::string("a\0", 2));
  names.emplace_back(std::string("a\0\0\0\0\0\0\0\0", 9));
  names.emplace_back("\xff\xff");
  for (const auto& name : names)
    REQUIRE(engine.log().open(name, tenant, node_a, {record(name.value.c_str()), record("2")}, false) == 2);
  REQUIRE(engine.log().erase(session_id("a")));
  for (const auto& name : names)
    if (name.value != "a")
      CHECK(engine.log().read(name, 1, 10)->size() == 2);
  CHECK(engine.log().list({}, 100)->size() == names.size() - 1);
}

TEMPLATE_TEST_CASE("sessions are listed in the order of their ids, page by page", "[journal]", ENGINES) {
  TestType engine;
  for (std::size_t i = 50; i > 0; --i)
    REQUIRE(engine.log().open(session(i), tenant, node_a, {record("a")}, i % 2 == 0));
  std::vector<journal_head> seen;
  session_id cursor;
  for (;;) {
    const auto page = engine.log().list(cursor, 7);
    REQUIRE(page);
    CHECK(page->size() <= 7);
    if (page->empty())
      break;
    seen.insert(seen.end(), page->begin(), page->end());
    cursor = page->back().session;
  }
  REQUIRE(seen.size() == 50);
  for (std::size_t i = 0; i < seen.size(); ++i) {
    CHECK(seen[i].session == session(i + 1));
    CHECK(seen[i].running == ((i + 1) % 2 == 0));
    CHECK(seen[i].sequence == 1);
    CHECK_FALSE(seen[i].quarantined);
  }
  // A cursor need not exist any more.
  REQUIRE(engine.log().erase(session(10)));
  CHECK(engine.log().list(session(10), 1)->front().session == session(11));
  CHECK(engine.log().list(session(50), 1)->empty());
}

TEMPLATE_TEST_CASE("listing and reading go on while others write", "[journal]", ENGINES) {
  TestType engine;
  auto& log = engine.log();
  for (std::size_t i = 0; i < 20; ++i)
    REQUIRE(log.open(session(i), tenant, node_a, {record("1")}, false));
  std::atomic<bool> done{false};
  std::atomic<int> faults{0};
  std::thread writer([&] {
    for (sequence_number at = 1; at <= 50; ++at)
      for (std::size_t i = 0; i < 20; ++i)
        if (!append_now(log, more(session(i), at, {record(std::to_string(at + 1))})))
          ++faults;
    done = true;
  });
  std::vector<sequence_number> last(20, 1);
  while (!done) {
    const auto heads = log.list({}, 100);
    if (!heads || heads->size() != 20) {
      ++faults;
      continue;
    }
    for (std::size_t i = 0; i < 20; ++i) {
      const auto& head = (*heads)[i];
      const auto records = log.read(head.session, 1, 1000);
      // Journals only grow, and a head never runs ahead of its records.
      if (head.sequence < last[i] || !records || records->size() < head.sequence
          || text(records->back()) != std::to_string(records->size()))
        ++faults;
      last[i] = head.sequence;
    }
  }
  writer.join();
  CHECK(faults == 0);
  CHECK(log.head(session(19))->sequence == 51);
}

TEMPLATE_TEST_CASE("every append is answered once, also while the journal closes", "[journal]", ENGINES) {
  TestType engine;
  for (std::size_t i = 0; i < 4; ++i)
    REQUIRE(engine.log().open(session(i), tenant, node_a, {record("1")}, false));
  std::vector<std::atomic<int>> answers(400);
  std::vector<std::atomic<int>> stored(4);
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const auto which = i % 4;
    engine.log().append(more(session(which), i / 4 + 1, {record(std::to_string(i))}),
      [&answers, &stored, i, which](const result<sequence_number>& answer) {
        ++answers[i];
        if (answer)
          ++stored[which];
      });
  }
  engine.restart();
  for (const auto& count : answers)
    CHECK(count == 1);
  for (std::size_t i = 0; i < 4; ++i)
    CHECK(engine.log().head(session(i))->sequence == static_cast<sequence_number>(stored[i] + 1));
}
