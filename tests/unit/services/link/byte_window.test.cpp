#include "services/link/byte_window.hpp"

#include "tests/unit/services/link/real_links.hpp"

#include <catch2/catch.hpp>
#include <zmq.hpp>

#include <poll.h>

#include <thread>

using namespace godwit;
using namespace godwit::link;
using namespace std::chrono_literals;

namespace {

bool woken(const link::detail::waker& of) {
  pollfd one{of.descriptor(), POLLIN, 0};
  return ::poll(&one, 1, 0) == 1;
}

} // namespace

TEST_CASE("a window is full from its size on, and tells once when half of it is back") {
  const link::detail::waker waker;
  link::detail::byte_window window(100, waker);
  CHECK_FALSE(window.full());
  window.lend(99);
  CHECK_FALSE(window.full());
  window.lend(500); // the last may be of any size
  window.give_back(1);
  CHECK_FALSE(woken(waker)); // nobody has asked
  CHECK(window.full());
  window.give_back(500);
  CHECK_FALSE(woken(waker));
  window.give_back(48);
  CHECK(woken(waker));
  CHECK(window.lent() == 50);
  waker.settle();
  window.give_back(50);
  CHECK_FALSE(woken(waker));
  CHECK_FALSE(window.full());
}

TEST_CASE("whoever waits for a window is always woken") {
  const link::detail::waker waker;
  link::detail::byte_window window(4, waker);
  std::atomic<int> out{0};
  constexpr int all = 20'000;
  const std::jthread other([&](const std::stop_token& stop) {
    for (int done = 0; done < all && !stop.stop_requested();)
      if (out.load() > done) {
        window.give_back(1);
        ++done;
      }
  });
  bool woke = true;
  for (int i = 0; i < all && woke; ++i) {
    while (woke && window.full()) {
      pollfd one{waker.descriptor(), POLLIN, 0};
      woke = ::poll(&one, 1, 60'000) == 1;
      waker.settle();
    }
    window.lend(1);
    ++out;
  }
  CHECK(woke);
}

TEST_CASE("what ZeroMQ takes for a node that reads nothing is bounded in bytes") {
  zmq::context_t context(1);
  zmq::socket_t other(context, zmq::socket_type::router);
  other.set(zmq::sockopt::linger, 0);
  other.set(zmq::sockopt::rcvhwm, 1);
  other.bind("tcp://127.0.0.1:*");
  const auto endpoint = other.get(zmq::sockopt::last_endpoint);

  link_counters counters;
  socket_options options;
  options.node = node_name("alpha");
  options.letter_window = 1 << 20;
  auto opened = zmq_transport::open(options, counters);
  REQUIRE(opened);
  auto& network = **opened;
  const auto channel = network.dial(lane::letters, {node_name("beta"), {}, endpoint, endpoint, ""});
  constexpr std::size_t letter = 256 << 10;
  std::size_t taken = 0;
  std::mutex mutex;
  std::unique_lock turn(mutex);
  const auto offer = [&] {
    parcel what{std::vector<std::byte>(letter), {}};
    taken += network.send(channel, what) ? letter : 0;
    network.wait(moment(4'000), turn);
  };
  REQUIRE(eventually([&] {
    offer();
    return taken >= std::size_t{1} << 20;
  }));
  for (int i = 0; i < 300; ++i)
    offer();
  // The window, and what the two ends of a TCP connection hold; 75 MiB are offered.
  CHECK(taken <= std::size_t{40} << 20);
}

TEST_CASE("letters and pages that are larger than the windows all arrive, in order") {
  const auto narrow = [](link_options& options) {
    options.sockets.letter_window = 4096;
    options.sockets.bulk_window = 1 << 20;
  };
  real_node alpha("alpha", true, narrow);
  real_node beta("beta", true, narrow);
  introduce(alpha, beta);
  REQUIRE(eventually([&] { return alpha.up("beta") && beta.up("alpha"); }));
  std::vector<std::string> sent;
  for (int i = 0; i < 300; ++i) {
    sent.push_back(std::to_string(i) + std::string(i % 3 == 0 ? 10'000 : 10, 'x'));
    alpha.link->send({"beta", "sink", 0}, to_message(text_letter(sent.back())), 60s);
  }
  REQUIRE(eventually([&] { return beta.seen->get(&recorder::letters_).size() == sent.size(); }));
  CHECK(beta.seen->get(&recorder::letters_) == sent);
  const auto page = std::make_shared<const std::vector<std::byte>>(700'000, std::byte{7});
  const auto mail = letter<schema::EncodeRequest>::make(
    [](schema::EncodeRequest::Builder b) { b.setSpecial(true); }, {page, page});
  for (int i = 0; i < 20; ++i)
    alpha.link->send({"beta", "sink", 0}, to_message(mail), 60s);
  CHECK(eventually([&] { return beta.seen->get(&recorder::attached_).size() == 40; }));
  CHECK(alpha.link->counters().peers_lost == 0);
}
