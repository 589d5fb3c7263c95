#include "services/link/mesh_link.hpp"

#include "tests/unit/services/link/real_links.hpp"

#include <catch2/catch.hpp>

#include <atomic>
#include <thread>
#include <vector>

using namespace godwit;
using namespace godwit::link;
using namespace std::chrono_literals;

namespace {

struct meeting {
  real_node alpha{"alpha", true};
  real_node beta{"beta", true};

  meeting() {
    introduce(alpha, beta);
    REQUIRE(eventually([this] { return alpha.up("beta") && beta.up("alpha"); }));
  }
};

} // namespace

TEST_CASE("a request goes to another node and comes back, with and without keys") {
  for (const bool curve : {true, false}) {
    real_node alpha("alpha", curve);
    real_node beta("beta", curve);
    introduce(alpha, beta);
    // Made before they have met: it waits for them.
    const auto answer = alpha.ask("beta", "hello");
    INFO("curve " << curve << ", refused " << alpha.link->counters().unknown_keys << ", connections "
                  << alpha.link->counters().connections << ", handshakes "
                  << alpha.link->counters().handshakes << ", stale " << alpha.link->counters().stale
                  << ", malformed " << alpha.link->counters().malformed);
    REQUIRE(answer);
    CHECK(*answer == "hello");
    CHECK(*beta.ask("alpha", "and back") == "and back");
    CHECK(alpha.link->counters().unknown_keys == 0);
    CHECK(alpha.link->counters().malformed == 0);
  }
}

TEST_CASE_METHOD(meeting, "a failure keeps all its parts") {
  const auto answer = alpha.ask("beta", "refuse");
  REQUIRE_FALSE(answer);
  CHECK(answer.error() == error{errc::conflict, "a turn is running", "turn", "turn_running"});
}

TEST_CASE_METHOD(meeting, "letters arrive in order") {
  std::vector<std::string> sent;
  for (int i = 0; i < 2000; ++i) {
    sent.push_back(std::to_string(i));
    alpha.link->send({"beta", "sink", 0}, to_message(text_letter(sent.back())), 10s);
  }
  CHECK(eventually([&] { return beta.seen->get(&recorder::letters_).size() == sent.size(); }));
  CHECK(beta.seen->get(&recorder::letters_) == sent);
}

TEST_CASE_METHOD(
  meeting, "letters of each thread arrive in order, whether the link sleeps between them or not") {
  constexpr int threads = 4;
  constexpr int each = 300;
  std::atomic<int> answers{0};
  {
    std::vector<std::jthread> all;
    for (int t = 0; t < threads; ++t)
      all.emplace_back([&, t] {
        for (int i = 0; i < each; ++i) {
          const auto text = std::to_string(t) + ":" + std::to_string(i);
          alpha.link->send({"beta", "sink", 0}, to_message(text_letter(text)), 10s);
          if (i % 10 == 0)
            alpha.link->request({"beta", "echo", 0}, to_message(text_letter(text)), 10s,
              [&answers, text](const result<incoming>& got) { answers += got && text_in(*got) == text; });
          // Pauses of all lengths about that in which the link's thread falls asleep.
          std::this_thread::sleep_for(std::chrono::microseconds(i % 3 == 0 ? 7 * (i % 50) : 0));
        }
      });
  }
  REQUIRE(eventually([&] { return beta.seen->get(&recorder::letters_).size() == threads * each; }));
  CHECK(eventually([&] { return answers == threads * each / 10; }));
  std::vector<int> next(threads);
  for (const auto& text : beta.seen->get(&recorder::letters_)) {
    const auto which = static_cast<std::size_t>(text.front() - '0');
    CHECK(text == std::to_string(which) + ":" + std::to_string(next.at(which)++));
  }
}

TEST_CASE_METHOD(meeting, "attachments take the bulk lane and arrive as they were") {
  std::vector<std::byte> page(3 << 20);
  for (std::size_t i = 0; i < page.size(); ++i)
    page[i] = static_cast<std::byte>(i * 7 + i / 4096);
  const auto shared = std::make_shared<const std::vector<std::byte>>(page);
  const auto mail = letter<schema::EncodeRequest>::make(
    [](schema::EncodeRequest::Builder b) { b.setSpecial(true); }, {shared, shared});
  for (int i = 0; i < 5; ++i)
    alpha.link->send({"beta", "sink", 0}, to_message(mail), 10s);
  REQUIRE(eventually([&] { return beta.seen->get(&recorder::attached_).size() == 10; }));
  for (const auto& each : beta.seen->get(&recorder::attached_))
    CHECK(each == page);
  CHECK(beta.seen->get(&recorder::lanes_).front() == lane::bulk);
}

TEST_CASE_METHOD(meeting, "a letter over a megabyte arrives too") {
  const std::string text(5 << 20, 'x');
  const auto answer = alpha.ask("beta", text);
  REQUIRE(answer);
  CHECK(*answer == text);
}

TEST_CASE_METHOD(meeting, "a request ends by its deadline") {
  const auto begin = std::chrono::steady_clock::now();
  const auto answer = alpha.ask("beta", "wait", 200ms);
  REQUIRE_FALSE(answer);
  CHECK(answer.error().code == errc::deadline);
  CHECK(std::chrono::steady_clock::now() - begin >= 200ms);
  CHECK(eventually([&] { return beta.seen->get(&recorder::cancels_) == std::vector{end_cause::deadline}; }));
}

TEST_CASE_METHOD(meeting, "a node that stops says so, and requests to it fail with that cause") {
  std::atomic<int> code{0};
  alpha.link->request({"beta", "echo", 0}, to_message(text_letter("wait")), 60s,
    [&](const result<incoming>& got) { code = got ? 1000 : static_cast<int>(got.error().code); });
  REQUIRE(eventually([&] { return beta.link->counters().serving_requests == 1; }));
  beta.link->stop(end_cause::draining, 100ms);
  CHECK(eventually([&] { return code == static_cast<int>(errc::draining); }));
  CHECK(eventually([&] {
    const auto changes = alpha.seen->get(&recorder::changes_);
    return !changes.empty() && changes.back() == std::pair(false, end_cause::draining);
  }));
  // And its own requests fail as well, at once.
  const auto own = beta.ask("alpha", "x");
  REQUIRE_FALSE(own);
  CHECK(own.error().code == errc::draining);
}

TEST_CASE_METHOD(meeting, "a node that comes back is used again, as a new incarnation") {
  const auto before = alpha.link->members().at(0).incarnation;
  const auto keys = beta.keys;
  const auto at = beta.link->bound();
  beta.link->stop(end_cause::draining, 0ms);
  beta.link.reset();
  REQUIRE(eventually([&] { return !alpha.up("beta"); }));
  CHECK(alpha.ask("beta", "x").error().code == errc::unavailable);
  real_node again("beta", true, [&](link_options& options) {
    options.sockets.keys = keys;
    options.sockets.letters = at.letters;
    options.sockets.bulk = at.bulk;
    options.sockets.events = at.events;
  });
  again.keys = keys;
  again.link->add_peer(alpha.record());
  REQUIRE(eventually([&] { return alpha.up("beta"); }));
  CHECK(alpha.link->members().at(0).incarnation > before);
  CHECK(*alpha.ask("beta", "again") == "again");
}

TEST_CASE("a node whose key is not on the list is refused and counted") {
  real_node alpha("alpha", true);
  real_node beta("beta", true);
  beta.link->add_peer(alpha.record());
  CHECK(eventually([&] { return alpha.link->counters().unknown_keys > 0; }));
  CHECK_FALSE(beta.up("alpha"));
  // On the list it is let in.
  alpha.link->add_peer(beta.record());
  CHECK(eventually([&] { return beta.up("alpha"); }));
  // And off it, out.
  alpha.link->remove_peer(node_name("beta"), end_cause::draining);
  CHECK(eventually([&] { return !beta.up("alpha"); }));
}

TEST_CASE("a key that was replaced is nobody's any more, also on connections that are there") {
  real_node alpha("alpha", true);
  // It does not notice so soon that it is not listened to.
  real_node beta("beta", true, [](link_options& o) { o.core.peers.beat = moment(20'000'000); });
  introduce(alpha, beta);
  REQUIRE(eventually([&] { return alpha.up("beta") && beta.up("alpha"); }));
  auto other = beta.record();
  other.key = make_keys(node_name("beta"))->open;
  alpha.link->add_peer(other);
  CHECK(eventually([&] { return !alpha.up("beta"); }));
  const auto refused = alpha.link->counters().stale + alpha.link->counters().refused;
  CHECK(eventually([&] {
    beta.link->send({"alpha", "sink", 0}, to_message(text_letter("still me")), 10s);
    return alpha.link->counters().stale + alpha.link->counters().refused > refused;
  }));
  CHECK_FALSE(alpha.up("beta"));
  CHECK(alpha.seen->get(&recorder::letters_).empty());
}

TEST_CASE("a node that is named with another one's key is shown as refused, and is counted") {
  real_node alpha("alpha", true);
  real_node beta("beta", true);
  introduce(alpha, beta);
  REQUIRE(eventually([&] { return alpha.up("beta"); }));
  auto other = beta.record();
  other.name = node_name("gamma");
  alpha.link->add_peer(other);
  CHECK(eventually([&] { return alpha.link->counters().key_conflicts == 1; }));
  std::string why;
  for (const auto& each : alpha.link->members())
    if (each.node == node_name("gamma"))
      why = each.refusal;
  CHECK(why.find("beta and gamma have the same key") != std::string::npos);
  CHECK(alpha.up("beta"));
  CHECK(*alpha.ask("beta", "hello") == "hello");
  // With a key of its own it is a node as any other.
  real_node gamma("gamma", true);
  introduce(alpha, gamma);
  CHECK(eventually([&] { return alpha.up("gamma"); }));
}

TEST_CASE("nodes of two minor versions exchange letters, those of two major ones refuse each other") {
  real_node alpha("alpha", true);
  real_node later("later", true, [](link_options& o) { o.minor = protocol_minor + 1; });
  introduce(alpha, later);
  REQUIRE(eventually([&] { return alpha.up("later") && later.up("alpha"); }));
  CHECK(*alpha.ask("later", "up") == "up");
  CHECK(*later.ask("alpha", "down") == "down");
  const auto page = std::make_shared<const std::vector<std::byte>>(2 << 20, std::byte{7});
  const auto mail =
    letter<schema::EncodeRequest>::make([](schema::EncodeRequest::Builder b) { b.setSpecial(true); }, {page});
  alpha.link->send({"later", "sink", 0}, to_message(mail), 10s);
  later.link->send({"alpha", "sink", 0}, to_message(mail), 10s);
  for (const auto* const node : {&alpha, &later}) {
    CHECK(eventually([&] { return node->seen->get(&recorder::attached_).size() == 1; }));
    CHECK(node->link->counters().malformed == 0);
    CHECK(node->link->counters().refused == 0);
  }

  real_node next("next", true, [](link_options& o) { o.major = protocol_major + 1; });
  introduce(alpha, next);
  const auto says = [](const real_node& node, const std::string& other) {
    for (const auto& each : node.link->members())
      if (each.node.value == other)
        return each.refusal.find("next has 2.0") != std::string::npos
               && each.refusal.find("alpha has 1.0") != std::string::npos;
    return false;
  };
  CHECK(eventually([&] { return says(alpha, "next") && says(next, "alpha"); }));
  CHECK_FALSE(alpha.up("next"));
  CHECK_FALSE(next.up("alpha"));
  CHECK(*alpha.ask("later", "and still") == "and still");
}

TEST_CASE_METHOD(meeting, "letters and bulk are counted apart") {
  const auto page = std::make_shared<const std::vector<std::byte>>(100'000, std::byte{7});
  const auto mail =
    letter<schema::EncodeRequest>::make([](schema::EncodeRequest::Builder b) { b.setSpecial(true); }, {page});
  alpha.link->send({"beta", "sink", 0}, to_message(mail), 10s);
  CHECK(*alpha.ask("beta", "hello") == "hello");
  REQUIRE(eventually([&] { return beta.seen->get(&recorder::attached_).size() == 1; }));
  const auto& out = alpha.link->counters();
  const auto& in = beta.link->counters();
  CHECK(out.letters_sent == 2);
  CHECK(out.bulk_sent == 1);
  CHECK(out.bulk_bytes_sent > 100'000);
  CHECK(out.bytes_sent > out.bulk_bytes_sent);
  CHECK(in.bulk_received == 1);
  CHECK(in.bulk_bytes_received == out.bulk_bytes_sent);
}

TEST_CASE("a node that expects another key of its peer does not talk to it") {
  real_node alpha("alpha", true);
  real_node beta("beta", true);
  auto wrong = alpha.record();
  wrong.key = make_keys(node_name("other"))->open;
  alpha.link->add_peer(beta.record());
  beta.link->add_peer(wrong);
  CHECK(eventually([&] { return alpha.link->counters().connections > alpha.link->counters().handshakes; }));
  CHECK_FALSE(alpha.up("beta"));
  CHECK_FALSE(beta.up("alpha"));
}

TEST_CASE("plain sockets are for loopback only") {
  for (const char* outside : {"tcp://0.0.0.0:*", "tcp://*:*", "tcp://10.0.0.1:7400",
         "tcp://127.evil.example:1", "ipc:///tmp/x", "tcp://[::]:1"}) {
    link_options options;
    options.node = node_name("alpha");
    options.sockets.bulk = outside;
    const auto made = mesh_link::start(std::move(options), std::make_shared<recorder>());
    REQUIRE_FALSE(made);
    CHECK(made.error().code == errc::permission);
  }
  CHECK(is_loopback("tcp://127.0.0.1:7400"));
  CHECK(is_loopback("tcp://[::1]:*"));
}

TEST_CASE("a link says why it cannot be started") {
  const auto code = [](auto change) {
    link_options options;
    options.node = node_name("alpha");
    change(options);
    const auto made = mesh_link::start(std::move(options), std::make_shared<recorder>());
    REQUIRE_FALSE(made);
    return made.error().code;
  };
  CHECK(code([](link_options& o) { o.node = node_name("a b"); }) == errc::invalid_argument);
  CHECK(
    code([](link_options& o) { o.sockets.keys = *make_keys(node_name("beta")); }) == errc::invalid_argument);
  CHECK(code([](link_options& o) { o.sockets.letters = "tcp://127.0.0.1"; }) == errc::invalid_argument);
  const real_node taken("beta", false);
  CHECK(code([&](link_options& o) { o.sockets.letters = taken.link->bound().letters; }) == errc::io);
}

TEST_CASE("nodes too far apart in version or models refuse each other, and both say why") {
  real_node alpha("alpha", true, [](link_options& o) { o.models["small"] = "f00d"; });
  real_node beta("beta", true, [](link_options& o) { o.models["small"] = "beef"; });
  introduce(alpha, beta);
  const auto says = [](const real_node& node) {
    const auto all = node.link->members();
    return all.size() == 1 && all[0].refusal.find("the model small") != std::string::npos;
  };
  CHECK(eventually([&] { return says(alpha) && says(beta); }));
  CHECK_FALSE(alpha.up("beta"));
}

TEST_CASE_METHOD(meeting, "events reach whoever has subscribed to their topic") {
  beta.link->subscribe("kv.");
  // A subscription needs a moment to arrive: the first events may be missed.
  REQUIRE(eventually([&] {
    alpha.link->publish("kv.stored", to_message(text_letter("one")));
    alpha.link->publish("load", to_message(text_letter("two")));
    return !beta.seen->get(&recorder::events_).empty();
  }));
  for (const auto& each : beta.seen->get(&recorder::events_))
    CHECK(each == "kv.stored:one");
  CHECK(beta.link->counters().events_missed == 0);
}

TEST_CASE_METHOD(meeting, "a stream runs under credit from end to end") {
  std::mutex mutex;
  std::vector<std::string> got;
  bool complete = false;
  const auto stream = alpha.link->open_stream(
    {"beta", "source", 0}, to_message(text_letter("go")), 3, [&](const stream_event& event) {
      const std::lock_guard lock(mutex);
      event.mail != nullptr ? got.push_back(text_in(*event.mail)) : void(complete = event.complete);
    });
  REQUIRE(eventually([&] { return beta.seen->get(&recorder::credit_) != nullptr; }));
  const auto token = beta.seen->get(&recorder::token_);
  const auto credit = beta.seen->get(&recorder::credit_);
  const auto count = [&] {
    const std::lock_guard lock(mutex);
    return got.size();
  };
  for (int i = 0; i < 3; ++i)
    CHECK(beta.link->stream_item(token, *credit, to_message(text_letter(std::to_string(i)))));
  CHECK_FALSE(beta.link->stream_item(token, *credit, to_message(text_letter("too much"))));
  CHECK(eventually([&] { return count() == 3; }));
  alpha.link->grant(stream, 2);
  REQUIRE(eventually([&] { return credit->items == 2; }));
  CHECK(beta.link->stream_item(token, *credit, to_message(text_letter("3"))));
  beta.link->stream_end(token, *credit, std::nullopt);
  CHECK(eventually([&] {
    const std::lock_guard lock(mutex);
    return complete;
  }));
  CHECK(got == std::vector<std::string>{"0", "1", "2", "3"});
}

TEST_CASE_METHOD(meeting, "many threads may use a link at once") {
  constexpr int threads = 4;
  constexpr int each = 200;
  std::atomic<int> answered{0};
  {
    std::vector<std::jthread> all;
    for (int t = 0; t < threads; ++t)
      all.emplace_back([&, t] {
        for (int i = 0; i < each; ++i) {
          const auto text = std::to_string(t) + "/" + std::to_string(i);
          auto& from = t % 2 == 0 ? alpha : beta;
          from.link->request({t % 2 == 0 ? "beta" : "alpha", "echo", 0}, to_message(text_letter(text)), 20s,
            [&answered, text](const result<incoming>& got) {
              if (got && text_in(*got) == text)
                ++answered;
            });
        }
      });
  }
  CHECK(eventually([&] { return answered == threads * each; }));
}
