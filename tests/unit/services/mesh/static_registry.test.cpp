#include "services/mesh/static_registry.hpp"

#include "tests/support/temporary_folder.hpp"

#include <catch2/catch.hpp>

#include <fstream>
#include <map>
#include <string>

using namespace godwit;

namespace {

/// Keys of three nodes, made once.
const std::map<std::string, link::node_keys>& keys() {
  static const auto made = [] {
    std::map<std::string, link::node_keys> out;
    for (const auto* each : {"alpha", "beta", "gamma"})
      out.emplace(each, *link::make_keys(node_name(each)));
    return out;
  }();
  return made;
}

std::string line_of(const std::string& node) {
  return link::to_line({node_name(node), keys().at(node).open});
}

struct fixture {
  temporary_folder folder;
  std::string self = "alpha";
  bool plain = false;

  result<std::shared_ptr<registry>> load(const std::string& text) const {
    const auto file = folder.path() / "nodes.toml";
    std::ofstream(file, std::ios::binary) << text;
    return static_registry::load({file, node_name(self), plain});
  }

  /// What is wrong with a list; it names the file.
  std::string trouble(const std::string& text) const {
    const auto made = load(text);
    if (made)
      return "nothing";
    CHECK(made.error().code == errc::invalid_argument);
    CHECK(made.error().message.find("nodes.toml") != std::string::npos);
    return made.error().message;
  }

  static std::map<std::string, node_record> others(registry& of) {
    std::map<std::string, node_record> out;
    of.watch([&](const registry_change& change) {
      CHECK(change.there);
      out.emplace(change.node.name.value, change.node);
    });
    return out;
  }
};

std::string node(const std::string& name, const std::string& host, int port, const std::string& more = {}) {
  return "[[node]]\nname = \"" + name + "\"\nhost = \"" + host + "\"\nport = " + std::to_string(port)
         + "\nkey = \"" + line_of(name) + "\"\n" + more;
}

/// One node with these lines, of which the third is the fourth of the file.
std::string lines(const std::string& text) {
  return "[[node]]\nname = \"beta\"\n" + text;
}

const std::string beta_key = "key = \"" + line_of("beta") + "\"\n";

} // namespace

TEST_CASE_METHOD(fixture, "a list gives the other nodes, and where this one listens") {
  std::ofstream(folder.path() / "gamma.public") << line_of("gamma") << "\n";
  const auto made = load(node("alpha", "127.0.0.1", 7401) + node("beta", "beta.example", 7401) + R"(
[[node]]
name = "gamma"
host = "fd00::7"
letters_port = 1
bulk_port = 65535
events_port = 80
bind = "0.0.0.0"
key = "gamma.public"
)");
  REQUIRE(made);
  CHECK((*made)->listen()
        == node_endpoints{"tcp://127.0.0.1:7401", "tcp://127.0.0.1:7402", "tcp://127.0.0.1:7403"});
  const auto all = others(**made);
  REQUIRE(all.size() == 2);
  CHECK(all.at("beta").endpoints
        == node_endpoints{"tcp://beta.example:7401", "tcp://beta.example:7402", "tcp://beta.example:7403"});
  CHECK(all.at("beta").key == keys().at("beta").open);
  CHECK(all.at("gamma").endpoints
        == node_endpoints{"tcp://[fd00::7]:1", "tcp://[fd00::7]:65535", "tcp://[fd00::7]:80"});
  CHECK(all.at("gamma").key == keys().at("gamma").open);
}

TEST_CASE_METHOD(fixture, "a node that is not in the list is told nowhere to listen") {
  self = "delta";
  const auto made = load(node("beta", "10.0.0.7", 7401));
  REQUIRE(made);
  CHECK_FALSE((*made)->listen());
  CHECK(others(**made).size() == 1);
}

TEST_CASE_METHOD(fixture, "a node whose host is a name needs an address to listen on") {
  CHECK(trouble(node("alpha", "alpha.example", 7401)).find("bind") != std::string::npos);
  const auto made = load(node("alpha", "alpha.example", 7401, "bind = \"0.0.0.0\"\n"));
  REQUIRE(made);
  CHECK(
    (*made)->listen() == node_endpoints{"tcp://0.0.0.0:7401", "tcp://0.0.0.0:7402", "tcp://0.0.0.0:7403"});
}

TEST_CASE_METHOD(fixture, "a node whose key is not the listed one is told before its peers refuse it") {
  const auto made = load(node("alpha", "127.0.0.1", 7401));
  REQUIRE(made);
  node_record own;
  own.name = node_name("alpha");
  own.key = keys().at("alpha").open;
  CHECK((*made)->announce(own));
  own.key = keys().at("beta").open;
  const auto told = (*made)->announce(own);
  REQUIRE_FALSE(told);
  CHECK(told.error().code == errc::conflict);
  CHECK(told.error().message.find("line 1") != std::string::npos);
}

TEST_CASE_METHOD(fixture, "an empty list has no nodes") {
  const auto made = load("");
  REQUIRE(made);
  CHECK(others(**made).empty());
}

TEST_CASE_METHOD(fixture, "what is wrong is named with its line") {
  const std::string at = "host = \"10.0.0.7\"\n";
  const std::string port = "port = 7401\n";
  const std::pair<std::string, std::string> wrong[] = {
    {"[[node]\n", "line 1"},
    {"nodes = 3\n", "line 1: \"nodes\""},
    {"node = 3\n", "line 1: \"node\""},
    {"node = [1]\n", "line 1"},
    {"[node]\nname = \"beta\"\n", "\"node\""},
    {"[[node]]\n" + at + port + beta_key, "line 1: a node lacks \"name\""},
    {"[[node]]\nname = \"no name\"\n" + at + port + beta_key, "line 2: a node's name"},
    {"[[node]]\nname = 7\n" + at + port + beta_key, "line 2: \"name\" is not a text"},
    {lines(port + beta_key), "lacks \"host\""},
    {lines("host = \"10.0.0.300\"\n" + port + beta_key), "line 3: \"10.0.0.300\""},
    {lines("host = \"*\"\n" + port + beta_key), "line 3: \"*\""},
    {lines("host = \"a b\"\n" + port + beta_key), "line 3"},
    {lines("host = \"\"\n" + port + beta_key), "line 3"},
    {lines("host = \"[::1]\"\n" + port + beta_key), "line 3"},
    {lines(at + beta_key), "port"},
    {lines(at + "port = 0\n" + beta_key), "line 4: \"port\" is a number from 1 to 65533"},
    {lines(at + "port = 65534\n" + beta_key), "line 4"},
    {lines(at + "port = -1\n" + beta_key), "line 4"},
    {lines(at + "port = \"7401\"\n" + beta_key), "line 4"},
    {lines(at + "port = 74.5\n" + beta_key), "line 4"},
    {lines(at + port + "bulk_port = 7409\n" + beta_key), "line 5: a node has one"},
    {lines(at + "letters_port = 1\nbulk_port = 2\n" + beta_key), "lacks \"events_port\""},
    {lines(at + "letters_port = 1\nbulk_port = 2\nevents_port = 2\n" + beta_key), "one port for two"},
    {lines(at + port + "bind = \"beta.example\"\n" + beta_key), "line 5: \"beta.example\""},
    {lines(at + port), "lacks \"key\""},
    {lines(at + port + "key = \"godwit-public-1 beta short\"\n"), "line 5"},
    {lines(at + port + "key = \"" + line_of("gamma") + "\"\n"), "line 5: the key is that of the node gamma"},
    {lines(at + port + "key = \"missing.public\"\n"), "line 5"},
    {lines(at + port + beta_key + "keys = 1\n"), "line 6: a node has no field \"keys\""},
    {node("beta", "10.0.0.7", 7401) + node("beta", "10.0.0.8", 7401), "line 6: there are two nodes beta"},
    {node("beta", "10.0.0.7", 7401) + node("gamma", "10.0.0.7", 7403), "both have tcp://10.0.0.7:7403"},
    {node("beta", "10.0.0.7", 7401) + "[[node]]\nname = \"beta2\"\n" + at + port, "lacks \"key\""},
  };
  for (const auto& [text, expected] : wrong) {
    INFO(text);
    CHECK_THAT(trouble(text), Catch::Contains(expected));
  }
}

TEST_CASE_METHOD(fixture, "two nodes cannot have one key") {
  // A file of keys may hold several; the name decides, so the same key needs two names.
  const auto z85 = link::to_z85(keys().at("beta").open);
  const auto text =
    node("beta", "10.0.0.7", 7401)
    + "[[node]]\nname = \"gamma\"\nhost = \"10.0.0.8\"\nport = 7401\nkey = \"godwit-public-1 gamma " + z85
    + "\"\n";
  CHECK_THAT(trouble(text), Catch::Contains("the nodes beta and gamma have one key"));
}

TEST_CASE_METHOD(fixture, "a file of keys has to hold the node's") {
  std::ofstream(folder.path() / "all.public") << line_of("alpha") << "\n" << line_of("gamma") << "\n";
  const std::string rest = "host = \"10.0.0.7\"\nport = 7401\nkey = \"all.public\"\n";
  CHECK_THAT(trouble(lines(rest)), Catch::Contains("no key of the node beta"));
  CHECK(load("[[node]]\nname = \"gamma\"\n" + rest));
}

TEST_CASE_METHOD(fixture, "without keys all nodes are on loopback, and none has a key") {
  plain = true;
  const std::string rest = "port = 7401\n";
  const auto made = load(lines("host = \"127.0.0.1\"\n" + rest));
  REQUIRE(made);
  CHECK_FALSE(others(**made).at("beta").key);
  CHECK(load(lines("host = \"::1\"\n" + rest)));
  for (const auto* each : {"10.0.0.7", "localhost", "127.example", "0.0.0.0"}) {
    INFO(each);
    CHECK_THAT(trouble(lines("host = \"" + std::string(each) + "\"\n" + rest)), Catch::Contains("loopback"));
  }
  CHECK_THAT(
    trouble(lines("host = \"127.0.0.1\"\nbind = \"0.0.0.0\"\n" + rest)), Catch::Contains("line 4: sockets"));
  CHECK_THAT(trouble(lines("host = \"127.0.0.1\"\n" + rest + beta_key)), Catch::Contains("has no keys"));
}

TEST_CASE_METHOD(fixture, "a list that is not there, or is no list, is said to be so") {
  const auto missing = static_registry::load({folder.path() / "missing.toml", node_name("alpha"), false});
  REQUIRE_FALSE(missing);
  CHECK(missing.error().code == errc::not_found);
  const auto is_folder = static_registry::load({folder.path(), node_name("alpha"), false});
  REQUIRE_FALSE(is_folder);
  CHECK(is_folder.error().code == errc::io);
  CHECK(trouble(std::string(1 << 20, ' ') + " ").find("1 MiB") != std::string::npos);
  CHECK(trouble("name = \"\xff\xfe\"\n").find("line 1") != std::string::npos);
}
