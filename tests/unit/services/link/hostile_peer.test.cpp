// A peer that is on the list, and answers and publishes what no node of good will does. Nothing crashes,
// counters tell, and the others go on talking.

#include "tests/unit/services/link/intruder.hpp"

#include <catch2/catch.hpp>

using namespace godwit;
using namespace godwit::link;
using namespace std::chrono_literals;

namespace {

/// No conversation ends because a test is slow.
void patient(link_options& options) {
  options.core.peers.misses =
    60; // but dialled again as soon as ever: the other may not have known this one yet
  options.core.peers.handshake = moment(60'000'000);
}

raw_frame text_frame(const std::string& text) {
  const auto* const begin = reinterpret_cast<const std::byte*>(text.data());
  return {begin, begin + text.size()};
}

struct betrayed {
  static constexpr std::uint64_t session = 9; ///< mallory's number of the conversation

  node_keys keys = *make_keys(node_name("mallory"));
  zmq::context_t context{1};
  zmq::socket_t letters{context, zmq::socket_type::router};
  zmq::socket_t events{context, zmq::socket_type::xpub};
  real_node alpha{"alpha", true, patient};
  real_node beta{"beta", true, patient};
  raw_frame path; ///< back to alpha
  hello heard;    ///< alpha's greeting

  betrayed() {
    for (auto* socket : {&letters, &events}) {
      socket->set(zmq::sockopt::linger, 0);
      socket->set(zmq::sockopt::sndhwm, 0);
      socket->set(zmq::sockopt::rcvtimeo, 10'000);
      socket->set(zmq::sockopt::curve_server, 1);
      socket->set(zmq::sockopt::curve_secretkey, zmq::const_buffer(keys.secret.bytes().data(), 32));
      socket->bind("tcp://127.0.0.1:*");
    }
    introduce(alpha, beta);
    alpha.link->add_peer({node_name("mallory"), keys.open, letters.get(zmq::sockopt::last_endpoint),
      "tcp://127.0.0.1:9", events.get(zmq::sockopt::last_endpoint)});
    REQUIRE(eventually([this] { return alpha.up("beta") && beta.up("alpha"); }));
    zmq::message_t id;
    zmq::message_t greeting;
    REQUIRE(letters.recv(id));
    REQUIRE(letters.recv(greeting));
    path.assign(
      static_cast<const std::byte*>(id.data()), static_cast<const std::byte*>(id.data()) + id.size());
    const auto frame = decode({static_cast<const std::byte*>(greeting.data()), greeting.size()});
    REQUIRE(frame);
    REQUIRE(frame->header.kind == frame_kind::hello);
    heard = *from_letter(*letter<schema::Hello>::parse(frame->words));
  }

  /// A greeting of mallory's, or an answer to one.
  static raw_frame greeting(frame_kind kind, std::uint64_t seen, const std::string& name = "mallory") {
    hello said;
    said.node = node_name(name);
    said.incarnation = 7;
    said.session = session;
    said.seen = seen;
    said.hash_mode = "kv-1";
    return frame(kind, to_letter(said).bytes());
  }

  static raw_frame frame(frame_kind kind, std::span<const std::byte> words = {}, std::string_view name = {},
    std::uint64_t correlation = 0) {
    frame_header header;
    header.kind = kind;
    header.session = session;
    header.name = name;
    header.correlation = correlation;
    return encode(header, words);
  }

  void answer(std::vector<raw_frame> frames) {
    frames.insert(frames.begin(), path);
    send_all(letters, frames);
  }

  /// Both sides have greeted; alpha listens to mallory's events.
  std::unique_ptr<intruder> come_up() {
    const auto record = alpha.record();
    auto there = std::make_unique<intruder>(record, record.letters, keys);
    there->say({greeting(frame_kind::hello, heard.session)});
    answer({greeting(frame_kind::welcome, heard.session)});
    REQUIRE(eventually([this] { return alpha.up("mallory"); }));
    return there;
  }

  const link_counters& counters() const { return alpha.link->counters(); }

  void still_works() {
    CHECK(*beta.ask("alpha", "still here") == "still here");
    CHECK(*alpha.ask("beta", "me too") == "me too");
  }
};

} // namespace

TEST_CASE_METHOD(betrayed, "answers on a node's own connection that are none are counted and dropped") {
  std::mt19937 random(6);
  std::uint64_t bad = 0;
  const auto say = [&](std::vector<raw_frame> frames) {
    answer(std::move(frames));
    ++bad;
  };
  for (int round = 0; round < 50; ++round)
    say({random_bytes(random, 400)});
  const auto welcome = greeting(frame_kind::welcome, heard.session);
  for (const auto& cut : cuts_of(welcome))
    say({cut});
  say({welcome, {}});                                               // a frame too many
  say(std::vector<raw_frame>(2000, raw_frame(8)));                  // and far too many
  say({greeting(frame_kind::hello, 0)});                            // what has another way
  say({frame(frame_kind::welcome, raw_frame(8, std::byte{0xff}))}); // no body
  say({frame(frame_kind::refused, raw_frame(8, std::byte{0xff}))}); // nor this
  for (const auto kind : {frame_kind::letter, frame_kind::request, frame_kind::reply, frame_kind::failure,
         frame_kind::cancel, frame_kind::released, frame_kind::gone, frame_kind::stream_open,
         frame_kind::stream_item, frame_kind::stream_end, frame_kind::stream_credit, frame_kind::event})
    say({frame(kind, {}, "sink", 1)});
  CHECK(eventually([&] { return counters().malformed == bad; }));
  // Welcomes of another conversation, or as another node; a beat of a node that has not greeted.
  const auto stale = counters().stale.load();
  answer({greeting(frame_kind::welcome, heard.session + 1)});
  answer({greeting(frame_kind::welcome, heard.session, "beta")});
  answer({frame(frame_kind::beat)});
  CHECK(eventually([&] { return counters().stale == stale + 3; }));
  CHECK_FALSE(alpha.up("mallory"));
  CHECK(alpha.seen->get(&recorder::letters_).empty());
  still_works();
  // It was not even sent away: a good answer is still one.
  const auto there = come_up();
  still_works();
}

TEST_CASE_METHOD(betrayed, "beats that are none, or promise what never was, are harmless") {
  const auto there = come_up();
  const auto before = counters().malformed.load();
  std::mt19937 random(7);
  for (int round = 0; round < 20; ++round) {
    auto words = random_bytes(random, 400);
    words.resize(words.size() / 8 * 8);
    words.insert(words.begin(), 8, std::byte{0xff}); // no segment table of Cap'n Proto's
    answer({frame(frame_kind::beat, words)});
  }
  there->say({frame(frame_kind::beat)}); // on the way of letters
  CHECK(eventually([&] { return counters().malformed == before + 21; }));
  const auto lie = letter<schema::Beat>::make([](schema::Beat::Builder b) {
    b.setCount(~std::uint64_t{0});
    b.setEcho(~std::uint64_t{0});
    b.setEchoAgeMicros(~std::uint64_t{0});
    b.setBulk(~std::uint64_t{0});
  });
  answer({frame(frame_kind::beat, lie.bytes())});
  still_works();
  CHECK(alpha.up("mallory"));
}

TEST_CASE_METHOD(betrayed, "events of a publisher that are none are counted and dropped") {
  alpha.link->subscribe("kv.");
  const auto there = come_up();
  zmq::message_t subscribed;
  REQUIRE(events.recv(subscribed)); // from here on what is published arrives
  const auto before = counters().malformed.load();
  const auto topic = text_frame("kv.x");
  std::mt19937 random(8);
  std::uint64_t bad = 0;
  const auto say = [&](const std::vector<raw_frame>& frames) {
    send_all(events, frames);
    ++bad;
  };
  const auto good = frame(frame_kind::event, text_letter("one").bytes(), "kv.x", 1);
  for (int round = 0; round < 50; ++round)
    say({topic, random_bytes(random, 400)});
  for (const auto& cut : cuts_of(good))
    say({topic, cut});
  say({topic});                    // nothing behind the topic
  say({topic, good, {}});          // a frame too many
  say({text_frame("kv.y"), good}); // under another topic
  say({topic, frame(frame_kind::letter, text_letter("one").bytes(), "kv.x", 1)});
  say({topic, greeting(frame_kind::hello, 0)});
  std::vector<raw_frame> many(2000, raw_frame(8));
  many.front() = topic;
  say(many);
  CHECK(eventually([&] { return counters().malformed == before + bad; }));
  CHECK(counters().events_received == 0);
  CHECK(alpha.seen->get(&recorder::events_).empty());
  // And more topics than anybody has.
  const auto most = core_options{}.topics;
  for (std::size_t i = 0; i < most + 10; ++i) {
    const auto name = "kv." + std::to_string(i);
    send_all(events, {text_frame(name), frame(frame_kind::event, text_letter("one").bytes(), name, 1)});
  }
  CHECK(eventually([&] { return counters().malformed == before + bad + 10; }));
  CHECK(counters().events_received == most);
  // One that is too large ends the connection, and nothing else.
  send_all(events, {topic, raw_frame(8 << 20)});
  still_works();
  CHECK(alpha.up("mallory"));
}
