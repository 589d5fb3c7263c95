#include "services/daemon/node_mesh.hpp"

#include "services/link/keys.hpp"
#include "tests/support/temporary_folder.hpp"

#include <catch2/catch.hpp>

#include <fstream>

using namespace godwit;

namespace {

/// Keys and a list of nodes in a folder.
class files {
 public:
  explicit files(std::initializer_list<const char*> nodes) {
    std::ofstream list(path("mesh.toml"));
    unsigned port = 7401;
    for (const auto* name : nodes) {
      const auto keys = link::make_keys(node_name(name));
      REQUIRE(keys);
      REQUIRE(link::save_keys(*keys, folder_.path()));
      list << "[[node]]\nname = \"" << name << "\"\nhost = \"127.0.0.1\"\nport = " << port << "\nkey = \""
           << name << ".public\"\n";
      port += 3;
    }
  }
  std::filesystem::path path(const std::string& name) const { return folder_.path() / name; }

  config settings(const std::string& node, const std::string& roles) const {
    auto made = load_config({{"node", node}, {"roles", roles}, {"mesh-nodes", path("mesh.toml").string()},
                              {"mesh-key", path(node + ".secret").string()}},
      {});
    REQUIRE(made);
    return *made;
  }

 private:
  temporary_folder folder_;
};

result<mesh_options> options_of(const config& settings) {
  const auto roles = roles_of(settings);
  REQUIRE(roles);
  model_card card;
  card.id = "m";
  card.fingerprint = "f";
  return mesh_options_of(settings, *roles, card, "1.2.3");
}

} // namespace

TEST_CASE("a node says of itself what its settings and its model say") {
  const files made{"alpha", "beta"};
  auto settings = made.settings("alpha", "gateway");
  const auto options = options_of(settings);
  REQUIRE(options);
  CHECK(options->node == node_name("alpha"));
  CHECK(options->roles == std::vector<std::string>{"gateway"});
  CHECK(options->models == std::map<std::string, std::string>{{"m", "f"}});
  CHECK(options->software == "1.2.3");
  REQUIRE(options->keys);
  CHECK(options->keys->node == node_name("alpha"));
  CHECK(options->listen == node_endpoints{});
  REQUIRE(options->nodes->listen());
  CHECK(options->nodes->listen()->letters == "tcp://127.0.0.1:7401");

  settings.mesh_listen = endpoint{"::1", 9000};
  CHECK(options_of(settings)->listen
        == node_endpoints{"tcp://[::1]:9000", "tcp://[::1]:9001", "tcp://[::1]:9002"});
}

TEST_CASE("keys of another node, missing files and a list without others are refused by the setting's name") {
  const files made{"alpha", "beta"};
  auto settings = made.settings("alpha", "gateway");
  settings.mesh_key = made.path("beta.secret");
  CHECK(options_of(settings).error().param == "mesh_key");
  CHECK(options_of(settings).error().message.find("beta") != std::string::npos);
  settings.mesh_key = made.path("none.secret");
  CHECK(options_of(settings).error().param == "mesh_key");
  settings = made.settings("alpha", "gateway");
  settings.mesh_nodes = made.path("none.toml");
  CHECK(options_of(settings).error().param == "mesh_nodes");

  const files alone{"alpha"};
  CHECK(options_of(alone.settings("alpha", "gateway")).error().param == "mesh_nodes");
  CHECK(options_of(alone.settings("alpha", "all")));
}

TEST_CASE("what a node needs of others follows from its roles") {
  const auto needed = [](const std::string& roles) {
    std::vector<std::string> out;
    for (const auto& one :
      needed_of(*roles_of(*load_config({{"roles", roles}, {"mesh-nodes", "m"}, {"mesh-plain", "1"}}, {}))))
      out.push_back(one.role);
    return out;
  };
  CHECK(needed("all").empty());
  CHECK(needed("prefill,decode,cache").empty());
  CHECK(needed("router").empty());
  CHECK(needed("gateway") == std::vector<std::string>{"session", "tokenizer", "router"});
  CHECK(needed("session") == std::vector<std::string>{"tokenizer", "router"});
  CHECK(needed("gateway,session,router") == std::vector<std::string>{"tokenizer"});
}
