#include "services/config/config.hpp"

#include <catch2/catch.hpp>

#include <unistd.h>

#include <fstream>
#include <set>

using namespace godwit;

namespace {

/// A configuration file that goes when the test ends.
class file_of {
 public:
  explicit file_of(const std::string& content)
    : path_(
      std::filesystem::temp_directory_path() / ("godwit-config-" + std::to_string(::getpid()) + ".toml")) {
    std::ofstream(path_) << content;
  }
  ~file_of() { std::filesystem::remove(path_); }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

result<config> from_file(const std::string& content) {
  const file_of file(content);
  return load_config({{"config", file.path()}}, {});
}

} // namespace

TEST_CASE("without anything the defaults of the public interface hold") {
  const auto made = load_config({}, {});
  REQUIRE(made);
  CHECK(made->listen == endpoint{"127.0.0.1", 8080});
  CHECK(made->data == "godwit-data");
  CHECK(made->roles == std::vector<std::string>{"all"});
  CHECK(made->max_body_bytes == 33'554'432);
  CHECK(made->kv_tokens == 16'384);
  CHECK(made->heartbeat == std::chrono::seconds(15));
  CHECK_FALSE(made->node.empty());
}

TEST_CASE("flags beat environment beat file beat defaults") {
  const file_of file(
    "threads = 1\nkv_tokens = 1024\nlisten = \"0.0.0.0:1\"\nroles = [\"gateway\", \"router\"]\n");
  const key_values environment{
    {"GODWIT_CONFIG", file.path()}, {"GODWIT_THREADS", "2"}, {"GODWIT_KV_TOKENS", "2048"}, {"PATH", "x"}};
  const auto made = load_config({{"kv-tokens", "4096"}}, environment);
  REQUIRE(made);
  CHECK(made->kv_tokens == 4096);
  CHECK(made->threads == 2);
  CHECK(made->listen == endpoint{"0.0.0.0", 1});
  CHECK(made->roles == std::vector<std::string>{"gateway", "router"});
  CHECK(made->max_connections == 1024);
}

TEST_CASE("numbers with a point are taken within their bounds") {
  const auto made = from_file("default_temperature = 1\ndefault_top_p = 0.25\n");
  REQUIRE(made);
  CHECK(made->default_temperature == 1.0F);
  CHECK(made->default_top_p == 0.25F);
  CHECK(load_config({{"default-min-p", "0.5"}}, {})->default_min_p == 0.5F);
  for (const auto* bad : {"2.01", "-1", "nan", "inf", "", "1x", "0x1p0"})
    CHECK(load_config({{"default-temperature", bad}}, {}).error().message
          == "--default-temperature must be a number from 0 to 2, not \"" + std::string(bad) + "\"");
  CHECK(from_file("default_top_p = \"1\"").error().message.find("must be a number") != std::string::npos);
  CHECK(from_file("threads = 1.5").error().message.find("must be a whole number") != std::string::npos);
}

TEST_CASE("a flag names another file than the environment") {
  const file_of file("node = \"b\"");
  const auto made = load_config({{"config", file.path()}}, {{"GODWIT_CONFIG", "/nowhere"}});
  REQUIRE(made);
  CHECK(made->node == "b");
}

TEST_CASE("an unknown key is refused by its name") {
  CHECK(load_config({{"colour", "1"}}, {}).error().message == "--colour is not a flag");
  const auto made = from_file("threads = 1\ncolour = 1\n");
  REQUIRE_FALSE(made);
  CHECK(made.error().param == "colour");
  CHECK(made.error().message.find("line 2: \"colour\" is not a setting") != std::string::npos);
  CHECK(from_file("[journal]\nx = 1\n").error().param == "journal");
  CHECK(from_file("config = \"again.toml\"").error().param == "config");
}

TEST_CASE("an unknown variable is reported, not refused") {
  const auto made =
    load_config({}, {{"GODWIT_PORT_8080_TCP", "tcp://10.0.0.1:8080"}, {"GODWIT_URL", "http://localhost"}});
  REQUIRE(made);
  CHECK(made->unknown_variables == std::vector<std::string>{"GODWIT_PORT_8080_TCP"});
}

TEST_CASE("values out of range are refused with the range") {
  const auto made = load_config({{"threads", "1025"}}, {});
  REQUIRE_FALSE(made);
  CHECK(made.error().code == errc::invalid_argument);
  CHECK(made.error().message == "--threads must be a whole number from 0 to 1024, not \"1025\"");
  for (const char* bad : {"", "-1", "1.5", "0x10", " 1", "1 ", "99999999999999999999"})
    CHECK_FALSE(load_config({{"threads", bad}}, {}));
  CHECK_FALSE(load_config({{"heartbeat-s", "0"}}, {}));
  CHECK_FALSE(load_config({{"max-connections", "0"}}, {}));
  CHECK_FALSE(load_config({{"log-format", "xml"}}, {}));
  CHECK_FALSE(load_config({{"journal-damaged-log", "ignore"}}, {}));
  CHECK_FALSE(load_config({{"roles", "gateway,planet"}}, {}));
  CHECK_FALSE(load_config({{"roles", "all,gateway"}}, {}));
  CHECK_FALSE(load_config({{"roles", ""}}, {}));
  CHECK_FALSE(load_config({{"node", "a b"}}, {}));
  CHECK_FALSE(load_config({}, {{"GODWIT_DATA", ""}}));
}

TEST_CASE("a file's values must have the right type") {
  CHECK(from_file("threads = \"1\"").error().message.find("must be a whole number") != std::string::npos);
  CHECK(from_file("listen = 8080").error().message.find("must be text") != std::string::npos);
  CHECK_FALSE(from_file("threads = 1.5"));
  CHECK_FALSE(from_file("threads = true"));
  CHECK_FALSE(from_file("roles = [1, 2]"));
  CHECK(from_file("roles = \"decode\"")->roles == std::vector<std::string>{"decode"});
}

TEST_CASE("a file that cannot be read or parsed gives one sentence") {
  const auto missing = load_config({{"config", "/nowhere/godwit.toml"}}, {});
  REQUIRE_FALSE(missing);
  CHECK(missing.error().code == errc::not_found);
  CHECK(missing.error().message
        == "cannot read configuration file /nowhere/godwit.toml: No such file or directory");
  CHECK(from_file("a = 1\nb = = 2").error().message.find("line 2: ") != std::string::npos);
  CHECK_FALSE(load_config({{"config", "/"}}, {}));
  CHECK(from_file(""));
}

TEST_CASE("endpoints are hosts with a port") {
  CHECK(parse_endpoint("localhost:0") == endpoint{"localhost", 0});
  CHECK(parse_endpoint("[::1]:65535") == endpoint{"::1", 65535});
  for (const char* bad : {"", "localhost", ":80", "::1:80", "[]:80", "[::1]", "a:65536", "a:-1",
         "a:", "a b:1", "http://a:1", "[a]:1"})
    CHECK_FALSE(parse_endpoint(bad));
}

TEST_CASE("every setting has its own name and a meaning") {
  std::set<std::string_view> names;
  for (const auto& one : settings()) {
    CHECK(names.insert(one.key).second);
    CHECK_FALSE(one.help.empty());
  }
}

TEST_CASE("the tiers of the cache have budgets and a directory, and bad values are refused by name") {
  const auto made = load_config({}, {});
  CHECK(made->cache_host_bytes == 268'435'456);
  CHECK(made->cache_cold_bytes == 4'294'967'296);
  CHECK(made->cache_cold_dir.empty());
  CHECK(int{made->cache_offload_after} == 1);
  CHECK(int{load_config({{"cache-offload-after", "0"}}, {})->cache_offload_after} == 0);
  CHECK_FALSE(load_config({{"cache-offload-after", "256"}}, {}));
  const auto other =
    from_file("cache_host_bytes = 0\ncache_cold_bytes = 1000000000000\ncache_cold_dir = \"/disk/kv\"\n");
  REQUIRE(other);
  CHECK(other->cache_host_bytes == 0);
  CHECK(other->cache_cold_bytes == 1'000'000'000'000);
  CHECK(other->cache_cold_dir == "/disk/kv");
  for (const auto* key : {"cache-host-bytes", "cache-cold-bytes"})
    for (const auto* bad : {"-1", "1G", "1e9", ""}) {
      const auto refused = load_config({{key, bad}}, {});
      REQUIRE_FALSE(refused);
      CHECK(refused.error().message.find("--" + std::string(key)) == 0);
    }
  CHECK(load_config({{"cache-cold-dir", ""}}, {}).error().message == "--cache-cold-dir must be a path");
}

TEST_CASE("a journal in a database needs its address, once, and no other journal has one") {
  using pairs = key_values;
  for (const auto& flags : {pairs{{"journal", "postgres"}}, pairs{{"journal-url", "postgresql://a/secret"}},
         pairs{{"journal", "postgres"}, {"journal-url", "postgresql://a/secret"}, {"journal-url-file", "f"}},
         pairs{{"journal", "rocksdb"}, {"journal-url-file", "f"}}, pairs{{"journal", "sqlite"}},
         pairs{{"journal", "postgres"}, {"journal-url", ""}}}) {
    const auto made = load_config(flags, {});
    REQUIRE_FALSE(made);
    CHECK(made.error().code == errc::invalid_argument);
    CHECK(made.error().message.find("secret") == std::string::npos);
  }
  const auto made = load_config({{"journal", "postgres"}}, {{"GODWIT_JOURNAL_URL", "postgresql://a/b"}});
  REQUIRE(made);
  CHECK(made->journal == journal_kind::postgres);
  CHECK(made->journal_url == "postgresql://a/b");
  CHECK_FALSE(made->journal_allow_unsafe);
  CHECK(load_config({}, {})->journal == journal_kind::rocksdb);
}

TEST_CASE("pages are of the type that was set, and of no unknown one") {
  CHECK(load_config({}, {})->kv_type == "auto");
  for (const auto* good : {"auto", "fp16", "bf16", "int8"})
    CHECK(load_config({{"kv-type", good}}, {})->kv_type == good);
  for (const auto* bad : {"", "fp32", "f16", "int4", "INT8"}) {
    const auto refused = load_config({{"kv-type", bad}}, {});
    REQUIRE_FALSE(refused);
    CHECK(refused.error().message.find("--kv-type must be auto, fp16, bf16 or int8") == 0);
  }
}
