// What becomes of a peer that takes too little, and of its connections.

#include "tests/unit/services/link/pair_of_nodes.hpp"

#include <catch2/catch.hpp>

using namespace godwit;
using namespace godwit::link;
using namespace godwit::link::simulated;

TEST_CASE_METHOD(pair_of_nodes, "a peer that takes nothing has its queue bounded, and loses its place") {
  start_again(alpha, "alpha", 10);
  REQUIRE(alpha->up("beta"));
  beta->letters.clear();
  // A request that finds no place is refused, and nothing is lost by that.
  net.jam = true;
  for (std::uint64_t i = 0; i < 10; ++i)
    ask(i, second);
  CHECK(ask(1, 60 * second)->code == errc::overloaded);
  CHECK(alpha->counters.overflows == 1);
  net.jam = false;
  net.pass(2 * second);
  CHECK(alpha->up("beta"));
  // A letter that finds none would be missing between those before and behind it.
  net.jam = true;
  const auto waits = ask(1, 60 * second);
  for (std::uint64_t i = 1; i <= 50; ++i)
    alpha->subject.send("beta", lane::letters, numbered(frame_kind::letter, 0, i), never, net.now);
  CHECK(alpha->subject.members().find("beta")->letters_out.size() == 10);
  CHECK(ask(2, 60 * second)->code == errc::overloaded);
  net.jam = false;
  net.pass(50 * millisecond);
  CHECK_FALSE(alpha->up("beta"));
  CHECK(waits->code == errc::overloaded);
  CHECK(alpha->changes.back().cause == end_cause::overloaded);
  CHECK(beta->changes.back().cause == end_cause::overloaded);
  CHECK(alpha->counters.overloaded == 1);
  CHECK(alpha->counters.overflows == 2);
  CHECK(alpha->counters.dead_letters == 50);
  CHECK(alpha->subject.members().find("beta")->letters_out.empty());
  CHECK(beta->letters.empty());
  // It has a place again, with a new conversation.
  net.pass(2 * second);
  REQUIRE(alpha->up("beta"));
  alpha->subject.send("beta", lane::letters, numbered(frame_kind::letter, 0, 51), never, net.now);
  net.pass(100 * millisecond);
  CHECK(beta->letters == std::vector<std::uint64_t>{51});
}

TEST_CASE_METHOD(pair_of_nodes, "an answer that finds no place costs the peer its place, not its time") {
  start_again(beta, "beta", 2);
  REQUIRE(beta->up("alpha"));
  std::vector<reply_token> tokens;
  beta->serve = [&](std::uint64_t, const reply_token& token) { tokens.push_back(token); };
  const auto asked = ask(1, 60 * second);
  net.pass(50 * millisecond);
  REQUIRE(tokens.size() == 1);
  net.jam = true;
  for (int i = 0; i < 2; ++i)
    beta->subject.send("alpha", lane::letters, numbered(frame_kind::letter, 0, 1), never, net.now);
  beta->subject.reply(
    tokens[0], lane::letters, numbered(frame_kind::reply, tokens[0].correlation, 1), net.now);
  net.pass(50 * millisecond);
  CHECK(asked->code == errc::overloaded);
}

TEST_CASE_METHOD(pair_of_nodes, "a letter that waits for longer than it may is not left out of its row") {
  connect();
  net.jammed = {lane::letters};
  const auto soon = net.now + second;
  alpha->subject.send("beta", lane::letters, numbered(frame_kind::letter, 0, 1), soon, net.now);
  alpha->subject.send("beta", lane::letters, numbered(frame_kind::letter, 0, 2), never, net.now);
  net.pass(900 * millisecond);
  CHECK(alpha->up("beta"));
  net.pass(second);
  CHECK(alpha->counters.expired == 1);
  CHECK(alpha->counters.dead_letters == 2);
  CHECK(alpha->changes.back().cause == end_cause::overloaded);
  CHECK(beta->changes.back().cause == end_cause::overloaded);
  CHECK(beta->letters.empty());
}

TEST_CASE_METHOD(pair_of_nodes, "a peer that takes no letters for five seconds loses its place and is told") {
  connect();
  net.jammed = {lane::letters};
  alpha->subject.send("beta", lane::letters, numbered(frame_kind::letter, 0, 1), never, net.now);
  const auto asked = ask(2, 60 * second);
  net.pass(4900 * millisecond);
  // It is heard, and hears this node: no reason to suspect it.
  CHECK(alpha->up("beta"));
  CHECK(beta->up("alpha"));
  CHECK(asked->calls == 0);
  net.pass(200 * millisecond);
  CHECK_FALSE(alpha->up("beta"));
  CHECK(asked->code == errc::overloaded);
  CHECK(alpha->changes.back().cause == end_cause::overloaded);
  CHECK(beta->changes.back().cause == end_cause::overloaded);
  CHECK(alpha->counters.overloaded == 1);
  CHECK(alpha->counters.dead_letters == 1); // of the request its asker was told
  net.jammed.clear();
  net.pass(6 * second);
  CHECK(alpha->up("beta"));
  CHECK(beta->up("alpha"));
}

TEST_CASE_METHOD(pair_of_nodes, "a peer that takes no bulk for five seconds loses its place and is told") {
  connect();
  alpha->subject.send("beta", lane::bulk, numbered(frame_kind::letter, 0, 1), never, net.now);
  net.pass(100 * millisecond);
  CHECK(beta->letters == std::vector<std::uint64_t>{1});
  net.jammed = {lane::bulk};
  alpha->subject.send("beta", lane::bulk, numbered(frame_kind::letter, 0, 2), never, net.now);
  for (int i = 0; i < 49; ++i) {
    // Letters go on.
    const auto out = ask(7, second);
    net.pass(100 * millisecond);
    CHECK(out->value == 7);
  }
  CHECK(alpha->up("beta"));
  net.pass(200 * millisecond);
  CHECK(alpha->changes.back().cause == end_cause::overloaded);
  CHECK(beta->changes.back().cause == end_cause::overloaded);
  CHECK(alpha->counters.dead_letters == 1);
}

TEST_CASE_METHOD(pair_of_nodes, "a node that has much to send over a slow wire is not lost") {
  connect();
  net.letters_delay = 6 * second; // so long they wait behind each other on the wire
  std::vector<std::uint64_t> sent;
  for (std::uint64_t i = 1; i <= 200; ++i) {
    sent.push_back(i);
    alpha->subject.send("beta", lane::letters, numbered(frame_kind::letter, 0, i), never, net.now);
    net.pass(100 * millisecond);
  }
  net.pass(7 * second);
  CHECK(alpha->changes.size() == 1);
  CHECK(beta->changes.size() == 1);
  CHECK(beta->letters == sent);
}

TEST_CASE_METHOD(pair_of_nodes, "a bulk connection that dies alone is made anew alone") {
  connect();
  alpha->subject.send("beta", lane::bulk, numbered(frame_kind::letter, 0, 1), never, net.now);
  net.pass(2 * second);
  net.break_lane("alpha", lane::bulk);
  SECTION("found while there is nothing to send") {
    net.pass(3 * second);
    CHECK(alpha->counters.bulk_redials == 1);
    alpha->subject.send("beta", lane::bulk, numbered(frame_kind::letter, 0, 2), never, net.now);
    net.pass(100 * millisecond);
  }
  SECTION("found while something waits") {
    alpha->subject.send("beta", lane::bulk, numbered(frame_kind::letter, 0, 2), never, net.now);
    net.pass(3 * second);
    CHECK(alpha->counters.bulk_redials == 1);
  }
  CHECK(beta->letters == std::vector<std::uint64_t>{1, 2});
  CHECK(alpha->changes.size() == 1);
  CHECK(beta->changes.size() == 1);
}

TEST_CASE_METHOD(pair_of_nodes, "what was on a bulk connection when it died is not lost in silence") {
  connect();
  alpha->subject.send("beta", lane::bulk, numbered(frame_kind::letter, 0, 1), never, net.now);
  net.pass(2 * second);
  const auto gone = std::make_shared<outcome>();
  alpha->subject.request(
    "beta", lane::bulk, numbered(frame_kind::request, 55, 5), 55, net.now + 60 * second,
    [gone](const result<incoming>& answer) {
      ++gone->calls;
      gone->code = answer ? errc::internal : answer.error().code;
    },
    net.now);
  alpha->subject.flush(net.now);
  net.break_lane("alpha", lane::bulk);
  net.pass(3 * second);
  CHECK(gone->calls == 1);
  CHECK(gone->code == errc::peer_lost);
  CHECK(alpha->counters.bulk_redials == 0);
  CHECK(beta->requests.empty());
}

TEST_CASE_METHOD(pair_of_nodes, "a bulk connection that never comes up is tried again") {
  connect();
  net.jammed = {lane::bulk}; // it takes nothing, not even what says whose it is
  alpha->subject.send("beta", lane::bulk, numbered(frame_kind::letter, 0, 1), never, net.now);
  net.pass(2 * second);
  CHECK(alpha->counters.bulk_redials == 1);
  net.jammed.clear();
  net.pass(100 * millisecond);
  CHECK(beta->letters == std::vector<std::uint64_t>{1});
  CHECK(alpha->changes.size() == 1);
}

TEST_CASE_METHOD(
  pair_of_nodes, "a connection for letters that dies alone is noticed though the peer is heard") {
  connect();
  net.break_lane("alpha", lane::letters);
  for (int i = 0; i < 14; ++i) {
    beta->subject.send("alpha", lane::letters, numbered(frame_kind::letter, 0, 1), never, net.now);
    net.pass(200 * millisecond);
  }
  REQUIRE(alpha->changes.size() >= 2);
  CHECK(alpha->changes[1].cause == end_cause::peer_lost);
  net.pass(6 * second);
  CHECK(alpha->up("beta"));
  CHECK(beta->up("alpha"));
}

TEST_CASE_METHOD(pair_of_nodes, "a publisher of more topics than anybody has costs no memory") {
  auto listed = network::record("beta");
  listed.events = "beta";
  core_options few;
  few.topics = 3;
  alpha = net.start("alpha", few, 10'000'000);
  alpha->subject.members().add(listed, net.now);
  net.pass(6 * second);
  REQUIRE(alpha->up("beta"));
  const auto channel = alpha->subject.members().find("beta")->events;
  REQUIRE(channel != 0);
  for (int i = 0; i < 10; ++i) {
    const auto topic = "t" + std::to_string(i % 5);
    frame_header header;
    header.kind = frame_kind::event;
    header.name = topic;
    header.correlation = static_cast<std::uint64_t>(1 + i / 5);
    const parcel event{encode(header), {}};
    alpha->subject.on_event_message(channel, topic, frames_of(event), net.now);
  }
  CHECK(alpha->counters.events_received == 6);
  CHECK(alpha->counters.events_missed == 0);
  CHECK(alpha->counters.malformed == 4);
}
