#include "services/daemon/node_registry.hpp"

#include "services/link/keys.hpp"
#include "tests/support/temporary_folder.hpp"

#include <catch2/catch.hpp>

#include <cstdlib>
#include <fstream>

using namespace godwit;

namespace {

result<std::shared_ptr<registry>> open(key_values flags) {
  flags.insert(flags.end(), {{"node", "alpha"}, {"mesh-key", "alpha.secret"}});
  const auto settings = load_config(flags, {});
  REQUIRE(settings);
  const auto roles = roles_of(*settings);
  REQUIRE(roles);
  return open_registry(*settings, *roles, [](const std::string&) {});
}

std::string refused_by(const key_values& flags) {
  const auto made = open(flags);
  return made ? "nobody" : made.error().param;
}

} // namespace

TEST_CASE("a registry in a database is opened by its address, or by a file that holds it") {
  const temporary_folder folder;
  const auto file = (folder.path() / "url").string();
  const auto with = [](const char* setting, const std::string& value) {
    return key_values{{"mesh-registry", "postgres"}, {"mesh-listen", "127.0.0.1:7401"}, {setting, value}};
  };
  CHECK(open(with("mesh-registry-url", "postgresql://godwit@db/godwit")));
  const auto wrong = open(with("mesh-registry-url", "postgresql://godwit:pass-word-1@db/godwit?x=y"));
  REQUIRE_FALSE(wrong);
  CHECK(wrong.error().param == "mesh_registry_url");
  CHECK(wrong.error().message.find("pass-word-1") == std::string::npos);
  CHECK(refused_by(with("mesh-registry-url-file", file)) == "mesh_registry_url_file");
  std::ofstream(file) << "postgresql://godwit@db/godwit\n";
  CHECK(open(with("mesh-registry-url-file", file)));
}

TEST_CASE("a registry of a group is opened by the environment of its pods") {
  const temporary_folder folder;
  const auto keys = link::make_keys(node_name("set-0-1"));
  REQUIRE(keys);
  REQUIRE(link::save_keys(*keys, folder.path()));
  const key_values flags{{"mesh-registry", "group"}, {"mesh-keys", folder.path().string()},
    {"mesh-group-file", (folder.path() / "none.yaml").string()}, {"mesh-listen", "0.0.0.0:7401"}};
  // Outside of a group its file is missed.
  CHECK(refused_by(flags) == "mesh_registry");
  for (const auto& [name, value] : {std::pair("LWS_LEADER_ADDRESS", "set-0.set.default"),
         {"LWS_GROUP_SIZE", "2"}, {"LWS_WORKER_INDEX", "1"}})
    ::setenv(name, value, 1);
  const auto made = open(flags);
  for (const auto* name : {"LWS_LEADER_ADDRESS", "LWS_GROUP_SIZE", "LWS_WORKER_INDEX"})
    ::unsetenv(name);
  REQUIRE(made);
  CHECK((*made)->listen()->letters == "tcp://0.0.0.0:7401");
}
