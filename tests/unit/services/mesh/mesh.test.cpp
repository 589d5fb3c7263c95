#include "services/mesh/mesh.hpp"

#include "services/mesh/static_registry.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/unit/services/mesh/free_ports.hpp"
#include "tests/unit/services/mesh/mesh_nodes.hpp"

#include <catch2/catch.hpp>

#include <atomic>
#include <fstream>

using namespace godwit;
using namespace std::chrono_literals;
using link::end_cause;

namespace {

struct fixture {
  std::shared_ptr<board> all = std::make_shared<board>();

  std::unique_ptr<test_node> node(
    const std::string& name, std::vector<std::string> roles, const test_node::change& more = {}) const {
    auto made =
      std::make_unique<test_node>(name, std::make_shared<board_registry>(all), std::move(roles), more);
    made->serve();
    return made;
  }
};

/// A request that has been sent and waits.
struct pending {
  std::mutex mutex;
  std::optional<error> failed;

  bool ended() {
    const std::lock_guard lock(mutex);
    return failed.has_value();
  }
};

std::shared_ptr<pending> ask_and_wait(test_node& from, const tokenizer_actor& whom) {
  auto held = std::make_shared<pending>();
  from.system().spawn([=](caf::event_based_actor* self) {
    self->request(whom, 60s, text_letter("wait"))
      .then(
        [=](const letter<schema::TokenIds>&) {
          const std::lock_guard lock(held->mutex);
          held->failed = error{errc::internal, "it was answered", {}, {}};
        },
        [=](const caf::error& why) {
          const std::lock_guard lock(held->mutex);
          held->failed = from_caf_error(why);
        });
  });
  return held;
}

} // namespace

TEST_CASE_METHOD(fixture, "a role that a node lacks is another node's, as soon as that is there") {
  auto alpha = node("alpha", {"gateway"});
  const auto tokenizer = alpha->of().role<tokenizer_actor>("tokenizer");
  CHECK(tokenizer == alpha->of().role<tokenizer_actor>("tokenizer"));
  CHECK(alpha->asked(tokenizer) == "unavailable");
  auto beta = node("beta", {"tokenizer"});
  CHECK(eventually([&] { return alpha->targets("tokenizer", 1); }));
  CHECK(alpha->asked(tokenizer) == "beta");
  // A role that is asked for when the nodes are known already.
  CHECK(beta->of().targets("router") == nullptr);
  auto gamma = node("gamma", {"tokenizer", "router"});
  const auto late = beta->of().role<router_actor>("router");
  CHECK(eventually([&] { return beta->targets("router", 1); }));
}

TEST_CASE_METHOD(
  fixture, "one node stays in use until it goes, then the next is, and what was under way fails") {
  auto alpha = node("alpha", {"gateway"});
  const auto tokenizer = alpha->of().role<tokenizer_actor>("tokenizer");
  auto beta = node("beta", {"tokenizer"});
  CHECK(eventually([&] { return alpha->targets("tokenizer", 1); }));
  auto gamma = node("gamma", {"tokenizer"});
  CHECK(eventually([&] { return alpha->targets("tokenizer", 2); }));
  for (int i = 0; i < 5; ++i)
    CHECK(alpha->asked(tokenizer) == "beta");
  const auto under_way = ask_and_wait(*alpha, tokenizer);
  CHECK(eventually([&] { return beta->of().counters().serving_requests > 0; }));
  beta->stop(end_cause::draining);
  CHECK(eventually([&] { return under_way->ended(); }));
  CHECK(under_way->failed->code == errc::draining);
  CHECK(eventually([&] { return alpha->targets("tokenizer", 1); }));
  CHECK(alpha->asked(tokenizer) == "gamma");
}

TEST_CASE_METHOD(fixture, "a node that is starting is used when it says that it is ready") {
  auto alpha = node("alpha", {"gateway"});
  const auto tokenizer = alpha->of().role<tokenizer_actor>("tokenizer");
  // Asked again only after an hour, unless it says that it has changed.
  const auto slow = [](mesh_options& options) { options.pace.again = 1h; };
  test_node beta("beta", std::make_shared<board_registry>(all), {"tokenizer"}, slow);
  test_node gamma("gamma", std::make_shared<board_registry>(all), {"gateway"}, slow);
  const auto there = gamma.of().role<tokenizer_actor>("tokenizer");
  beta.source->state = "starting";
  beta.serve();
  CHECK(eventually([&] { return gamma.list()["beta"].state == "starting"; }));
  CHECK(gamma.asked(there) == "unavailable");
  {
    const std::lock_guard lock(beta.source->mutex);
    beta.source->state = "ready";
  }
  beta.of().changed();
  CHECK(eventually([&] { return gamma.targets("tokenizer", 1); }));
  CHECK(gamma.asked(there) == "beta");
  CHECK(eventually([&] { return alpha->asked(tokenizer) == "beta"; }));
}

TEST_CASE_METHOD(fixture, "a node that drains gets no new requests while there is another") {
  auto alpha = node("alpha", {"gateway"});
  const auto tokenizer = alpha->of().role<tokenizer_actor>("tokenizer");
  auto beta = node("beta", {"tokenizer"});
  CHECK(eventually([&] { return alpha->targets("tokenizer", 1); }));
  auto gamma = node("gamma", {"tokenizer"});
  CHECK(eventually([&] { return alpha->targets("tokenizer", 2); }));
  CHECK(alpha->asked(tokenizer) == "beta");
  {
    const std::lock_guard lock(beta->source->mutex);
    beta->source->state = "draining";
  }
  beta->of().drain();
  CHECK(eventually([&] { return alpha->of().targets("tokenizer")->in_use() == node_name("gamma"); }));
  CHECK(alpha->asked(tokenizer) == "gamma");
  CHECK(alpha->targets("tokenizer", 2)); // the link stays for what is running
}

TEST_CASE_METHOD(fixture, "a node with another model is not used, one with another fingerprint is refused") {
  auto alpha = node("alpha", {"gateway"});
  const auto tokenizer = alpha->of().role<tokenizer_actor>("tokenizer");
  test_node beta("beta", std::make_shared<board_registry>(all), {"tokenizer"}, [](mesh_options& options) {
    options.models = {{"n", "f"}};
  });
  beta.source->model = "n";
  beta.serve();
  auto gamma = node("gamma", {"tokenizer"}, [](mesh_options& options) { options.models = {{"m", "other"}}; });
  CHECK(eventually([&] {
    const auto list = alpha->list();
    return list.at("beta").why.find("another model") != std::string::npos
           && list.at("gamma").why.find("differ") != std::string::npos;
  }));
  const auto list = alpha->list();
  CHECK(list.at("alpha").link == "self");
  CHECK(list.at("beta").link == "up");
  CHECK(list.at("gamma").link == "away");
  CHECK(alpha->asked(tokenizer) == "unavailable");
}

TEST_CASE_METHOD(fixture, "workers are handed over as they come, and again when they were restarted") {
  auto alpha = node("alpha", {"router"});
  struct told {
    std::mutex mutex;
    std::vector<remote_worker> workers;
  };
  const auto heard = std::make_shared<told>();
  const auto count = [&] {
    const std::lock_guard lock(heard->mutex);
    return heard->workers.size();
  };
  alpha->of().watch_workers([heard](const remote_worker& worker) {
    const std::lock_guard lock(heard->mutex);
    heard->workers.push_back(worker);
  });
  auto beta = node("beta", {"prefill", "decode", "cache"});
  beta->source->capacity = 24;
  const auto prefill = beta->offer_idle<prefill_actor>("prefill");
  const auto decode = beta->offer_idle<decode_actor>("decode");
  REQUIRE(eventually([&] { return count() == 1; }));
  CHECK(heard->workers[0].node == node_name("beta"));
  CHECK(heard->workers[0].capacity == 24);

  // Who comes later hears of those that are there.
  std::atomic<int> again{0};
  std::atomic<int> gone{0};
  alpha->of().watch_workers(
    [heard, &again](const remote_worker& worker) {
      const std::lock_guard lock(heard->mutex);
      ++again;
      heard->workers.push_back(worker);
    },
    [&gone](const node_name& node) { gone += node.value == "beta" ? 1 : 100; });
  REQUIRE(eventually([&] { return count() == 2; }));
  CHECK(again == 1);

  // The worker is restarted: its handles are dead for whoever monitors them, and it comes anew.
  caf::scoped_actor self{alpha->system()};
  self->monitor(heard->workers[0].prefill);
  self->monitor(heard->workers[0].decode);
  caf::anon_send(prefill, stop_atom::value);
  caf::anon_send(decode, stop_atom::value);
  int down = 0;
  for (int i = 0; i < 2; ++i)
    self->receive([&](const caf::down_msg&) { ++down; }, caf::after(20s) >> [] {});
  CHECK(down == 2);
  CHECK(eventually([&] { return gone == 1; }));
  beta->offer_idle<prefill_actor>("prefill");
  beta->offer_idle<decode_actor>("decode");
  REQUIRE(eventually([&] { return count() == 3; }));
  CHECK(heard->workers[2].prefill != heard->workers[0].prefill);

  // Nobody is told of one's own, nor of a node that is no worker.
  auto gamma = node("gamma", {"tokenizer"});
  self->monitor(heard->workers[2].decode);
  beta->stop(end_cause::draining);
  self->receive([&](const caf::down_msg&) { ++down; }, caf::after(20s) >> [] {});
  CHECK(down == 3);
  CHECK(eventually([&] { return gone == 2; }));
  CHECK(count() == 3);
  alpha->of().watch_workers({});
}

TEST_CASE_METHOD(
  fixture, "a node that leaves the registry without having drained is lost, and is listed no more") {
  auto alpha = node("alpha", {"gateway"});
  const auto tokenizer = alpha->of().role<tokenizer_actor>("tokenizer");
  auto beta = node("beta", {"tokenizer"});
  REQUIRE(eventually([&] { return alpha->targets("tokenizer", 1); }));
  const auto under_way = ask_and_wait(*alpha, tokenizer);
  REQUIRE(eventually([&] { return beta->of().counters().serving_requests > 0; }));
  all->remove(node_name("beta"));
  REQUIRE(eventually([&] { return under_way->ended(); }));
  CHECK(under_way->failed->code == errc::peer_lost);
  CHECK(eventually([&] { return alpha->list().size() == 1 && alpha->of().figures().peers.empty(); }));

  // One that drains, and did say so.
  auto gamma = node("gamma", {"tokenizer"});
  REQUIRE(eventually([&] { return alpha->of().targets("tokenizer")->in_use() == node_name("gamma"); }));
  auto delta = node("delta", {"tokenizer"});
  REQUIRE(eventually([&] { return alpha->targets("tokenizer", 2); }));
  const auto finishing = ask_and_wait(*alpha, tokenizer);
  REQUIRE(eventually([&] { return gamma->of().counters().serving_requests > 0; }));
  {
    const std::lock_guard lock(gamma->source->mutex);
    gamma->source->state = "draining";
  }
  gamma->of().drain();
  REQUIRE(eventually([&] { return alpha->of().targets("tokenizer")->in_use() == node_name("delta"); }));
  all->remove(node_name("gamma"));
  REQUIRE(eventually([&] { return finishing->ended(); }));
  CHECK(finishing->failed->code == errc::draining);
}

TEST_CASE_METHOD(fixture, "a node has one incarnation: for the registry, for its peers, and in the list") {
  auto alpha = node("alpha", {"gateway"});
  // Higher than any clock's: its name had another holder.
  const std::uint64_t given = 5'000'000'000'000;
  all->incarnations[node_name("beta")] = given;
  auto beta = node("beta", {"tokenizer"});
  const auto seen = [&] {
    const auto peers = alpha->of().figures().peers;
    return peers.empty() ? 0 : peers[0].incarnation;
  };
  REQUIRE(eventually([&] { return seen() == given; }));
  CHECK(beta->of().incarnation() == given);
  CHECK(alpha->list()["beta"].incarnation == std::to_string(given));

  // It was given another one meanwhile.
  {
    const std::lock_guard lock(all->mutex);
    all->incarnations[node_name("beta")] = given + 1;
  }
  CHECK(beta->list()["beta"].incarnation == std::to_string(given + 1));
  CHECK(eventually([&] {
    beta->list();
    return all->incarnation(node_name("beta")) == given + 1;
  }));
}

TEST_CASE_METHOD(fixture, "nodes that serve sessions know each other, and hear of a loss") {
  auto alpha = node("alpha", {"session"});
  auto beta = node("beta", {"session"});
  auto gamma = node("gamma", {"gateway"});
  const auto& peers = *alpha->of().sessions();
  const auto both = std::vector{node_name("alpha"), node_name("beta")};
  CHECK(eventually([&] { return peers.alive() == both && gamma->of().sessions()->alive() == both; }));
  CHECK(peers.find(node_name("beta")));
  CHECK_FALSE(peers.find(node_name("alpha")));
  CHECK_FALSE(peers.find(node_name("gamma")));
  // One that has troubles of its own is not lost while its link is up: others would take its sessions.
  const auto directory = gamma->of().role<directory_actor>("directory");
  CHECK(eventually([&] { return gamma->targets("directory", 2); }));
  {
    const std::lock_guard lock(beta->source->mutex);
    beta->source->state = "starting";
  }
  beta->of().changed();
  CHECK(eventually([&] { return gamma->targets("directory", 1); }));
  CHECK(peers.alive() == both);

  const auto lost = std::make_shared<std::atomic<int>>(0);
  alpha->of().sessions()->watch_lost(
    [lost](const node_name& node) { *lost += node.value == "beta" ? 1 : 100; });
  gamma->stop(end_cause::draining);
  beta->stop(end_cause::draining);
  CHECK(eventually([&] { return *lost == 1; }));
  CHECK(peers.alive() == std::vector{node_name("alpha")});
}

TEST_CASE_METHOD(fixture, "a session node of another node is asked itself") {
  auto alpha = node("alpha", {"session"});
  auto beta = node("beta", {"session"});
  const auto directory =
    caf::actor_cast<directory_actor>(beta->system().spawn([](caf::event_based_actor* self) -> caf::behavior {
      return {
        [](const letter<schema::ListRequest>& what) {
          return letter<schema::SessionList>::make([&](schema::SessionList::Builder b) {
            b.initSessions(1)[0].setId("of " + text_of(what.read().getTenant()));
          });
        },
        [=](stop_atom) { self->quit(); },
      };
    }));
  beta->offer("directory", directory);
  CHECK(eventually([&] { return alpha->of().sessions()->find(node_name("beta")).has_value(); }));
  const auto list = alpha->ask<letter<schema::SessionList>>(*alpha->of().sessions()->find(node_name("beta")),
    letter<schema::ListRequest>::make([](schema::ListRequest::Builder b) { b.setTenant("t"); }));
  REQUIRE(list);
  CHECK(list->read().getSessions()[0].getId() == "of t");
}

TEST_CASE_METHOD(fixture, "the list of nodes shows each as it is") {
  auto alpha = node("alpha", {"gateway"});
  CHECK(eventually([&] { return alpha->list()["alpha"].state == "ready"; }));
  CHECK(alpha->list().size() == 1);
  auto beta = node("beta", {"tokenizer"});
  test_node mute("mute", std::make_shared<board_registry>(all), {"tokenizer"});
  CHECK(eventually([&] {
    auto list = alpha->list();
    return list["beta"].state == "ready" && list["beta"].round_trip > 0 && list["mute"].link == "up"
           && list["mute"].state == "unresponsive" && !list["mute"].why.empty();
  }));
  beta->stop(end_cause::draining);
  CHECK(eventually([&] {
    auto list = alpha->list();
    return list["beta"].link == "away" && list["beta"].state == "away" && !list["beta"].why.empty();
  }));
  CHECK(alpha->list().size() == 3);
}

TEST_CASE_METHOD(
  fixture, "a registry that is away is shown with the node that lacks it, and nothing else changes") {
  auto alpha = node("alpha", {"gateway"});
  auto beta = node("beta", {"tokenizer"});
  REQUIRE(eventually([&] { return alpha->list()["beta"].state == "ready"; }));
  CHECK(alpha->list()["alpha"].why.empty());
  CHECK(alpha->of().figures().registry_trouble.empty());
  const auto say = [this](const std::string& words) {
    const std::lock_guard lock(all->mutex);
    all->trouble = words;
  };
  say("the database is away");
  auto list = alpha->list();
  CHECK(list["alpha"].why == "the database is away");
  CHECK(list["alpha"].state == "ready");
  CHECK(list["beta"].why.empty());
  CHECK(list["beta"].state == "ready");
  CHECK(alpha->of().figures().registry_trouble == "the database is away");
  say("");
  CHECK(alpha->list()["alpha"].why.empty());
}

TEST_CASE_METHOD(fixture, "what went over a link is counted for each peer") {
  auto alpha = node("alpha", {"gateway"});
  auto beta = node("beta", {"tokenizer"});
  const auto tokenizer = alpha->of().role<tokenizer_actor>("tokenizer");
  CHECK(eventually([&] { return alpha->targets("tokenizer", 1); }));
  for (int i = 0; i < 100; ++i)
    CHECK(alpha->asked(tokenizer) == "beta");
  CHECK(eventually([&] {
    const auto figures = alpha->of().figures();
    return figures.peers.size() == 1 && figures.peers[0].letters_sent >= 100
           && figures.peers[0].letters_received >= 100;
  }));
  const auto figures = alpha->of().figures();
  CHECK(figures.peers[0].node == node_name("beta"));
  CHECK(figures.peers[0].state == link::peer_state::up);
  CHECK(figures.peers[0].bytes_sent > 100 * 104); // a header at least
  CHECK(figures.peers[0].bytes_received > 100 * 104);
  REQUIRE(figures.roles.size() == 1);
  CHECK(figures.roles[0].name == "tokenizer");
  CHECK(figures.roles[0].in_use == "beta");
  CHECK(figures.roles[0].targets == 1);
  const auto router = alpha->of().role<router_actor>("router");
  caf::anon_send(router, letter<schema::CreditGrant>());
  CHECK(alpha->of().figures().dead_letters == figures.dead_letters + 1);
}

TEST_CASE_METHOD(fixture, "a node that stops tells its own requests and handles so") {
  auto alpha = node("alpha", {"gateway"});
  auto beta = node("beta", {"tokenizer"});
  const auto tokenizer = alpha->of().role<tokenizer_actor>("tokenizer");
  CHECK(eventually([&] { return alpha->targets("tokenizer", 1); }));
  const auto under_way = ask_and_wait(*alpha, tokenizer);
  CHECK(eventually([&] { return beta->of().counters().serving_requests > 0; }));
  alpha->stop(end_cause::draining);
  CHECK(eventually([&] { return under_way->ended(); }));
  CHECK(under_way->failed->code == errc::draining);
  CHECK(alpha->asked(tokenizer) == "draining");
  CHECK(alpha->list().empty());
  // Over there nothing is left of it.
  CHECK(eventually(
    [&] { return beta->of().counters().serving_requests == 0 && beta->list()["alpha"].link == "away"; }));
}

TEST_CASE_METHOD(fixture, "nodes that come and go are found again each time") {
  auto alpha = node("alpha", {"gateway"});
  const auto tokenizer = alpha->of().role<tokenizer_actor>("tokenizer");
  for (int i = 0; i < 3; ++i) {
    auto beta = node("beta", {"tokenizer"});
    CHECK(eventually([&] { return alpha->asked(tokenizer) == "beta"; }));
  }
  CHECK(eventually([&] { return alpha->targets("tokenizer", 0); }));
}

TEST_CASE("a node that nobody tells where to listen does not start, nor one without keys off loopback") {
  class nowhere final : public registry {
    std::optional<node_endpoints> listen() const override { return std::nullopt; }
    result<void> announce(const node_record&) override { return fail(errc::conflict, "that name is taken"); }
    void watch(std::function<void(const registry_change&)>) override {}
    void stop() override {}
  };
  caf::actor_system_config config;
  caf::actor_system system{config};
  mesh_options options;
  options.node = node_name("alpha");
  options.nodes = std::make_shared<nowhere>();
  const auto silent = mesh::start(system, options);
  REQUIRE_FALSE(silent);
  CHECK(silent.error().code == errc::invalid_argument);
  options.listen = {"tcp://0.0.0.0:*", "tcp://0.0.0.0:*", "tcp://0.0.0.0:*"};
  const auto open = mesh::start(system, options);
  REQUIRE_FALSE(open);
  CHECK(open.error().code == errc::permission);
  // And what the registry has against it.
  options.listen = {"tcp://127.0.0.1:*", "tcp://127.0.0.1:*", "tcp://127.0.0.1:*"};
  const auto taken = mesh::start(system, options);
  REQUIRE_FALSE(taken);
  CHECK(taken.error().code == errc::conflict);
}

TEST_CASE("two nodes find each other by a list in a file") {
  temporary_folder folder;
  const auto file = folder.path() / "nodes.toml";
  const auto ports = free_ports(6);
  std::map<std::string, link::node_keys> keys;
  {
    std::ofstream out(file);
    for (std::size_t i = 0; i < 2; ++i) {
      const std::string name = i == 0 ? "alpha" : "beta";
      keys.emplace(name, *link::make_keys(node_name(name)));
      REQUIRE(link::save_keys(keys.at(name), folder.path()));
      out << "[[node]]\nname = \"" << name << "\"\nhost = \"127.0.0.1\"\nletters_port = " << ports[3 * i]
          << "\nbulk_port = " << ports[3 * i + 1] << "\nevents_port = " << ports[3 * i + 2] << "\nkey = \""
          << name << ".public\"\n";
    }
  }
  const auto start = [&](const std::string& name) {
    auto nodes = static_registry::load({file, node_name(name), false});
    REQUIRE(nodes);
    auto made = std::make_unique<test_node>(name, *nodes, std::vector<std::string>{"tokenizer"},
      [&](mesh_options& options) { options.keys = keys.at(name); });
    made->serve();
    return made;
  };
  auto alpha = start("alpha");
  auto beta = start("beta");
  const auto tokenizer = alpha->of().role<tokenizer_actor>("tokenizer");
  CHECK(eventually([&] { return alpha->targets("tokenizer", 1); }));
  CHECK(alpha->asked(tokenizer) == "beta");
  CHECK(alpha->of().self().endpoints.letters == "tcp://127.0.0.1:" + std::to_string(ports[0]));

  // Another process of that name, which listens elsewhere, is refused while the one that others know lives.
  const auto start_elsewhere = [&] {
    auto nodes = static_registry::load({file, node_name("alpha"), false});
    REQUIRE(nodes);
    return std::make_unique<test_node>(
      "alpha", *nodes, std::vector<std::string>{"tokenizer"}, [&](mesh_options& options) {
        options.keys = keys.at("alpha");
        options.listen = {"tcp://127.0.0.1:*", "tcp://127.0.0.1:*", "tcp://127.0.0.1:*"};
      });
  };
  CHECK_THROWS_WITH(start_elsewhere(), Catch::Contains("another process of this mesh is called alpha"));
  CHECK(alpha->asked(tokenizer) == "beta");
  alpha.reset();
  CHECK_NOTHROW(start_elsewhere());
}
