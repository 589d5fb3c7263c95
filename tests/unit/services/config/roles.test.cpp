#include "services/config/roles.hpp"

#include <catch2/catch.hpp>

using namespace godwit;

namespace {

/// Settings of a node in a mesh with keys.
config in_mesh(const std::string& roles) {
  auto made = load_config({{"roles", roles}, {"mesh-nodes", "mesh.toml"}, {"mesh-key", "a.secret"}}, {});
  REQUIRE(made);
  return *made;
}

error refusal(const key_values& flags) {
  const auto made = load_config(flags, {});
  REQUIRE(made);
  const auto roles = roles_of(*made);
  REQUIRE_FALSE(roles);
  CHECK(roles.error().code == errc::invalid_argument);
  return roles.error();
}

} // namespace

TEST_CASE("a node has all roles unless it is told otherwise") {
  const auto roles = roles_of(*load_config({}, {}));
  REQUIRE(roles);
  CHECK(roles->all());
  CHECK(
    roles->names()
    == std::vector<std::string>{"gateway", "session", "tokenizer", "router", "prefill", "decode", "cache"});
  CHECK(
    roles_of(*load_config({{"roles", "cache,decode,prefill,router,tokenizer,session,gateway"}}, {}))->all());
}

TEST_CASE("in a mesh a node may have any roles") {
  const auto front = roles_of(in_mesh("gateway"));
  REQUIRE(front);
  CHECK(front->names() == std::vector<std::string>{"gateway"});
  CHECK_FALSE(front->has_journal());
  const auto worker = roles_of(in_mesh("decode,cache,prefill"));
  REQUIRE(worker);
  CHECK(worker->worker());
  CHECK_FALSE(worker->prompts_only());
  CHECK_FALSE(worker->streams_only());
  CHECK_FALSE(worker->router);
  CHECK_FALSE(front->worker());
  CHECK(roles_of(in_mesh("gateway,session,router,tokenizer"))->has_journal());
  CHECK(roles_of(in_mesh("all"))->all());
}

TEST_CASE("prompts may be computed on a node of their own") {
  const auto prompts = roles_of(in_mesh("prefill"));
  REQUIRE(prompts);
  CHECK(prompts->worker());
  CHECK(prompts->prompts_only());
  CHECK(prompts->names() == std::vector<std::string>{"prefill"});
  const auto streams = roles_of(in_mesh("router,cache,decode"));
  REQUIRE(streams);
  CHECK(streams->worker());
  CHECK(streams->streams_only());
  CHECK(streams->names() == std::vector<std::string>{"router", "decode", "cache"});
  CHECK_FALSE(streams->all());
}

TEST_CASE("parts of a worker that cannot stand alone are refused, and the reason is given") {
  const auto why = [](const std::string& roles) {
    const auto made = roles_of(in_mesh(roles));
    REQUIRE_FALSE(made);
    CHECK(made.error().param == "roles");
    return made.error().message;
  };
  CHECK(why("decode").find("cache is missing") != std::string::npos);
  CHECK(why("gateway,decode,prefill").find("cache is missing") != std::string::npos);
  CHECK(why("cache").find("decode is missing") != std::string::npos);
  CHECK(why("prefill,cache").find("leave cache out") != std::string::npos);
}

TEST_CASE("settings of prompts that go to other nodes are refused where there are none") {
  CHECK(refusal({{"handover-min-tokens", "100"}}).param == "handover_min_tokens");
  CHECK(refusal({{"handover-deadline-s", "9"}}).param == "handover_deadline_s");
  auto settings = in_mesh("decode,cache");
  settings.handover_min_tokens = 100;
  CHECK(roles_of(settings));
  // Longer than an answer of another node may take.
  CHECK_FALSE(load_config({{"handover-deadline-s", "76"}}, {}));
}

TEST_CASE("alone, a node needs all roles, and those that are missing are named") {
  CHECK(
    refusal({{"roles", "gateway"}}).message
    == "roles: nobody has session, tokenizer, router, prefill, decode, cache: without a mesh (mesh_nodes, "
       "mesh_registry) this node is alone and needs all roles");
  CHECK(
    refusal({{"roles", "session,tokenizer,router,prefill,decode,cache"}}).message.find("nobody has gateway:")
    != std::string::npos);
}

TEST_CASE("a mesh has keys, or says that it has none") {
  CHECK(refusal({{"mesh-nodes", "mesh.toml"}}).param == "mesh_key");
  CHECK(refusal({{"mesh-nodes", "mesh.toml"}, {"mesh-key", "a.secret"}, {"mesh-plain", "1"}}).param
        == "mesh_plain");
  CHECK(roles_of(*load_config({{"mesh-nodes", "mesh.toml"}, {"mesh-plain", "1"}}, {})));
}

TEST_CASE("settings of a mesh without its nodes are refused") {
  CHECK(refusal({{"mesh-key", "a.secret"}}).param == "mesh_key");
  CHECK(refusal({{"mesh-plain", "1"}}).param == "mesh_plain");
  CHECK(refusal({{"mesh-listen", "127.0.0.1:7401"}}).param == "mesh_listen");
}

TEST_CASE("a mesh listens on three ports that there are") {
  const auto with = [](const std::string& listen) {
    return load_config({{"mesh-nodes", "m"}, {"mesh-plain", "1"}, {"mesh-listen", listen}}, {});
  };
  CHECK(roles_of(*with("127.0.0.1:65533")));
  CHECK(roles_of(*with("127.0.0.1:65534")).error().param == "mesh_listen");
  CHECK(roles_of(*with("127.0.0.1:0")).error().param == "mesh_listen");
  CHECK_FALSE(with("127.0.0.1"));
}

TEST_CASE("a registry without what it needs is refused by the setting that is missing") {
  const key_values postgres{{"mesh-registry", "postgres"}, {"mesh-key", "a.secret"},
    {"mesh-registry-url", "postgresql://godwit@db/godwit"}, {"mesh-listen", "10.0.0.7:7401"}};
  CHECK(roles_of(*load_config(postgres, {})));
  const auto without = [](key_values from, const std::string& name) {
    std::erase_if(from, [&](const auto& each) { return each.first == name; });
    return from;
  };
  const auto with = [](key_values to, const std::string& name, const std::string& value) {
    to.emplace_back(name, value);
    return to;
  };
  CHECK(refusal(without(postgres, "mesh-registry-url")).param == "mesh_registry_url");
  CHECK(refusal(with(postgres, "mesh-registry-url-file", "f")).param == "mesh_registry_url");
  CHECK(refusal(without(postgres, "mesh-listen")).param == "mesh_listen");
  CHECK(refusal(without(postgres, "mesh-key")).param == "mesh_key");
  CHECK(refusal(with(postgres, "mesh-listen", "0.0.0.0:7401")).param == "mesh_advertise");
  CHECK(roles_of(*load_config(
    with(with(postgres, "mesh-listen", "0.0.0.0:7401"), "mesh-advertise", "alpha.example"), {})));
  // What it says is not told to anybody.
  CHECK(refusal(with(postgres, "mesh-keys", "k")).message.find("db") == std::string::npos);

  const key_values group{{"mesh-registry", "group"}, {"mesh-key", "a.secret"}, {"mesh-keys", "keys"}};
  CHECK(roles_of(*load_config(group, {})));
  CHECK(refusal(without(group, "mesh-keys")).param == "mesh_keys");
  CHECK(refusal(with(without(group, "mesh-key"), "mesh-plain", "1")).param == "mesh_plain");
}

TEST_CASE("settings of another kind of registry are refused by name") {
  CHECK(refusal({{"mesh-registry-url", "x"}, {"mesh-nodes", "m"}, {"mesh-plain", "1"}}).param
        == "mesh_registry_url");
  CHECK(refusal({{"mesh-registry", "group"}, {"mesh-nodes", "m"}}).param == "mesh_nodes");
  CHECK(refusal({{"mesh-group-file", "f"}, {"mesh-nodes", "m"}}).param == "mesh_group_file");
  CHECK(refusal({{"mesh-advertise", "h"}, {"mesh-nodes", "m"}}).param == "mesh_advertise");
  CHECK_FALSE(load_config({{"mesh-registry", "etcd"}}, {}));
  CHECK_FALSE(load_config({{"mesh-advertise", "a b"}}, {}));
  CHECK(load_config({{"mesh-advertise", "[::1]"}}, {})->mesh_advertise == "::1");
}
