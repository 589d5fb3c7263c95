#pragma once

#include "actors/directory/directory.hpp"
#include "actors/session/session_machine.hpp"
#include "tests/unit/actors/directory/fake_peers.hpp"
#include "tests/unit/actors/session/actor_world.hpp"

#include <algorithm>
#include <deque>
#include <random>
#include <set>
#include <utility>

namespace godwit {

/// Nodes with a directory each, over one journal, in one actor system. A node can be stopped: nothing of it
/// runs any more, as after SIGSTOP or kill -9, though what it has sent and what it waits for is on its way.
class mesh_world : public actor_world {
 public:
  struct node {
    node_name name;
    session_config config;
    std::shared_ptr<fake_peers> peers;
    directory_actor directory;
    std::set<caf::actor_id> actors;
    bool stopped = false;
  };

  explicit mesh_world(std::size_t count = 3, directory_limits with = {}) : limits(with) {
    for (std::size_t i = 0; i < count; ++i)
      add(std::string(1, static_cast<char>('a' + i)));
    for (std::size_t i = 0; i < count; ++i)
      connect(i);
    run();
  }
  ~mesh_world() override { end(); }
  /// Ends all nodes, and every call that waits. Whoever has what a call refers to does it first.
  void end() {
    graves_.clear();
    for (auto& one : nodes) {
      one.stopped = false;
      // They hold directories.
      for (auto& other : nodes)
        one.peers->down(other.name);
    }
    run();
    for (auto& each : std::exchange(directories_, {}))
      caf::anon_send(each, stop_atom::value);
    pass(200'000);
  }

  // Nodes.

  std::size_t add(const std::string& name) {
    nodes.emplace_back();
    nodes.back().name = node_name(name);
    start(nodes.size() - 1);
    return nodes.size() - 1;
  }
  /// Starts a node that sees no other yet.
  void start(std::size_t i) {
    auto& one = nodes[i];
    one.stopped = false;
    one.actors.clear();
    one.config = config;
    one.config.node = one.name;
    one.config.incarnation = one.name.value + "-" + std::to_string(++starts_);
    one.peers = std::make_shared<fake_peers>(one.name);
    directory_config wanted;
    wanted.sessions = one.config;
    wanted.limits = limits;
    wanted.own_thread = false;
    wanted.peers = one.peers;
    one.directory = spawn_directory(system, wanted);
    one.actors.insert(one.directory.id());
    directories_.push_back(one.directory);
  }
  /// The node and all that run see each other.
  void connect(std::size_t i) {
    for (std::size_t k = 0; k < nodes.size(); ++k)
      if (k != i && !nodes[k].stopped) {
        nodes[k].peers->up(nodes[i].name, nodes[i].directory);
        nodes[i].peers->up(nodes[k].name, nodes[k].directory);
      }
  }
  /// All that run notice that the node is not there.
  void lose(std::size_t i) {
    for (std::size_t k = 0; k < nodes.size(); ++k)
      if (k != i && !nodes[k].stopped)
        nodes[k].peers->down(nodes[i].name);
    run();
  }
  void stop(std::size_t i) { nodes[i].stopped = true; }
  void kill(std::size_t i) {
    stop(i);
    lose(i);
  }
  /// A stopped node goes on. It finds that it was away, and so do the others.
  void resume(std::size_t i) {
    for (auto& other : nodes) {
      other.peers->down(nodes[i].name);
      nodes[i].peers->down(other.name);
    }
    nodes[i].stopped = false;
    connect(i);
  }
  /// The same node as a new process. What is left of the old one never runs again.
  void restart(std::size_t i) {
    graves_.insert(nodes[i].actors.begin(), nodes[i].actors.end());
    for (auto& other : nodes) {
      other.peers->down(nodes[i].name);
      nodes[i].peers->down(other.name);
    }
    start(i);
    connect(i);
  }
  std::size_t index(const std::string& name) const {
    return static_cast<std::size_t>(std::find_if(nodes.begin(), nodes.end(), [&](const node& one) {
      return one.name.value == name;
    }) - nodes.begin());
  }

  // The scheduler.

  void run() override {
    while (run_one()) {
    }
  }
  /// Runs one message of an actor that is not stopped: the first, or any if there are dice.
  bool run_one(std::mt19937* dice = nullptr) {
    auto& jobs = scheduler.jobs;
    std::vector<std::size_t> able;
    for (std::size_t i = 0; i < jobs.size() && (dice != nullptr || able.empty()); ++i)
      if (runs(id_of(jobs[i])))
        able.push_back(i);
    if (able.empty())
      return false;
    const auto pick =
      dice == nullptr ? 0 : std::uniform_int_distribution<std::size_t>(0, able.size() - 1)(*dice);
    auto* job = jobs[able[pick]];
    jobs.erase(jobs.begin() + static_cast<std::ptrdiff_t>(able[pick]));
    jobs.push_front(job);
    const auto by = id_of(job);
    const auto before = system.latest_actor_id();
    scheduler.run_once();
    // What an actor spawns is of its node.
    for (auto& one : nodes)
      if (one.actors.contains(by))
        for (auto id = before + 1; id <= system.latest_actor_id(); ++id)
          one.actors.insert(id);
    return true;
  }

  // Calls.

  static letter<schema::LocateRequest> named(
    const std::string& id, unsigned hops = 0, const std::string& tenant = "t") {
    return letter<schema::LocateRequest>::make([&](schema::LocateRequest::Builder b) {
      b.setSession(id);
      b.setTenant(tenant);
      b.setHops(static_cast<std::uint8_t>(hops));
    });
  }
  std::string create(
    std::size_t i, std::uint64_t seed = 1, std::uint32_t tokens = 12, std::uint64_t ttl = 0) {
    const auto answer =
      ask<letter<schema::SessionInfo>>(nodes[i].directory, wanted_session("t", seed, tokens, ttl));
    REQUIRE(answer->has_value());
    REQUIRE(**answer);
    return (***answer).read().getId().cStr();
  }
  std::shared_ptr<reply<session_actor>> seek(std::size_t i, const std::string& id, unsigned hops = 0) {
    return ask<session_actor>(nodes[i].directory, named(id, hops));
  }
  result<session_actor> find(std::size_t i, const std::string& id) {
    const auto answer = seek(i, id);
    REQUIRE(answer->has_value());
    return **answer;
  }
  std::shared_ptr<reply<letter<schema::SessionInfo>>> erase(std::size_t i, const std::string& id) {
    return ask<letter<schema::SessionInfo>>(nodes[i].directory, erase_atom::value, named(id));
  }
  const memory_disk::session& stored(const std::string& id) const {
    return disk->sessions.at(session_id(id));
  }
  std::string owner(const std::string& id) const { return stored(id).head.owner.value; }
  epoch_t epoch(const std::string& id) const { return stored(id).head.epoch; }
  double gauge(std::size_t i, const std::string& name) {
    const auto answer = ask<letter<schema::ActorStatus>>(nodes[i].directory, status_atom::value);
    REQUIRE(answer->has_value());
    for (const auto one : (***answer).read().getGauges())
      if (one.getName() == name)
        return one.getValue();
    return -1;
  }
  /// A few ticks of every directory, and what comes of them.
  void ticks(int count) {
    for (int i = 0; i < count; ++i) {
      pass(1'000);
      settle();
    }
  }

  // What must be true of a journal, whatever happened: its records follow from each other, every turn that
  // ended has ended once, and its tokens are those that the model gives for its prompt.

  /// @returns the turns that were completed
  std::size_t check(const std::string& id) const {
    session_machine machine{session_id(id)};
    std::map<turn_number, std::vector<token_id>> sequences;
    std::map<turn_number, std::size_t> prompts;
    std::map<turn_number, int> ends;
    for (const auto& record : stored(id).records) {
      const auto events = machine.apply(record);
      REQUIRE(events);
      for (const auto& event : *events)
        ends[event.turn] += event.terminal;
      if (!machine.conversation().empty()) {
        sequences[machine.conversation().back()] = machine.tokens();
        prompts[machine.conversation().back()] = machine.prompt_length();
      }
    }
    std::size_t completed = 0;
    for (const auto& turn : machine.turns()) {
      REQUIRE(ends[turn.turn] <= 1);
      if (turn.now != session_turn::state::completed)
        continue;
      ++completed;
      auto golden = sequences[turn.turn];
      golden.resize(prompts[turn.turn]);
      while (golden.size() < prompts[turn.turn] + machine.settings().getMaxTokens()) {
        golden.push_back(toy_next(machine.settings().getSampling().getSeed(), golden));
        if (golden.back() == toy_text::end)
          break;
      }
      REQUIRE(sequences[turn.turn] == golden);
    }
    return completed;
  }

  directory_limits limits;
  std::deque<node> nodes;

 private:
  static caf::actor_id id_of(caf::resumable* job) {
    const auto* actor = dynamic_cast<caf::abstract_actor*>(job);
    return actor == nullptr ? 0 : actor->id();
  }
  bool runs(caf::actor_id id) const {
    return !graves_.contains(id) && std::none_of(nodes.begin(), nodes.end(), [&](const node& one) {
      return one.stopped && one.actors.contains(id);
    });
  }

  std::set<caf::actor_id> graves_;
  std::vector<directory_actor> directories_;
  int starts_ = 0;
};

} // namespace godwit
