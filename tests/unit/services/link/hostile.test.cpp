// Bytes on every socket that no peer of good will sends. Nothing crashes, counters tell, and the nodes that
// were there go on talking.

#include "tests/unit/services/link/intruder.hpp"

#include <catch2/catch.hpp>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>
#include <random>

using namespace godwit;
using namespace godwit::link;
using namespace std::chrono_literals;

namespace {

std::uint16_t port_of(const std::string& endpoint) {
  return static_cast<std::uint16_t>(std::stoi(endpoint.substr(endpoint.rfind(':') + 1)));
}

/// A TCP connection.
class open_connection {
 public:
  explicit open_connection(const std::string& endpoint) : out_(::socket(AF_INET, SOCK_STREAM, 0)) {
    REQUIRE(out_ >= 0);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port_of(endpoint));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(::connect(out_, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0);
  }
  ~open_connection() { ::close(out_); }
  open_connection(const open_connection&) = delete;
  open_connection& operator=(const open_connection&) = delete;

  void write(const std::vector<unsigned char>& what) const {
    // The other side may hang up while we write.
    (void)!::send(out_, what.data(), what.size(), MSG_NOSIGNAL);
  }

 private:
  int out_;
};

/// Opens a connection, writes bytes, and leaves.
void throw_bytes(const std::string& endpoint, const std::vector<unsigned char>& what) {
  const open_connection line(endpoint);
  line.write(what);
  std::this_thread::sleep_for(5ms);
}

/// Of this process, as Linux counts them.
std::size_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::size_t all = 0;
  std::size_t resident = 0;
  file >> all >> resident;
  REQUIRE(resident > 0);
  return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

/// Connections that did not get in.
std::uint64_t turned_away(const real_node& node) {
  const auto& counters = node.link->counters();
  const auto in = counters.handshakes.load(); // first: a handshake follows its connection
  return counters.connections - in;
}

struct besieged {
  real_node alpha{"alpha", true};
  real_node beta{"beta", true};
  node_keys mallory = *make_keys(node_name("mallory"));

  besieged() {
    introduce(alpha, beta);
    // A peer with a good key, which will misbehave; it listens nowhere.
    alpha.link->add_peer({node_name("mallory"), mallory.open, "tcp://127.0.0.1:9", "tcp://127.0.0.1:9", ""});
    REQUIRE(eventually([this] { return alpha.up("beta") && beta.up("alpha"); }));
  }

  void still_works() {
    const auto answer = beta.ask("alpha", "still here");
    REQUIRE(answer);
    CHECK(*answer == "still here");
    CHECK(*alpha.ask("beta", "me too") == "me too");
  }

  std::vector<std::byte> greeting(std::uint64_t session, std::uint16_t major = protocol_major) {
    hello said;
    said.major = major;
    said.node = node_name("mallory");
    said.incarnation = 7;
    said.session = session;
    said.hash_mode = "kv-1";
    frame_header header;
    header.kind = frame_kind::hello;
    header.session = session;
    return encode(header, to_letter(said).bytes());
  }
};

} // namespace

TEST_CASE_METHOD(besieged, "random bytes on every port are counted and harmless") {
  std::mt19937 random(4);
  const auto& at = alpha.link->bound();
  for (const auto& endpoint : {at.letters, at.bulk, at.events})
    for (int round = 0; round < 8; ++round) {
      std::vector<unsigned char> bytes(1 + random() % 3000);
      for (auto& each : bytes)
        each = static_cast<unsigned char>(random());
      if (round % 2 == 0)
        bytes[0] = 0xff; // as ZeroMQ's own greeting begins
      throw_bytes(endpoint, bytes);
    }
  CHECK(eventually([&] { return turned_away(alpha) >= 24; }));
  still_works();
}

TEST_CASE_METHOD(besieged, "a greeting cut at every byte is harmless") {
  // ZMTP 3.1 with CURVE, as its specification has it (rfc.zeromq.org/spec/23).
  std::vector<unsigned char> greeting{0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 3, 1, 'C', 'U', 'R', 'V', 'E'};
  greeting.resize(64, 0);
  for (std::size_t length = 1; length <= greeting.size(); length += 7)
    throw_bytes(alpha.link->bound().letters,
      {greeting.begin(), greeting.begin() + static_cast<std::ptrdiff_t>(length)});
  still_works();
}

TEST_CASE_METHOD(besieged, "keys that are not on the list get in nowhere") {
  const auto stranger = *make_keys(node_name("stranger"));
  const auto record = alpha.record();
  intruder letters(record, record.letters, stranger);
  intruder bulk(record, record.bulk, stranger);
  intruder events(record, record.events, stranger, zmq::socket_type::sub);
  events.socket.set(zmq::sockopt::subscribe, "");
  letters.say({greeting(1)});
  CHECK(eventually([&] { return alpha.link->counters().unknown_keys >= 3; }));
  CHECK(alpha.link->counters().refused == 0);
  still_works();
}

TEST_CASE_METHOD(besieged, "sockets without keys get in nowhere") {
  const auto record = alpha.record();
  intruder plain(record, record.letters, std::nullopt);
  plain.say({greeting(1)});
  CHECK(eventually([&] { return turned_away(alpha) >= 1; }));
  still_works();
}

TEST_CASE_METHOD(besieged, "frames of a peer with a good key that are none are counted and dropped") {
  const auto record = alpha.record();
  std::mt19937 random(5);
  for (const auto& endpoint : {record.letters, record.bulk}) {
    const auto before = alpha.link->counters().malformed.load();
    intruder bad(record, endpoint, mallory);
    for (int round = 0; round < 50; ++round) {
      std::vector<std::byte> bytes(random() % 400);
      for (auto& each : bytes)
        each = static_cast<std::byte>(random());
      bad.say({bytes});
    }
    const auto whole = greeting(3);
    for (std::size_t length = 0; length < whole.size(); length += 8)
      bad.say({{whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length)}});
    bad.say({greeting(3, protocol_major + 1), {}}); // a frame too many
    bad.say(std::vector<std::vector<std::byte>>(2000, std::vector<std::byte>(8)));
    const auto expected = before + 50 + (whole.size() + 7) / 8 + 2;
    CHECK(eventually([&] { return alpha.link->counters().malformed == expected; }));
  }
  still_works();
}

TEST_CASE_METHOD(besieged, "a greeting of another version is answered with why") {
  const auto record = alpha.record();
  intruder old(record, record.letters, mallory);
  old.socket.set(zmq::sockopt::rcvtimeo, 10'000);
  old.say({greeting(3, protocol_major + 1)});
  zmq::message_t answer;
  REQUIRE(old.socket.recv(answer));
  const auto frame = decode({static_cast<const std::byte*>(answer.data()), answer.size()});
  REQUIRE(frame);
  CHECK(frame->header.kind == frame_kind::refused);
  const auto why = from_letter(*letter<schema::Failure>::parse(frame->words), frame->header.code);
  CHECK(why.code == errc::unsupported);
  CHECK(why.message.find("mallory has 2.0") != std::string::npos);
  still_works();
}

TEST_CASE_METHOD(besieged, "nobody greets under another's name") {
  const auto record = alpha.record();
  intruder liar(record, record.letters, mallory);
  hello said;
  said.node = node_name("beta");
  said.incarnation = ~std::uint64_t{0} >> 24U;
  said.session = ~std::uint64_t{0};
  said.hash_mode = "kv-1";
  frame_header header;
  header.kind = frame_kind::hello;
  liar.say({encode(header, to_letter(said).bytes())});
  CHECK(eventually([&] { return alpha.link->counters().refused == 1; }));
  CHECK(alpha.up("beta"));
  still_works();
}

TEST_CASE_METHOD(besieged, "replayed and invented frames of a conversation are dropped") {
  const auto record = alpha.record();
  intruder bad(record, record.letters, mallory);
  const auto send = [&](frame_kind kind, std::uint64_t session, std::uint64_t correlation) {
    frame_header header;
    header.kind = kind;
    header.session = session;
    header.correlation = correlation;
    header.name = "sink";
    bad.say({encode(header, text_letter("evil").bytes())});
  };
  send(frame_kind::letter, 3, 0); // before any greeting
  CHECK(eventually([&] { return alpha.link->counters().stale == 1; }));
  bad.say({greeting(3)});
  bad.say({greeting(3)}); // the same again is no harm
  send(frame_kind::letter, 2, 0);
  send(frame_kind::letter, 4, 0);
  for (const auto kind : {frame_kind::reply, frame_kind::failure})
    for (std::uint64_t guess = 1; guess < 20; ++guess)
      send(kind, 3, guess);
  CHECK(eventually([&] { return alpha.link->counters().stale == 1 + 2 + 38; }));
  // A request twice is served once.
  send(frame_kind::request, 3, 8);
  CHECK(eventually([&] { return alpha.link->counters().letters_received > 0; }));
  CHECK(alpha.seen->get(&recorder::letters_).empty());
  still_works();
}

TEST_CASE_METHOD(besieged, "a frame over ZeroMQ's limit closes the connection, which is counted") {
  const auto record = alpha.record();
  intruder big(record, record.letters, mallory);
  const auto before = alpha.link->counters().disconnects.load();
  big.say({raw_frame(8 << 20)});
  CHECK(eventually([&] { return alpha.link->counters().disconnects > before; }));
  still_works();
  CHECK(alpha.link->counters().malformed == 0); // nothing of it was handed over
}

TEST_CASE_METHOD(besieged, "a frame over the link's own limits is counted and dropped") {
  const auto record = alpha.record();
  intruder big(record, record.letters, mallory);
  frame_header header;
  header.kind = frame_kind::letter;
  const std::string name(256, 'n');
  header.name = name;
  big.say({encode(header)});
  header.name = "sink";
  const raw_frame extras(4097);
  header.extras = extras;
  big.say({encode(header)});
  intruder bigger(record, record.bulk, mallory);
  header.extras = {};
  bigger.say({encode(header, raw_frame((std::size_t{32} << 20) + 8))});
  CHECK(eventually([&] { return alpha.link->counters().oversized == 3; }));
  CHECK(alpha.link->counters().malformed == 3);
  still_works();
}

TEST_CASE("a frame that says it is a terabyte long closes the connection and costs no memory") {
  const real_node alpha("alpha", false);
  // ZMTP 3.0 without keys: greeting, READY of a DEALER, the head of a long frame (rfc.zeromq.org/spec/23).
  std::vector<unsigned char> said{0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 3, 0, 'N', 'U', 'L', 'L'};
  said.resize(64, 0);
  const std::string ready = std::string("\x05READY\x0bSocket-Type") + std::string(3, '\0')
                            + "\x06"
                              "DEALER";
  said.push_back(4);
  said.push_back(static_cast<unsigned char>(ready.size()));
  said.insert(said.end(), ready.begin(), ready.end());
  const auto before = resident_bytes();
  open_connection line(alpha.link->bound().letters);
  line.write(said);
  CHECK(eventually([&] { return alpha.link->counters().handshakes == 1; }));
  CHECK(alpha.link->counters().disconnects == 0);
  line.write({2, 0, 0, 1, 0, 0, 0, 0, 0});
  CHECK(eventually([&] { return alpha.link->counters().disconnects == 1; }));
  CHECK(resident_bytes() < before + (std::size_t{64} << 20));
}

TEST_CASE("on plain loopback sockets, bytes that are no greeting of today's protocol are refused") {
  real_node alpha("alpha", false);
  real_node beta("beta", false);
  introduce(alpha, beta);
  REQUIRE(eventually([&] { return alpha.up("beta"); }));
  // ZMTP 1.0: no greeting at all, a length and bytes.
  throw_bytes(alpha.link->bound().letters, {1, 0, 5, 0, 'h', 'e', 'l', 'l'});
  CHECK(eventually([&] { return turned_away(alpha) >= 1; }));
  const auto answer = beta.ask("alpha", "still here");
  REQUIRE(answer);
  CHECK(*answer == "still here");
}
