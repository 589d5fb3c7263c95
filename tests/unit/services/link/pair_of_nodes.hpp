#pragma once

#include "tests/unit/services/link/simulated_network.hpp"

#include <catch2/catch.hpp>

#include <cstdint>
#include <memory>
#include <string>

namespace godwit::link::simulated {

/// Two nodes that know each other.
struct pair_of_nodes {
  network net{1};
  std::shared_ptr<node> alpha = net.start("alpha");
  std::shared_ptr<node> beta = net.start("beta");

  pair_of_nodes() { net.introduce("alpha", "beta"); }

  void connect() {
    net.pass(second);
    REQUIRE(alpha->up("beta"));
    REQUIRE(beta->up("alpha"));
  }

  /// Starts one of them again with room for so many letters to the other, and lets them meet.
  void start_again(std::shared_ptr<node>& one, const std::string& name, std::size_t letters) {
    core_options small;
    small.peers.letters = {.parcels = letters, .bytes = 1 << 20};
    one = net.start(name, small, 10'000'000);
    net.introduce("alpha", "beta");
    net.pass(6 * second);
  }

  /// What became of a request.
  struct outcome {
    int calls = 0;
    std::uint64_t value = 0;
    errc code = errc::internal;
    std::string reason = {};
  };

  std::shared_ptr<outcome> ask(std::uint64_t value, moment within, std::uint64_t correlation = 0) {
    static std::uint64_t last = 1000;
    if (correlation == 0)
      correlation = ++last;
    auto out = std::make_shared<outcome>();
    alpha->subject.request(
      "beta", lane::letters, numbered(frame_kind::request, correlation, value), correlation, net.now + within,
      [out](const result<incoming>& answer) {
        ++out->calls;
        if (answer) {
          out->value = number_of(answer->words);
        } else {
          out->code = answer.error().code;
          out->reason = answer.error().reason;
        }
      },
      net.now);
    return out;
  }
};

} // namespace godwit::link::simulated
