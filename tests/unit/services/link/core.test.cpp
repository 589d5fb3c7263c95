#include "tests/unit/services/link/pair_of_nodes.hpp"

#include <catch2/catch.hpp>

#include <set>

using namespace godwit;
using namespace godwit::link;
using namespace godwit::link::simulated;

TEST_CASE_METHOD(pair_of_nodes, "two nodes that know each other are up within a second, in both directions") {
  net.pass(100 * millisecond);
  CHECK(alpha->up("beta"));
  CHECK(beta->up("alpha"));
  REQUIRE(alpha->changes.size() == 1);
  CHECK(alpha->changes[0].up);
  CHECK(alpha->changes[0].incarnation == beta->subject.members().self().incarnation);
}

TEST_CASE("a node is up within a second of its start, whatever another that waits for it just does") {
  // The other dials it in vain, gives up after a while, and pauses for longer each time.
  for (auto waited = 50 * millisecond; waited < 12 * second; waited += 370 * millisecond) {
    network net(static_cast<std::uint64_t>(waited.count()));
    const auto alpha = net.start("alpha");
    alpha->subject.members().add(network::record("beta"), net.now);
    net.pass(waited);
    const auto beta = net.start("beta");
    beta->subject.members().add(network::record("alpha"), net.now);
    net.pass(second);
    INFO(waited.count());
    CHECK(alpha->up("beta"));
    CHECK(beta->up("alpha"));
  }
}

TEST_CASE("a node beats for all its peers in one go, whenever they came") {
  network net(1);
  const auto alpha = net.start("alpha");
  for (const auto* const name : {"beta", "gamma", "delta"}) {
    net.start(name);
    net.introduce("alpha", name);
    net.pass(170 * millisecond);
  }
  net.pass(second);
  std::set<moment> next;
  for (const auto& [name, one] : alpha->subject.members().all()) {
    CHECK(one->state == peer_state::up);
    next.insert(one->next_beat);
  }
  REQUIRE(next.size() == 1);
  CHECK(*next.begin() > net.now);
  CHECK(*next.begin() <= net.now + 500 * millisecond);
}

TEST_CASE_METHOD(pair_of_nodes, "a request is answered, also one made before the nodes have met") {
  const auto early = ask(7, second);
  net.pass(100 * millisecond);
  CHECK(early->value == 7);
  const auto later = ask(8, second);
  net.pass(100 * millisecond);
  CHECK(later->value == 8);
  CHECK(alpha->counters.pending_requests == 0);
  CHECK(beta->counters.serving_requests == 0);
}

TEST_CASE_METHOD(pair_of_nodes, "letters arrive once and in their order") {
  connect();
  std::vector<std::uint64_t> sent;
  for (std::uint64_t i = 1; i <= 500; ++i) {
    sent.push_back(i);
    alpha->subject.send("beta", lane::letters, numbered(frame_kind::letter, 0, i), never, net.now);
  }
  net.pass(second);
  CHECK(beta->letters == sent);
}

TEST_CASE_METHOD(pair_of_nodes, "a core is ready for a peer that is up and for which nothing waits") {
  auto& subject = alpha->subject;
  CHECK_FALSE(subject.ready("beta", lane::letters)); // they have not met
  CHECK_FALSE(subject.ready("gamma", lane::letters));
  CHECK_FALSE(subject.flush("gamma", net.now));
  connect();
  CHECK(subject.ready("beta", lane::letters));
  CHECK_FALSE(subject.ready("beta", lane::bulk)); // there is no connection for it yet
  subject.send("beta", lane::letters, numbered(frame_kind::letter, 0, 1), never, net.now);
  CHECK_FALSE(subject.ready("beta", lane::letters));
  CHECK_FALSE(subject.flush("beta", net.now)); // it has left, nothing waits
  CHECK(subject.ready("beta", lane::letters));
  net.pass(50 * millisecond);
  CHECK(beta->letters == std::vector<std::uint64_t>{1});
  subject.overload("beta", net.now);
  CHECK_FALSE(subject.ready("beta", lane::letters));
}

TEST_CASE("a core is ready for as many requests as may be without an answer") {
  network net(1);
  core_options few;
  few.pending = 1;
  const auto alpha = net.start("alpha", few, 0);
  const auto beta = net.start("beta");
  net.introduce("alpha", "beta");
  net.pass(second);
  REQUIRE(alpha->up("beta"));
  CHECK(alpha->subject.ready("beta", lane::letters));
  beta->serve = nullptr;
  alpha->subject.request(
    "beta", lane::letters, numbered(frame_kind::request, 5, 5), 5, net.now + second,
    [](const result<incoming>&) {}, net.now);
  net.pass(50 * millisecond);
  CHECK_FALSE(alpha->subject.ready("beta", lane::letters));
}

TEST_CASE_METHOD(
  pair_of_nodes, "a request that nobody answers ends by its deadline, and the other side is told") {
  connect();
  beta->serve = nullptr;
  const auto out = ask(1, 300 * millisecond);
  net.pass(299 * millisecond);
  CHECK(out->calls == 0);
  net.pass(20 * millisecond);
  CHECK(out->calls == 1);
  CHECK(out->code == errc::deadline);
  REQUIRE(beta->cancelled.size() == 1);
  CHECK(beta->cancelled[0].second == end_cause::deadline);
  CHECK(beta->counters.serving_requests == 0);
}

TEST_CASE_METHOD(pair_of_nodes, "a cancelled request ends at once, with its cause on the other side") {
  connect();
  beta->serve = nullptr;
  const auto out = ask(1, 10 * second, 77);
  net.pass(50 * millisecond);
  alpha->subject.cancel(77, end_cause::cancelled, net.now);
  CHECK(out->code == errc::cancelled);
  net.pass(50 * millisecond);
  REQUIRE(beta->cancelled.size() == 1);
  CHECK(beta->cancelled[0].second == end_cause::cancelled);
}

TEST_CASE_METHOD(
  pair_of_nodes, "when a node is killed its pending requests fail within two seconds, at once together") {
  connect();
  beta->serve = nullptr;
  const auto one = ask(1, 60 * second);
  const auto other = ask(2, 60 * second);
  net.pass(50 * millisecond);
  net.kill("beta");
  net.pass(2 * second);
  CHECK(one->code == errc::peer_lost);
  CHECK(other->code == errc::peer_lost);
  CHECK_FALSE(alpha->up("beta"));
  CHECK(alpha->changes.back().cause == end_cause::peer_lost);
  // From then on there is no waiting.
  const auto later = ask(3, 60 * second);
  CHECK(later->code == errc::unavailable);
  CHECK(later->reason == "node_unreachable");
}

TEST_CASE_METHOD(pair_of_nodes, "a node is not suspected before three beats are missed") {
  connect();
  net.cut[{"beta", "alpha"}] = true;
  net.pass(900 * millisecond); // two beats
  CHECK(alpha->up("beta"));
  net.cut[{"beta", "alpha"}] = false;
  net.pass(5 * second);
  CHECK(alpha->up("beta"));
  CHECK(alpha->changes.size() == 1);
}

TEST_CASE_METHOD(pair_of_nodes, "when only one direction is cut both sides give up, and both come back") {
  connect();
  net.cut[{"alpha", "beta"}] = true;
  net.pass(5 * second);
  CHECK_FALSE(alpha->up("beta"));
  CHECK_FALSE(beta->up("alpha"));
  net.cut[{"alpha", "beta"}] = false;
  net.pass(12 * second);
  CHECK(alpha->up("beta"));
  CHECK(beta->up("alpha"));
  const auto out = ask(5, second);
  net.pass(second);
  CHECK(out->value == 5);
}

TEST_CASE_METHOD(
  pair_of_nodes, "a node that starts again is used again, and old requests are not answered by it") {
  connect();
  beta->serve = nullptr;
  const auto old = ask(1, 60 * second);
  net.pass(50 * millisecond);
  const auto before = beta->subject.members().self().incarnation;
  net.kill("beta");
  net.pass(100 * millisecond);
  beta = net.start("beta");
  beta->subject.members().add(network::record("alpha"), net.now);
  net.pass(second);
  // Its greeting is enough: no silence has to be waited for.
  CHECK(old->code == errc::peer_lost);
  CHECK(alpha->up("beta"));
  CHECK(alpha->changes.back().incarnation > before);
  CHECK(beta->requests.empty());
  const auto out = ask(2, second);
  net.pass(second);
  CHECK(out->value == 2);
}

TEST_CASE_METHOD(pair_of_nodes, "a node that was stopped for 15 seconds comes back with a new incarnation") {
  connect();
  const auto before = beta->subject.members().self().incarnation;
  beta->paused = true;
  net.pass(15 * second);
  CHECK_FALSE(alpha->up("beta"));
  beta->paused = false;
  net.pass(12 * second);
  CHECK(beta->subject.members().self().incarnation > before);
  CHECK(alpha->up("beta"));
  CHECK(beta->up("alpha"));
  const auto out = ask(2, second);
  net.pass(second);
  CHECK(out->value == 2);
}

TEST_CASE_METHOD(pair_of_nodes, "a goodbye says why, and needs no silence") {
  connect();
  const auto out = [&] {
    beta->serve = nullptr;
    auto asked = ask(1, 60 * second);
    net.pass(50 * millisecond);
    return asked;
  }();
  beta->subject.close(end_cause::draining, net.now);
  net.pass(100 * millisecond);
  CHECK(out->code == errc::draining);
  CHECK(alpha->changes.back().cause == end_cause::draining);
}

TEST_CASE("nodes that do not fit refuse each other and say why") {
  network net(1);
  auto alpha = net.start("alpha");
  auto beta = std::make_shared<node>(net, "beta", 5, core_options{}, 3);
  auto said = node::self_of("beta", 5);
  said.minor = 9;
  net.alive["beta"] = beta;
  net.introduce("alpha", "beta");
  said.session = 1;
  // A greeting of another version by hand.
  frame_header header;
  header.kind = frame_kind::hello;
  const parcel greeting{encode(header, to_letter(said).bytes()), {}};
  const auto frames = frames_of(greeting);
  alpha->subject.on_message(lane::letters, "beta", {lane::letters, "nowhere"}, frames, net.now);
  CHECK(alpha->counters.refused == 1);
  CHECK(alpha->subject.members().find("beta")->refusal.find("beta has 1.9") != std::string::npos);
  CHECK_FALSE(alpha->up("beta"));
}

TEST_CASE("a node that is not known, or under another's key, or with one's own name, is refused") {
  network net(1);
  auto alpha = net.start("alpha");
  alpha->subject.members().add(network::record("beta"), net.now);
  const auto greet = [&](const std::string& key, const std::string& name) {
    auto said = node::self_of(name, 5);
    said.session = 1;
    frame_header header;
    header.kind = frame_kind::hello;
    const parcel greeting{encode(header, to_letter(said).bytes()), {}};
    const auto frames = frames_of(greeting);
    alpha->subject.on_message(lane::letters, key, {lane::letters, "nowhere"}, frames, net.now);
  };
  greet("gamma", "gamma");
  CHECK(alpha->counters.refused == 1);
  greet("gamma", "beta");
  CHECK(alpha->counters.refused == 2);
  greet("alpha", "alpha");
  CHECK(alpha->counters.refused == 3);
  CHECK(alpha->subject.members().find("beta")->theirs == 0);
}

TEST_CASE("of two nodes with one name the later start is believed") {
  network net(1);
  auto alpha = net.start("alpha");
  auto beta = net.start("beta", {}, 50'000);
  net.introduce("alpha", "beta");
  net.pass(second);
  REQUIRE(alpha->up("beta"));
  // The earlier start is still running somewhere, and greets.
  auto said = node::self_of("beta", 40'000);
  said.session = (std::uint64_t{40'000} << 20U) + 1;
  frame_header header;
  header.kind = frame_kind::hello;
  const parcel greeting{encode(header, to_letter(said).bytes()), {}};
  const auto frames = frames_of(greeting);
  alpha->subject.on_message(lane::letters, "beta", {lane::letters, "nowhere"}, frames, net.now);
  CHECK(alpha->counters.refused == 1);
  CHECK(alpha->up("beta"));
}

TEST_CASE_METHOD(pair_of_nodes, "frames of an earlier conversation, or of none, are dropped and counted") {
  connect();
  auto old = numbered(frame_kind::letter, 0, 9);
  set_session(old.head, beta->subject.members().find("alpha")->theirs - 1);
  const auto frames = frames_of(old);
  beta->subject.on_message(lane::letters, "alpha", {lane::letters, "x"}, frames, net.now);
  beta->subject.on_message(lane::letters, "nobody", {lane::letters, "x"}, frames, net.now);
  CHECK(beta->letters.empty());
  CHECK(beta->counters.stale == 2);
}

TEST_CASE_METHOD(pair_of_nodes, "requests beyond what a node serves at a time are refused at once") {
  core_options small;
  small.serving = 3;
  beta = net.start("beta", small, 10'000'000);
  net.introduce("alpha", "beta");
  net.pass(6 * second);
  beta->serve = nullptr;
  std::vector<std::shared_ptr<outcome>> asked;
  for (std::uint64_t i = 0; i < 5; ++i)
    asked.push_back(ask(i, 60 * second));
  net.pass(100 * millisecond);
  CHECK(asked[2]->calls == 0);
  CHECK(asked[3]->code == errc::overloaded);
  CHECK(asked[4]->code == errc::overloaded);
}

TEST_CASE_METHOD(pair_of_nodes, "a stream sends no more than its credit") {
  connect();
  std::vector<std::uint64_t> got;
  int ends = 0;
  bool complete = false;
  alpha->subject.open_stream(
    "beta", lane::letters, numbered(frame_kind::stream_open, 5, 1, 2), 5, 2,
    [&](const stream_event& event) {
      if (event.mail != nullptr)
        got.push_back(number_of(event.mail->words));
      else
        ++ends, complete = event.complete;
    },
    net.now);
  net.pass(100 * millisecond);
  REQUIRE(beta->streams.size() == 1);
  const auto [value, token, credit] = beta->streams[0];
  const auto produce = [&](std::uint64_t item) {
    if (!credit->take())
      return false;
    beta->subject.stream_send(
      token, lane::letters, numbered(frame_kind::stream_item, token.correlation, item), false, net.now);
    return true;
  };
  CHECK(produce(10));
  CHECK(produce(11));
  CHECK_FALSE(produce(12));
  net.pass(100 * millisecond);
  CHECK(got == std::vector<std::uint64_t>{10, 11});
  alpha->subject.grant(5, 1, net.now);
  net.pass(100 * millisecond);
  CHECK(beta->credit_calls == 1);
  CHECK(produce(12));
  CHECK_FALSE(produce(13));
  frame_header end;
  end.kind = frame_kind::stream_end;
  end.correlation = token.correlation;
  beta->subject.stream_send(token, lane::letters, {encode(end), {}}, true, net.now);
  net.pass(100 * millisecond);
  CHECK(got == std::vector<std::uint64_t>{10, 11, 12});
  CHECK(ends == 1);
  CHECK(complete);
  CHECK(alpha->counters.streams == 0);
  CHECK(beta->counters.streams == 0);
}

TEST_CASE_METHOD(pair_of_nodes, "a producer that breaks its credit loses the stream") {
  connect();
  error why;
  int items = 0;
  alpha->subject.open_stream(
    "beta", lane::letters, numbered(frame_kind::stream_open, 5, 1, 1), 5, 1,
    [&](const stream_event& event) { event.mail != nullptr ? void(++items) : void(why = event.why); },
    net.now);
  net.pass(100 * millisecond);
  const auto [value, token, credit] = beta->streams.at(0);
  for (std::uint64_t i = 0; i < 3; ++i)
    beta->subject.stream_send(
      token, lane::letters, numbered(frame_kind::stream_item, token.correlation, i), false, net.now);
  net.pass(100 * millisecond);
  CHECK(items == 1);
  CHECK(why.code == errc::corrupt);
  CHECK(alpha->counters.credit_broken == 1);
  CHECK_FALSE(credit->open);
}

TEST_CASE_METHOD(pair_of_nodes, "both ends of a stream learn why it ended") {
  connect();
  error why;
  const auto open = [&](std::uint64_t number) {
    alpha->subject.open_stream(
      "beta", lane::letters, numbered(frame_kind::stream_open, number, 1, 1), number, 1,
      [&](const stream_event& event) { why = event.why; }, net.now);
    net.pass(100 * millisecond);
    return beta->streams.back();
  };
  const auto cancelled = open(5);
  alpha->subject.end_stream(5, end_cause::cancelled, net.now);
  net.pass(100 * millisecond);
  CHECK(why.code == errc::cancelled);
  CHECK(cancelled.credit->ended == end_cause::cancelled);

  const auto lost = open(6);
  net.cut[{"alpha", "beta"}] = net.cut[{"beta", "alpha"}] = true;
  net.pass(3 * second);
  CHECK(why.code == errc::peer_lost);
  CHECK(lost.credit->ended == end_cause::peer_lost);
  CHECK(beta->counters.streams == 0);
}

TEST_CASE_METHOD(pair_of_nodes, "the round trip is measured by the beats") {
  net.least_delay = net.most_delay = 10 * millisecond;
  net.pass(5 * second);
  REQUIRE(alpha->up("beta"));
  CHECK(alpha->subject.members().find("beta")->round_trip == 20 * millisecond);
}

TEST_CASE_METHOD(pair_of_nodes, "dialling a node that is not there slows down to the longest pause") {
  net.kill("beta");
  const auto dialled = net.last_channel;
  net.pass(120 * second);
  const auto dials = net.last_channel - dialled;
  // A dial takes 3 s to fail and the pause behind it 2.5 to 5 s.
  CHECK(dials >= 14);
  CHECK(dials <= 30);
}
