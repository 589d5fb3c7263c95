// What becomes of calls while the link's thread has more to do than its queue holds.

#include "tests/unit/services/link/real_links.hpp"

#include <catch2/catch.hpp>

#include <atomic>
#include <semaphore>

using namespace godwit;
using namespace godwit::link;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t room = 4;

/// Nobody is suspected here, however long a thread is held up.
void patient(link_options& options) {
  options.core.peers.misses =
    60; // but dialled again as soon as ever: the other may not have known this one yet
  options.core.peers.handshake = moment(60'000'000);
}

/// Two nodes; the thread of one can be held up in a letter.
struct held_up {
  std::counting_semaphore<8> go_on{0};
  std::atomic<bool> held{false};
  std::atomic<int> code{-1}; ///< of the failure of alpha's request; 0 for its answer
  std::atomic<int> answered{0};
  std::atomic<int> refused{0};
  real_node alpha{"alpha", true, patient};
  real_node beta{"beta", true, [](link_options& options) {
                   patient(options);
                   options.commands.parcels = room;
                 }};

  held_up() {
    beta.seen->before = [this](const std::string& text) {
      if (text != "hold")
        return;
      held = true;
      go_on.acquire();
    };
    introduce(alpha, beta);
    REQUIRE(eventually([this] { return alpha.up("beta") && beta.up("alpha"); }));
  }

  ~held_up() { go_on.release(); }

  /// Of a request that beta has and did not answer. Its thread does nothing from then on.
  reply_token hold() {
    alpha.link->request({"beta", "echo", 0}, to_message(text_letter("wait")), 60s,
      [this](const result<incoming>& got) { code = got ? 0 : static_cast<int>(got.error().code); });
    REQUIRE(eventually([this] { return beta.seen->get(&recorder::waiting_).size() == 1; }));
    alpha.link->send({"beta", "sink", 0}, to_message(text_letter("hold")), 10s);
    REQUIRE(eventually([this] { return held.load(); }));
    return beta.seen->get(&recorder::waiting_)[0];
  }

  /// Asks until the queue takes no more requests.
  void fill() {
    for (std::size_t i = 0; i < room + 1; ++i)
      beta.link->request({"alpha", "echo", 0}, to_message(text_letter("x")), 60s,
        [this](const result<incoming>& got) { got ? ++answered : ++refused; });
    REQUIRE(refused == 1);
  }
};

} // namespace

TEST_CASE_METHOD(held_up, "answers have a place for themselves when the queue is full of requests") {
  const auto token = hold();
  fill();
  beta.link->reply(token, to_message(text_letter("here")));
  go_on.release();
  CHECK(eventually([&] { return code == 0; }));
  CHECK(eventually([&] { return answered == static_cast<int>(room); }));
  CHECK(alpha.up("beta"));
  CHECK(beta.link->counters().overloaded == 0);
}

TEST_CASE_METHOD(held_up, "an answer for which there is no place at all costs its node its place") {
  const auto token = hold();
  fill();
  for (std::size_t i = 0; i < room; ++i)
    beta.link->subscribe("some");
  beta.link->reply(token, to_message(text_letter("here")));
  go_on.release();
  // Not by its deadline, which is a minute.
  CHECK(eventually([&] { return code == static_cast<int>(errc::overloaded); }));
  CHECK(eventually([&] {
    const auto changes = alpha.seen->get(&recorder::changes_);
    return changes.size() >= 2 && changes[1] == std::pair(false, end_cause::overloaded);
  }));
  CHECK(beta.link->counters().overloaded == 1);
  // And it has a place again.
  CHECK(eventually([&] { return alpha.up("beta") && beta.up("alpha"); }));
}

TEST_CASE_METHOD(held_up, "cancels for which there is no place at all cost all nodes their places") {
  hold();
  fill();
  for (std::size_t i = 0; i < room + 1; ++i)
    beta.link->cancel(1000 + i, end_cause::cancelled);
  go_on.release();
  CHECK(eventually([&] { return code == static_cast<int>(errc::overloaded); }));
  CHECK(beta.link->counters().overloaded == 1);
}

TEST_CASE_METHOD(held_up, "letters beyond the queue leave no hole: none of that conversation come later") {
  hold();
  std::vector<std::string> sent;
  for (std::size_t i = 0; i < room * 3; ++i) {
    sent.push_back(std::to_string(i));
    beta.link->send({"alpha", "sink", 0}, to_message(text_letter(sent.back())), 60s);
  }
  go_on.release();
  CHECK(eventually([&] { return code == static_cast<int>(errc::overloaded); }));
  const auto got = alpha.seen->get(&recorder::letters_);
  REQUIRE(got.size() <= room);
  CHECK(std::equal(got.begin(), got.end(), sent.begin()));
  // All that did not come, whether it was taken or not.
  CHECK(eventually([&] { return beta.link->counters().dead_letters == sent.size() - got.size(); }));
}

TEST_CASE_METHOD(held_up, "an item of a stream that finds no place costs no credit") {
  alpha.link->open_stream(
    {"beta", "source", 0}, to_message(text_letter("go")), 3, [](const stream_event&) {});
  REQUIRE(eventually([&] { return beta.seen->get(&recorder::credit_) != nullptr; }));
  const auto token = beta.seen->get(&recorder::token_);
  const auto credit = beta.seen->get(&recorder::credit_);
  hold();
  fill();
  CHECK_FALSE(beta.link->stream_item(token, *credit, to_message(text_letter("0"))));
  CHECK(credit->items == 3);
  go_on.release();
  CHECK(eventually([&] { return answered == static_cast<int>(room); }));
  CHECK(beta.link->stream_item(token, *credit, to_message(text_letter("0"))));
  CHECK(credit->items == 2);
}

TEST_CASE_METHOD(
  held_up, "an event that finds no place is missed by those who have subscribed, and they know") {
  alpha.link->subscribe("kv.");
  REQUIRE(eventually([&] {
    beta.link->publish("kv.x", to_message(text_letter("first")));
    return !alpha.seen->get(&recorder::events_).empty();
  }));
  hold();
  fill();
  for (int i = 0; i < 3; ++i)
    beta.link->publish("kv.x", to_message(text_letter("lost")));
  go_on.release();
  CHECK(eventually([&] { return answered == static_cast<int>(room); }));
  beta.link->publish("kv.x", to_message(text_letter("last")));
  CHECK(eventually([&] { return alpha.seen->get(&recorder::events_).back() == "kv.x:last"; }));
  CHECK(alpha.link->counters().events_missed == 3);
}
