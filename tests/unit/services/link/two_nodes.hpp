#pragma once

// Two nodes with links on loopback, and an exchange of actors each.

#include "messages/actor_error.hpp"
#include "services/link/actor_exchange.hpp"
#include "tests/unit/services/link/real_links.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/scoped_actor.hpp>
#include <catch2/catch.hpp>

#include <chrono>
#include <memory>
#include <string>
#include <utility>

namespace godwit::link {

/// A node with an actor system of its own.
struct actor_node {
  caf::actor_system_config config;
  std::unique_ptr<caf::actor_system> system;
  std::shared_ptr<actor_exchange> exchange;
  std::shared_ptr<mesh_link> link;
  node_keys keys;

  explicit actor_node(const std::string& name, exchange_options options = {})
    : keys(*make_keys(node_name(name))) {
    config.set("scheduler.max-threads", 2);
    system = std::make_unique<caf::actor_system>(config);
    exchange = actor_exchange::make(*system, options);
    link_options how;
    how.node = node_name(name);
    how.sockets.keys = keys;
    link = std::move(*mesh_link::start(std::move(how), exchange));
    exchange->use(link);
  }

  ~actor_node() { stop(end_cause::draining); }

  void stop(end_cause cause) {
    exchange->close();
    link->stop(cause, std::chrono::milliseconds(0));
  }

  peer_record record() const {
    const auto& at = link->bound();
    return {link->self(), keys.open, at.letters, at.bulk, at.events};
  }

  bool up() const {
    const auto all = link->members();
    return !all.empty() && all[0].state == peer_state::up;
  }
};

struct two_nodes {
  actor_node alpha;
  actor_node beta;
  caf::scoped_actor self{*alpha.system};

  explicit two_nodes(exchange_options options = {}) : alpha("alpha", options), beta("beta", options) {
    alpha.link->add_peer(beta.record());
    beta.link->add_peer(alpha.record());
    REQUIRE(eventually([this] { return alpha.up() && beta.up(); }));
  }

  template <class Answer, class Actor, class... Ask>
  result<Answer> ask(const Actor& whom, Ask... what) {
    result<Answer> out = fail(errc::internal, "no answer");
    self->request(whom, std::chrono::seconds(10), std::move(what)...)
      .receive([&](const Answer& answer) { out = answer; },
        [&](const caf::error& why) { out = tl::unexpected<error>(from_caf_error(why)); });
    return out;
  }
};

} // namespace godwit::link
