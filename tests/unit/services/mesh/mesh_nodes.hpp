#pragma once

// Nodes of a mesh in one process, with real sockets on loopback, and what they find each other by.

#include "messages/actor_error.hpp"
#include "messages/text.hpp"
#include "services/mesh/mesh.hpp"
#include "tests/support/eventually.hpp"

#include <caf/actor_cast.hpp>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/atom.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>
#include <caf/typed_response_promise.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace godwit {

/// Waits for something that another thread does. @returns whether it came true in a generous time
inline bool eventually(const std::function<bool()>& what) {
  return test::eventually(std::chrono::seconds(20), what);
}

/// What the registries of one test share.
struct board {
  using watcher = std::function<void(const registry_change&)>;
  std::mutex mutex;
  std::map<node_name, node_record> records;
  std::map<node_name, watcher> watchers;
  std::map<node_name, std::uint64_t> incarnations; ///< that it has for nodes, if not what they say
  std::string trouble;

  /// Takes a node off, as if it beat no more.
  void remove(const node_name& node) {
    const std::lock_guard lock(mutex);
    const auto gone = records.extract(node);
    for (const auto& [name, watcher] : watchers)
      if (name != node && !gone.empty())
        watcher({gone.mapped(), false});
  }
  std::uint64_t incarnation(const node_name& node) {
    const std::lock_guard lock(mutex);
    const auto found = records.find(node);
    return found == records.end() ? 0 : found->second.incarnation;
  }
};

/// A registry in memory: nodes come by announcing themselves.
class board_registry final : public registry {
 public:
  explicit board_registry(std::shared_ptr<board> on) : on_(std::move(on)) {}

  std::optional<node_endpoints> listen() const override {
    return node_endpoints{"tcp://127.0.0.1:*", "tcp://127.0.0.1:*", "tcp://127.0.0.1:*"};
  }
  result<void> announce(const node_record& self) override {
    const std::lock_guard lock(on_->mutex);
    self_ = self.name;
    on_->records.insert_or_assign(self.name, self);
    for (const auto& [name, watcher] : on_->watchers)
      if (name != self.name)
        watcher({self, true});
    return {};
  }
  void watch(std::function<void(const registry_change&)> watcher) override {
    const std::lock_guard lock(on_->mutex);
    for (const auto& [name, record] : on_->records)
      if (name != self_)
        watcher({record, true});
    on_->watchers.insert_or_assign(self_, std::move(watcher));
  }
  std::uint64_t incarnation() const override {
    const std::lock_guard lock(on_->mutex);
    const auto found = on_->incarnations.find(self_);
    return found == on_->incarnations.end() ? 0 : found->second;
  }
  std::string trouble() const override {
    const std::lock_guard lock(on_->mutex);
    return on_->trouble;
  }
  void stop() override {
    const std::lock_guard lock(on_->mutex);
    on_->watchers.erase(self_);
  }

 private:
  std::shared_ptr<board> on_;
  node_name self_;
};

/// What a node's actor says of it; the test may change it.
struct status_source {
  std::string state = "ready";
  std::vector<std::string> roles;
  std::string model = "m";
  std::string fingerprint = "f";
  std::uint32_t capacity = 0;
  mutable std::mutex mutex{};

  letter<schema::NodeStatus> status(const std::string& name, const std::string& incarnation) const {
    const std::lock_guard lock(mutex);
    return letter<schema::NodeStatus>::make([&](schema::NodeStatus::Builder b) {
      b.setName(name);
      b.setIncarnation(incarnation);
      b.setState(state);
      auto all = b.initRoles(static_cast<unsigned>(roles.size()));
      for (unsigned i = 0; i < roles.size(); ++i)
        all.set(i, roles[i]);
      b.setModel(model);
      b.setFingerprint(fingerprint);
      b.setCapacity(capacity);
    });
  }
};

/// Tokens are the bytes of the name of the node whose tokenizer it is; "wait" is never answered.
inline tokenizer_actor spawn_name_tokenizer(caf::actor_system& system, const std::string& name) {
  return caf::actor_cast<tokenizer_actor>(system.spawn([name](caf::event_based_actor* self) -> caf::behavior {
    using answer = caf::typed_response_promise<letter<schema::TokenIds>>;
    auto kept = std::make_shared<std::vector<answer>>();
    return {
      [=](const letter<schema::EncodeRequest>& what) -> caf::result<letter<schema::TokenIds>> {
        auto promise = self->make_response_promise<letter<schema::TokenIds>>();
        kept->push_back(promise);
        if (what.read().getText().size() != 4)
          promise.deliver(letter<schema::TokenIds>::make([&](schema::TokenIds::Builder b) {
            auto ids = b.initIds(static_cast<unsigned>(name.size()));
            for (unsigned i = 0; i < name.size(); ++i)
              ids.set(i, static_cast<unsigned char>(name[i]));
          }));
        return promise;
      },
      [=](stop_atom) { self->quit(); },
    };
  }));
}

inline letter<schema::EncodeRequest> text_letter(const std::string& text) {
  return letter<schema::EncodeRequest>::make([&](schema::EncodeRequest::Builder b) {
    b.setText({reinterpret_cast<const capnp::byte*>(text.data()), text.size()});
  });
}

/// An actor that knows nothing but its end.
inline caf::actor spawn_idle(caf::actor_system& system) {
  return system.spawn(
    [](caf::event_based_actor* self) -> caf::behavior { return {[=](stop_atom) { self->quit(); }}; });
}

/// A node: an actor system, a mesh, a node actor that says what `source` holds, a tokenizer.
class test_node {
 public:
  using change = std::function<void(mesh_options&)>;

  test_node(const std::string& name, std::shared_ptr<registry> nodes, std::vector<std::string> roles,
    const change& more = {}, bool keys = true)
    : name_(name), source(std::make_shared<status_source>()) {
    config_.set("scheduler.max-threads", 2);
    config_.set("scheduler.policy", caf::atom("sharing")); // as a node has it
    system_ = std::make_unique<caf::actor_system>(config_);
    source->roles = roles;
    mesh_options options;
    options.node = node_name(name);
    options.roles = std::move(roles);
    options.models = {{"m", "f"}};
    options.hash_mode = "kv-1";
    if (keys)
      options.keys = *link::make_keys(options.node);
    options.nodes = std::move(nodes);
    if (more)
      more(options);
    auto made = mesh::start(*system_, std::move(options));
    if (!made)
      throw std::runtime_error(made.error().message);
    mesh_ = std::move(*made);
  }

  ~test_node() {
    stop(link::end_cause::draining);
    for (const auto& each : own_)
      caf::anon_send(each, stop_atom::value);
    own_.clear();
    mesh_.reset();
  }

  /// Offers the node's actor, and a tokenizer.
  void serve() {
    offer("tokenizer", spawn_name_tokenizer(*system_, name_));
    offer("node",
      caf::actor_cast<node_actor>(system_->spawn([source = source, name = name_, weak = std::weak_ptr(mesh_)](
                                                   caf::event_based_actor* self) -> caf::behavior {
        return {
          [=](info_atom) {
            const auto of = weak.lock();
            return source->status(name, std::to_string(of ? of->incarnation() : 0));
          },
          [=](stop_atom) { self->quit(); },
        };
      })));
  }

  template <class Interface>
  Interface offer(const std::string& as, const Interface& actor) {
    own_.push_back(caf::actor_cast<caf::actor>(actor));
    mesh_->offer(as, actor);
    return actor;
  }

  /// An idle actor that passes for one of that interface.
  template <class Interface>
  Interface offer_idle(const std::string& as) {
    return offer(as, caf::actor_cast<Interface>(spawn_idle(*system_)));
  }

  void stop(link::end_cause cause) { mesh_->stop(cause, std::chrono::milliseconds(100)); }

  mesh& of() { return *mesh_; }
  caf::actor_system& system() { return *system_; }

  template <class Answer, class Actor, class... Ask>
  result<Answer> ask(const Actor& whom, Ask... what) {
    caf::scoped_actor self{*system_};
    result<Answer> out = fail(errc::internal, "no answer");
    self->request(whom, std::chrono::seconds(20), std::move(what)...)
      .receive([&](const Answer& answer) { out = answer; },
        [&](const caf::error& why) { out = tl::unexpected<error>(from_caf_error(why)); });
    return out;
  }

  /// The name of the node whose tokenizer answers, or why there is none.
  std::string asked(const tokenizer_actor& whom) {
    const auto ids = ask<letter<schema::TokenIds>>(whom, text_letter("x"));
    if (!ids)
      return std::string(to_string(ids.error().code));
    std::string out;
    for (const auto each : ids->read().getIds())
      out += static_cast<char>(each);
    return out;
  }

  struct seen {
    std::string state;
    std::string link;
    std::string why;
    double round_trip = 0;
    std::string incarnation = {};
  };
  std::map<std::string, seen> list() {
    std::map<std::string, seen> out;
    if (const auto list = ask<letter<schema::NodeList>>(mesh_->nodes(), list_atom::value))
      for (const auto each : list->read().getNodes())
        out[text_of(each.getName())] = {text_of(each.getState()), text_of(each.getLink()),
          text_of(each.getWhy()), each.getRoundTrip(), text_of(each.getIncarnation())};
    return out;
  }

  bool targets(const std::string& role, std::size_t count) {
    const auto all = mesh_->targets(role);
    return all && all->nodes().size() == count;
  }

 private:
  std::string name_;
  caf::actor_system_config config_;
  std::unique_ptr<caf::actor_system> system_;
  std::shared_ptr<mesh> mesh_;
  std::vector<caf::actor> own_;

 public:
  std::shared_ptr<status_source> source;
};

} // namespace godwit
