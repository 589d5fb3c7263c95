#include "services/mesh/group_registry.hpp"

#include "services/files/small_file.hpp"
#include "services/link/hello.hpp"
#include "services/mesh/group_file.hpp"
#include "services/mesh/host.hpp"

#include <charconv>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace godwit {

namespace {

struct instance_ports {
  std::uint16_t letters = 0;
  std::uint16_t bulk = 0;
  std::uint16_t events = 0;
};

/// Nothing: it is no node.
std::optional<instance_ports> ports_of(const group_file::instance& of) {
  const auto port = [&](const char* name) {
    const auto found = of.ports.find(name);
    return found == of.ports.end() ? std::uint16_t{0} : found->second;
  };
  if (const auto first = port("mesh"); first != 0 && first <= 65'533)
    return instance_ports{
      first, static_cast<std::uint16_t>(first + 1), static_cast<std::uint16_t>(first + 2)};
  const instance_ports all{port("mesh_letters"), port("mesh_bulk"), port("mesh_events")};
  if (all.letters == 0 || all.bulk == 0 || all.events == 0)
    return std::nullopt;
  return all;
}

node_endpoints endpoints_at(const std::string& host, const instance_ports& ports) {
  return {
    tcp_endpoint(host, ports.letters), tcp_endpoint(host, ports.bulk), tcp_endpoint(host, ports.events)};
}

std::string first_part(const std::string& address) {
  return address.substr(0, address.find('.'));
}

/// A node of the group.
struct member {
  std::string role;
  std::string address;
  instance_ports ports;
};

tl::unexpected<error> in_file(const group_registry_options& options, const error& why) {
  return fail(why.code, "role group file " + options.file.string() + ": " + why.message);
}

result<group_file> read(const group_registry_options& options) {
  const auto content = read_small_file(options.file, "role group file");
  if (!content)
    return fail(content);
  auto out = parse_group_file(*content);
  if (!out)
    return in_file(options, out.error());
  return out;
}

/// The instance that this process is.
result<group_file::instance> own_instance(const group_registry_options& options, const group_file& file) {
  const auto role = options.environment("RBG_ROLE_NAME");
  const auto index = options.environment("RBG_ROLE_INDEX");
  if (!role || !index)
    return fail(errc::invalid_argument,
      "a node of a role group needs RBG_ROLE_NAME and RBG_ROLE_INDEX, which the group's controller sets, and "
      "one of a leader-worker set LWS_LEADER_ADDRESS");
  // Only leaders are in the file; a worker's index would name another leader.
  for (const auto* const variable : {"LWS_WORKER_INDEX", "RBG_LWP_WORKER_INDEX"})
    if (const auto worker = options.environment(variable); worker && *worker != "0")
      return fail(errc::invalid_argument,
        std::string(variable) + " says that this pod is worker " + *worker
          + " of its instance; the role group's file lists leaders only, so that only they can be nodes");
  std::size_t number = 0;
  const auto* const end = index->data() + index->size();
  if (const auto [stop, code] = std::from_chars(index->data(), end, number);
      code != std::errc{} || stop != end)
    return fail(errc::invalid_argument, "RBG_ROLE_INDEX is not a number: " + *index);
  const auto found = file.roles.find(*role);
  if (found == file.roles.end() || number >= found->second.size())
    return fail(errc::invalid_argument,
      "role group file " + options.file.string() + " has no instance " + *index + " of the role " + *role);
  return found->second[number];
}

/// What is known at start.
struct own_place {
  node_name name;
  std::string address;
  instance_ports ports;
  /// The pods, where no file lists them.
  std::optional<std::vector<member>> fixed;
};

bool has_file(const group_registry_options& options, const std::optional<leader_workers>& pods) {
  return !pods || options.environment("RBG_ROLE_NAME").has_value();
}

result<own_place> place_of(const group_registry_options& options) {
  const auto pods = leader_workers_of(options.environment);
  if (!pods)
    return fail(pods);
  own_place out;
  std::string address;
  if (has_file(options, *pods)) {
    const auto file = read(options);
    if (!file)
      return fail(file);
    const auto own = own_instance(options, *file);
    if (!own)
      return fail(own);
    address = own->address;
    const auto ports = ports_of(*own);
    if (!ports)
      return fail(errc::invalid_argument, "the role group's service of this node has no port named mesh, nor "
                                          "mesh-letters, mesh-bulk and mesh-events");
    out.ports = *ports;
  } else {
    if (options.port == 0 || options.port > 65'533)
      return fail(errc::invalid_argument, "the environment of a leader-worker set tells no port: set "
                                          "mesh_listen to the same one on all its pods");
    out.ports = {options.port, static_cast<std::uint16_t>(options.port + 1),
      static_cast<std::uint16_t>(options.port + 2)};
    address = (*pods)->addresses[(*pods)->own];
    out.fixed.emplace();
    for (std::size_t i = 0; i < (*pods)->addresses.size(); ++i)
      out.fixed->push_back({i == 0 ? "leader" : "worker", (*pods)->addresses[i], out.ports});
  }
  out.name = node_name(first_part(address));
  out.address = address;
  if (!link::valid_node_name(out.name.value))
    return fail(errc::corrupt, "the group's address of this node gives it no name: " + address);
  return out;
}

class group_nodes final : public registry {
 public:
  group_nodes(group_registry_options options, own_place own)
    : options_(std::move(options)), own_(std::move(own)), self_(own_.name) {}
  ~group_nodes() override { stop(); }

  std::optional<node_endpoints> listen() const override { return endpoints_at(options_.bind, own_.ports); }

  std::string found_at() const override { return endpoints_at(own_.address, own_.ports).letters; }

  result<void> announce(const node_record& self) override {
    if (self.name != self_)
      return fail(errc::invalid_argument,
        "the role group calls this node " + self_.value + ", and it calls itself " + self.name.value);
    const auto listed = key_of(self_);
    if (!listed)
      return fail(listed);
    if (self.key != *listed)
      return fail(errc::conflict,
        "the node " + self_.value + " has another key than its peers know: " + key_file(self_).string());
    return {};
  }

  void watch(std::function<void(const registry_change&)> watcher) override {
    watcher_ = std::move(watcher);
    look();
    thread_ = std::thread([this] {
      std::unique_lock lock(mutex_);
      while (!wake_.wait_for(lock, options_.poll, [this] { return stopped_; })) {
        lock.unlock();
        look();
        lock.lock();
      }
    });
  }

  std::string trouble() const override {
    const std::lock_guard lock(mutex_);
    return trouble_;
  }

  void stop() override {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    wake_.notify_all();
    if (thread_.joinable())
      thread_.join();
  }

 private:
  std::filesystem::path key_file(const node_name& node) const {
    return link::public_file(options_.keys, node);
  }

  result<link::public_key> key_of(const node_name& node) const {
    const auto all = link::load_known_keys(key_file(node));
    if (!all)
      return fail(all);
    for (const auto& each : *all)
      if (each.node == node)
        return each.key;
    return fail(errc::not_found, key_file(node).string() + " has no key of the node " + node.value);
  }

  result<std::vector<member>> members() const {
    if (own_.fixed)
      return *own_.fixed;
    const auto file = read(options_);
    if (!file)
      return fail(file);
    std::vector<member> out;
    for (const auto& [role, instances] : file->roles)
      for (const auto& each : instances)
        if (const auto ports = ports_of(each))
          out.push_back({role, each.address, *ports});
    return out;
  }

  /// Tells what has changed since the last time. What is wrong is said once.
  void look() {
    const auto all = members();
    {
      const std::lock_guard lock(mutex_);
      trouble_ = all ? std::string{} : all.error().message;
    }
    if (!all)
      return complain(options_.file.string(), all.error()); // the nodes that were known stay
    complaints_.erase(options_.file.string());
    std::map<node_name, node_record> now;
    for (const auto& each : *all)
      if (auto record = record_of(each))
        now.insert_or_assign(record->name, std::move(*record));
    for (const auto& [name, record] : known_)
      if (!now.contains(name))
        watcher_({record, false});
    for (const auto& [name, record] : now)
      if (const auto before = known_.find(name); before == known_.end() || before->second != record)
        watcher_({record, true});
    known_ = std::move(now);
  }

  /// Nothing: it is this node, or cannot be reached yet.
  std::optional<node_record> record_of(const member& of) {
    const node_name name(first_part(of.address));
    if (name == self_)
      return std::nullopt;
    if (!link::valid_node_name(name.value) || !is_host_name(of.address)) {
      complain(of.address, {errc::corrupt, "\"" + of.address + "\" is not the address of a node", {}, {}});
      return std::nullopt;
    }
    const auto key = key_of(name);
    if (!key) {
      complain(of.address, key.error());
      return std::nullopt;
    }
    complaints_.erase(of.address);
    node_record out;
    out.name = name;
    out.endpoints = endpoints_at(of.address, of.ports);
    out.key = *key;
    out.roles = {of.role};
    return out;
  }

  void complain(const std::string& about, const error& why) {
    auto& last = complaints_[about];
    if (last != why.message)
      options_.report(why);
    last = why.message;
  }

  const group_registry_options options_;
  const own_place own_;
  const node_name self_;
  std::function<void(const registry_change&)> watcher_;
  std::map<node_name, node_record> known_;
  std::map<std::string, std::string> complaints_;
  mutable std::mutex mutex_; ///< of the next two
  std::string trouble_;      ///< of the group's file
  bool stopped_ = false;
  std::condition_variable wake_;
  std::thread thread_;
};

} // namespace

result<node_name> group_registry::own_name(const group_registry_options& options) {
  const auto own = place_of(options);
  if (!own)
    return fail(own);
  return own->name;
}

result<std::shared_ptr<registry>> group_registry::open(group_registry_options options) {
  auto own = place_of(options);
  if (!own)
    return fail(own);
  if (!is_ipv4(options.bind) && !is_ipv6(options.bind))
    return fail(errc::invalid_argument, "\"" + options.bind + "\" is not an address to listen on");
  return std::make_shared<group_nodes>(std::move(options), std::move(*own));
}

} // namespace godwit
