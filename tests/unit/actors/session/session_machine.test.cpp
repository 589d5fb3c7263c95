#include "actors/session/session_machine.hpp"
#include "actors/session/session_object.hpp"
#include "actors/session/session_views.hpp"
#include "tests/unit/actors/session/journal_builder.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

using namespace godwit;

namespace {

const session_id some{"ses_0123456789abcdef0123456789abcdef"};

/// Events as lines "sequence.index type data".
std::vector<std::string> lines(session_machine& machine, const journal_builder& journal) {
  std::vector<std::string> out;
  for (const auto& record : journal.records) {
    const auto events = machine.apply(record);
    REQUIRE(events);
    for (const auto& event : *events)
      out.push_back(std::to_string(event.place.sequence) + "." + std::to_string(event.place.index) + " "
                    + event.type + " " + event.data);
  }
  return out;
}

using texts = std::vector<std::string>;
const std::string usage =
  R"("usage":{"prompt_tokens":4,"completion_tokens":3,"total_tokens":7,)"
  R"("prompt_tokens_details":{"cached_tokens":2,"cached_tokens_by_tier":{"device":2,"host":0,"disk":0}}})";

} // namespace

TEST_CASE("a turn's records make its events") {
  session_machine machine(some);
  const auto journal = journal_builder()
                         .opened()
                         .claimed("a", 1)
                         .accepted(1, "Hi \"you\"")
                         .prompted(1, 0, {1, 2, 3, 4})
                         .released(1, 4, {10, 11}, "Hello")
                         .released(1, 6, {12}, "")
                         .ended(1, "stop", " end");
  CHECK(lines(machine, journal)
        == texts{R"(3.0 message.accepted {"turn":1,"role":"user","content":"Hi \"you\""})",
          R"(3.1 turn.started {"turn":1})",
          R"(5.0 token {"turn":1,"text":"Hello","tokens":[10,11],"position":4})",
          R"(6.0 token {"turn":1,"text":"","tokens":[12],"position":6})",
          R"(7.0 token {"turn":1,"text":" end","tokens":[],"position":7})",
          R"(7.1 turn.completed {"turn":1,"finish_reason":"stop",)" + usage + "}"});
  CHECK(machine.running() == 0);
  CHECK(machine.find(1)->answer == "Hello end");
  CHECK(machine.tokens() == std::vector<token_id>{1, 2, 3, 4, 10, 11, 12});
  CHECK(machine.usage() == token_usage{4, 3, 2});
}

TEST_CASE("texts keep their zero bytes") {
  using namespace std::string_literals;
  session_machine machine(some);
  const auto post = letter<schema::PostMessage>::make([](schema::PostMessage::Builder b) {
    b.setContent({"a\0b", 3});
  });
  const auto journal = journal_builder()
                         .opened()
                         .add(accepted_record(1, post.read(), 0))
                         .prompted(1, 0, {1})
                         .released(1, 1, {2}, "c\0d"s)
                         .ended(1, "stop", "\0"s);
  const auto seen = lines(machine, journal);
  CHECK(seen[0] == R"(2.0 message.accepted {"turn":1,"role":"user","content":"a\u0000b"})");
  CHECK(seen[2].find(R"("text":"c\u0000d")") != std::string::npos);
  CHECK(machine.find(1)->message == "a\0b"s);
  CHECK(machine.find(1)->answer == "c\0d\0"s);
  CHECK(conversation_messages(machine, "x")[0].content == "a\0b"s);
}

TEST_CASE("a message that arrives during a turn starts with the end of that turn") {
  session_machine machine(some);
  const auto journal =
    journal_builder().opened().accepted(1, "one").accepted(2, "two").prompted(1, 0, {1}).ended(1, "length");
  CHECK(
    lines(machine, journal)
    == texts{R"(2.0 message.accepted {"turn":1,"role":"user","content":"one"})",
      R"(2.1 turn.started {"turn":1})", R"(3.0 message.accepted {"turn":2,"role":"user","content":"two"})",
      R"(5.0 turn.completed {"turn":1,"finish_reason":"length",)" + usage + "}",
      R"(5.1 turn.started {"turn":2})"});
  CHECK(machine.running() == 2);
}

TEST_CASE("an interrupting message goes before those that wait, and the turn says who ended it") {
  session_machine machine(some);
  const auto journal = journal_builder()
                         .opened(schema::OnBusy::INTERRUPT)
                         .accepted(1, "one")
                         .accepted(2, "two")
                         .cancelled(1, schema::EndCause::INTERRUPTED)
                         .ended(1, "cancelled");
  const auto seen = lines(machine, journal);
  CHECK(seen[3] == R"(5.0 turn.cancelled {"turn":1,"cause":"interrupted",)" + usage + "}");
  CHECK(seen[4] == R"(5.1 turn.started {"turn":2})");
}

TEST_CASE("a claim is an event only if a turn is taken over or the owner is another") {
  session_machine machine(some);
  const auto journal = journal_builder()
                         .opened()
                         .claimed("a", 1)
                         .claimed("a", 2)
                         .accepted(1, "one")
                         .claimed("a", 3)
                         .claimed("b", 4)
                         .claimed("b", 5, "f2");
  CHECK(lines(machine, journal)
        == texts{R"(4.0 message.accepted {"turn":1,"role":"user","content":"one"})",
          R"(4.1 turn.started {"turn":1})", R"(5.0 session.recovering {"turn":1,"epoch":3,"attempt":1})",
          R"(6.0 session.moved {"epoch":4,"node":"b","exact":true})",
          R"(6.1 session.recovering {"turn":1,"epoch":4,"attempt":2})",
          R"(7.0 session.moved {"epoch":5,"node":"b","exact":false})",
          R"(7.1 session.recovering {"turn":1,"epoch":5,"attempt":3})"});
  CHECK(machine.order().attempts() == 3);
}

TEST_CASE("a claim that met the end of a session changes only its owner") {
  session_machine machine(some);
  const auto journal = journal_builder().opened().claimed("a", 1).closed().claimed("b", 2);
  CHECK(lines(machine, journal).empty());
  CHECK(machine.closed());
  CHECK(machine.order().node() == "b");
  CHECK(machine.order().epoch() == 2);
  CHECK(!machine.apply({5, 2, closed_record("deleted", 9'600)}));
}

TEST_CASE("a token ends the count of tries") {
  session_machine machine(some);
  lines(machine, journal_builder().opened().accepted(1, "one").prompted(1, 0, {1}).claimed("a", 2).released(
                   1, 1, {5}, "x"));
  CHECK(machine.order().attempts() == 0);
}

TEST_CASE("a failed turn speaks of errors as refused requests do") {
  const auto told = [](const error& why) {
    session_machine machine(some);
    const auto seen = lines(
      machine, journal_builder().opened().accepted(1, "one").prompted(1, 0, {1}).ended(1, "failed", "", why));
    const auto begin = seen.back().find("\"error\":") + 8;
    return seen.back().substr(begin, seen.back().find(",\"usage\"") - begin);
  };
  CHECK(told({errc::invalid_argument, "too long", "content", "context_length_exceeded"})
        == R"({"type":"invalid_request_error","code":"context_length_exceeded","message":"too long"})");
  CHECK(told({errc::unavailable, "no token came", "", "no_progress"})
        == R"({"type":"unavailable_error","code":"no_progress","message":"no token came"})");
  CHECK(told({errc::overloaded, "busy", "", ""})
        == R"({"type":"overloaded_error","code":"overloaded","message":"busy"})");
  // What only the log may name; a number that a later version may have written.
  CHECK(
    told({errc::io, "/var/lib/x: denied", "", "secret"})
    == R"({"type":"server_error","code":"io","message":"the node failed on this request; its log says why"})");
  CHECK(told({static_cast<errc>(200), "new", "", ""})
        == R"({"type":"server_error","code":"unknown","message":"new"})");
}

TEST_CASE("a failure keeps the partial answer and says why") {
  session_machine machine(some);
  const auto seen =
    lines(machine, journal_builder()
                     .opened()
                     .accepted(1, "one")
                     .prompted(1, 0, {1})
                     .released(1, 1, {5}, "part")
                     .ended(1, "failed", "", {errc::deadline, "no token came for too long", "", "stalled"}));
  CHECK(seen.back()
        == R"(5.0 turn.failed {"turn":1,"error":{"type":"server_error","code":"stalled",)"
           R"("message":"no token came for too long"},)"
             + usage + "}");
  CHECK(machine.find(1)->answer == "part");
  CHECK(machine.find(1)->now == session_turn::state::failed);
}

TEST_CASE("a record that does not follow is refused and changes nothing") {
  const auto begin = journal_builder().opened().accepted(1, "one").prompted(1, 0, {1, 2});
  const auto refused = [&](const journal_builder& more) {
    session_machine machine(some);
    lines(machine, begin);
    auto next = more.records.back();
    next.sequence = begin.records.size() + 1;
    const auto before = machine.tokens();
    const auto events = machine.apply(next);
    return !events && events.error().code == errc::corrupt && machine.sequence() == begin.records.size()
           && machine.tokens() == before;
  };
  CHECK(refused(journal_builder().released(1, 3, {5}, "gap")));
  CHECK(refused(journal_builder().released(1, 1, {5}, "repeat")));
  CHECK(refused(journal_builder().released(2, 2, {5}, "other turn")));
  CHECK(refused(journal_builder().released(1, 2, {}, "no token")));
  CHECK(refused(journal_builder().accepted(1, "same turn")));
  CHECK(refused(journal_builder().accepted(3, "skipped a turn")));
  CHECK(refused(journal_builder().ended(2, "stop")));
  CHECK(refused(journal_builder().cancelled(4, schema::EndCause::CANCELLED)));
  CHECK(refused(journal_builder().prompted(1, 0, {1})));
  CHECK(refused(journal_builder().opened()));
  CHECK(refused(journal_builder().closed()));
  CHECK(!refused(journal_builder().released(1, 2, {5}, "good")));
}

TEST_CASE("a kind of record from the future is refused, not skipped") {
  session_machine machine(some);
  lines(machine, journal_builder().opened());
  const auto tool = journal_record::make([](schema::Record::Builder b) { b.initToolOpened().setTurn(1); });
  const auto events = machine.apply({2, 1, tool});
  REQUIRE(!events);
  CHECK(events.error().code == errc::unsupported);
}

TEST_CASE("a long prompt takes several records") {
  std::vector<token_id> long_prompt(150'000, 7);
  long_prompt.back() = 8;
  session_machine machine(some);
  const auto journal = journal_builder().opened().accepted(1, "x").prompted(1, 0, long_prompt);
  CHECK(journal.records.size() == 5);
  lines(machine, journal);
  CHECK(machine.tokens() == long_prompt);
  CHECK(machine.find(1)->prompted);
}

TEST_CASE("the conversation leaves out turns that ended before they had a prompt") {
  session_machine machine(some);
  lines(machine, journal_builder()
                   .opened()
                   .accepted(1, "one")
                   .prompted(1, 0, {1})
                   .released(1, 1, {5}, "first")
                   .ended(1, "stop")
                   .accepted(2, "far too long")
                   .ended(2, "failed", "", {errc::invalid_argument, "too long", "", ""})
                   .accepted(3, "three"));
  const auto messages = conversation_messages(machine, "three");
  CHECK(messages == std::vector<chat_message>{{"user", "one"}, {"assistant", "first"}, {"user", "three"}});
  const auto task = next_prompt(machine, "three");
  CHECK(task.before == 1);
  CHECK(task.prompt_length == 1);
  CHECK(task.answer == std::vector<token_id>{5});
  const auto letter = session_transcript(machine);
  const auto transcript = letter.read();
  REQUIRE(transcript.getMessages().size() == 3);
  CHECK(std::string(transcript.getMessages()[2].getContent().cStr()) == "three");
  CHECK(transcript.getRunning());
}

TEST_CASE("tokens of another model are not gone on from") {
  session_machine machine(some);
  lines(machine,
    journal_builder().opened().accepted(1, "one").prompted(1, 0, {1}).ended(1, "stop").claimed("a", 2, "f2"));
  CHECK(!machine.tokens_are_ours());
  CHECK(next_prompt(machine, "two").before == 0);
}

TEST_CASE("a session tells what it is") {
  session_machine machine(some);
  lines(machine, journal_builder()
                   .opened(schema::OnBusy::QUEUE, {}, 60)
                   .claimed("a", 1)
                   .accepted(1, "one")
                   .accepted(2, "two"));
  const auto info = session_info(machine);
  CHECK(std::string(info.read().getStatus().cStr()) == "running");
  CHECK(std::string(info.read().getOwnerNode().cStr()) == "a");
  CHECK(info.read().getTurns() == 2);
  CHECK(info.read().getQueued() == 1);
  CHECK(info.read().getCreatedAt() == 5);
  CHECK(info.read().getExpiresAt() == 65);
  CHECK(info.read().getJournalSequence() == 4);
  const auto snapshot = session_snapshot(machine, 3);
  // The object that a client gets when it asks for the session, without what only the cache knows.
  auto shown = session_object(session_info(machine, 3).read());
  CHECK(shown.contains("sampling"));
  CHECK(shown.contains("on_busy"));
  CHECK(shown["journal"]["oldest_event"] == machine.ids().text({3, 0}));
  shown.erase("kv");
  CHECK(nlohmann::ordered_json::parse(snapshot.data)["session"].dump() == shown.dump());
  CHECK(snapshot.place == event_place{4, 0});
  CHECK(snapshot.data.starts_with(R"({"position":"855604393804000000004000","session":{"id":"ses_0123)"));
  CHECK(
    snapshot.data.find(R"("transcript":[{"role":"user","content":"one"},{"role":"user","content":"two"}])")
    != std::string::npos);
}
