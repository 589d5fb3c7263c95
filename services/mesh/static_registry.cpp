#include "services/mesh/static_registry.hpp"

#include "services/files/small_file.hpp"
#include "services/link/hello.hpp"
#include "services/link/zmq_transport.hpp"
#include "services/mesh/host.hpp"
#include "services/toml/toml.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>
#include <string_view>
#include <utility>

namespace godwit {

namespace {

constexpr std::size_t most_nodes = 4096;
constexpr std::array<std::string_view, 8> fields{
  "name", "host", "bind", "port", "letters_port", "bulk_port", "events_port", "key"};

/// An entry of the list.
struct entry {
  node_record record;
  std::optional<node_endpoints> listen; ///< nothing: its host is a name, and it says no address
  std::uint32_t line = 0;
};

/// Reads one table [[node]]; the first thing that is wrong ends it.
class entry_reader {
 public:
  entry_reader(const static_registry_options& options, const toml_value& table)
    : options_(options), table_(table) {}

  result<entry> read() {
    entry out;
    out.line = table_.line;
    for (const auto& [key, value] : *table_.as<toml_value::table>())
      if (std::ranges::find(fields, key) == fields.end())
        return wrong(value.line, "a node has no field \"" + key + "\"");
    if (const auto name = text("name"); !name)
      return fail(name);
    else if (!link::valid_node_name(*name))
      return wrong(line("name"), "a node's name has 1 to 63 letters, digits, dots, hyphens or underscores");
    else
      out.record.name = node_name(*name);
    if (const auto read = addresses(out); !read)
      return fail(read);
    if (const auto known = key_of(out.record.name); !known)
      return fail(known);
    else
      out.record.key = *known;
    return out;
  }

 private:
  tl::unexpected<error> wrong(std::uint32_t line, const std::string& what) const {
    return fail(errc::invalid_argument,
      "list of nodes " + options_.file.string() + ", line " + std::to_string(line) + ": " + what);
  }

  bool has(std::string_view field) const { return table_.find(field) != nullptr; }
  std::uint32_t line(std::string_view field) const {
    const auto* const value = table_.find(field);
    return value == nullptr ? table_.line : value->line;
  }

  result<std::string> text(std::string_view field) const {
    const auto* const value = table_.find(field);
    if (value == nullptr)
      return wrong(table_.line, "a node lacks \"" + std::string(field) + "\"");
    const auto* const out = value->as<std::string>();
    if (out == nullptr)
      return wrong(value->line, "\"" + std::string(field) + "\" is not a text");
    return *out;
  }

  result<std::uint16_t> port(std::string_view field, std::int64_t most) const {
    const auto* const value = table_.find(field);
    if (value == nullptr)
      return wrong(table_.line, "a node lacks \"" + std::string(field)
                                  + "\": it has one \"port\" with two more behind it, or three by name");
    const auto* const number = value->as<std::int64_t>();
    if (number == nullptr || *number < 1 || *number > most)
      return wrong(
        value->line, "\"" + std::string(field) + "\" is a number from 1 to " + std::to_string(most));
    return static_cast<std::uint16_t>(*number);
  }

  result<std::array<std::uint16_t, 3>> ports() const {
    if (has("port")) {
      for (const auto* each : {"letters_port", "bulk_port", "events_port"})
        if (has(each))
          return wrong(line(each), "a node has one \"port\" or three by name, not both");
      const auto first = port("port", 65'533);
      if (!first)
        return fail(first);
      const auto at = *first;
      return std::array{at, static_cast<std::uint16_t>(at + 1), static_cast<std::uint16_t>(at + 2)};
    }
    std::array<std::uint16_t, 3> out{};
    std::size_t place = 0;
    for (const auto* each : {"letters_port", "bulk_port", "events_port"}) {
      const auto one = port(each, 65'535);
      if (!one)
        return fail(one);
      out[place++] = *one;
    }
    return out;
  }

  result<void> addresses(entry& out) const {
    const auto host = text("host");
    if (!host)
      return fail(host);
    const bool address = is_ipv4(*host) || is_ipv6(*host);
    if (!address && !is_host_name(*host))
      return wrong(line("host"), "\"" + *host + "\" is neither an address nor a host's name");
    const auto at = ports();
    if (!at)
      return fail(at);
    const auto all = [&](const std::string& of) {
      return node_endpoints{
        tcp_endpoint(of, (*at)[0]), tcp_endpoint(of, (*at)[1]), tcp_endpoint(of, (*at)[2])};
    };
    out.record.endpoints = all(*host);
    if (options_.plain && !link::is_loopback(out.record.endpoints.letters))
      return wrong(
        line("host"), "sockets without keys are for loopback only: 127.0.0.1 or ::1, not \"" + *host + "\"");
    if (!has("bind")) {
      if (address)
        out.listen = out.record.endpoints;
      return {};
    }
    const auto bind = text("bind");
    if (!bind)
      return fail(bind);
    if (!is_ipv4(*bind) && !is_ipv6(*bind))
      return wrong(line("bind"), "\"" + *bind + "\" is not an address");
    out.listen = all(*bind);
    if (options_.plain && !link::is_loopback(out.listen->letters))
      return wrong(line("bind"), "sockets without keys are for loopback only");
    return {};
  }

  result<std::optional<link::public_key>> key_of(const node_name& name) const {
    if (options_.plain) {
      if (has("key"))
        return wrong(line("key"), "this mesh has no keys: take it out, or have keys on all nodes");
      return std::nullopt;
    }
    const auto said = text("key");
    if (!said)
      return fail(said);
    if (said->starts_with("godwit-public-1 ")) {
      const auto known = link::from_line(*said);
      if (!known)
        return wrong(line("key"), known.error().message);
      if (known->node != name)
        return wrong(line("key"), "the key is that of the node " + known->node.value);
      return known->key;
    }
    const auto all = link::load_known_keys(options_.file.parent_path() / *said);
    if (!all)
      return wrong(line("key"), all.error().message);
    for (const auto& each : *all)
      if (each.node == name)
        return each.key;
    return wrong(line("key"), "\"" + *said + "\" has no key of the node " + name.value);
  }

  const static_registry_options& options_;
  const toml_value& table_;
};

class listed_nodes final : public registry {
 public:
  listed_nodes(static_registry_options options, std::vector<entry> all)
    : options_(std::move(options)), all_(std::move(all)) {}

  std::optional<node_endpoints> listen() const override {
    const auto* const own = find(options_.self);
    return own == nullptr ? std::nullopt : own->listen;
  }

  std::string found_at() const override {
    const auto* const own = find(options_.self);
    return own == nullptr ? std::string() : own->record.endpoints.letters;
  }

  result<void> announce(const node_record& self) override {
    const auto* const own = find(self.name);
    if (own != nullptr && own->record.key != self.key)
      return fail(errc::conflict, "list of nodes " + options_.file.string() + ", line "
                                    + std::to_string(own->line) + ": the node " + self.name.value
                                    + " has another key; peers would refuse this one");
    return {};
  }

  void watch(std::function<void(const registry_change&)> watcher) override {
    for (const auto& each : all_)
      if (each.record.name != options_.self)
        watcher({each.record, true});
  }

  void stop() override {}

 private:
  const entry* find(const node_name& name) const {
    const auto found =
      std::ranges::find_if(all_, [&](const entry& each) { return each.record.name == name; });
    return found == all_.end() ? nullptr : &*found;
  }

  static_registry_options options_;
  std::vector<entry> all_;
};

/// Names, endpoints and keys that two entries share.
std::optional<std::string> shared(const std::vector<entry>& before, const entry& one) {
  const auto& all = one.record.endpoints;
  if (all.letters == all.bulk || all.letters == all.events || all.bulk == all.events)
    return "the node " + one.record.name.value + " has one port for two sockets";
  for (const auto& other : before) {
    if (other.record.name == one.record.name)
      return "there are two nodes " + one.record.name.value;
    if (one.record.key && other.record.key == one.record.key)
      return "the nodes " + other.record.name.value + " and " + one.record.name.value + " have one key";
    const auto& theirs = other.record.endpoints;
    for (const auto& mine : {all.letters, all.bulk, all.events})
      if (mine == theirs.letters || mine == theirs.bulk || mine == theirs.events)
        return "the nodes " + other.record.name.value + " and " + one.record.name.value + " both have "
               + mine;
  }
  return std::nullopt;
}

} // namespace

result<std::shared_ptr<registry>> static_registry::load(const static_registry_options& options) {
  const auto place = [&](std::uint32_t line) {
    return "list of nodes " + options.file.string() + ", line " + std::to_string(line) + ": ";
  };
  const auto content = read_small_file(options.file, "the list of nodes");
  if (!content)
    return fail(content);
  const auto table = parse_toml(*content);
  if (!table)
    return fail(errc::invalid_argument, place(table.error().line) + table.error().what);
  std::vector<entry> all;
  for (const auto& [key, value] : *table->as<toml_value::table>()) {
    const auto* const list = key == "node" ? value.as<toml_value::list>() : nullptr;
    if (list == nullptr)
      return fail(
        errc::invalid_argument, place(value.line) + "\"" + key + "\" is none of the tables [[node]]");
    if (list->size() > most_nodes)
      return fail(errc::invalid_argument, place(value.line) + "there are more than 4096 nodes");
    for (const auto& each : *list) {
      if (each.as<toml_value::table>() == nullptr)
        return fail(errc::invalid_argument, place(each.line) + "a node is a table");
      auto one = entry_reader(options, each).read();
      if (!one)
        return fail(one);
      if (const auto trouble = shared(all, *one))
        return fail(errc::invalid_argument, place(one->line) + *trouble);
      if (one->record.name == options.self && !one->listen)
        return fail(errc::invalid_argument,
          place(one->line)
            + "this node's host is a name, which cannot be listened on: say bind = an address");
      all.push_back(std::move(*one));
    }
  }
  return std::make_shared<listed_nodes>(options, std::move(all));
}

} // namespace godwit
