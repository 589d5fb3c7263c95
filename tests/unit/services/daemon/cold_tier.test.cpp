#include "services/daemon/cold_tier.hpp"

#include "tests/support/temporary_folder.hpp"

#include <catch2/catch.hpp>

#include <cstdio>
#include <fstream>

using namespace godwit;

namespace {

struct log_file {
  std::shared_ptr<std::FILE> words{std::tmpfile(), [](std::FILE* file) { std::fclose(file); }};
  std::shared_ptr<logger> out = make_logger(words.get(), {});

  /// All lines. Nobody may write any more: the log is closed, since it writes in its own time.
  std::string text() {
    out.reset();
    std::string all(10000, 0);
    std::rewind(words.get());
    all.resize(std::fread(all.data(), 1, all.size(), words.get()));
    return all;
  }
};

cache_scope scope() {
  cache_scope out;
  out.fingerprint = "f";
  out.shape = {1, 1, 8, kv_type::f16};
  return out;
}

} // namespace

TEST_CASE("the cold tier is opened where the settings say, and has the same secret again") {
  const temporary_folder folder;
  const log_file log;
  config settings;
  const auto usual = folder.path() / "cold";
  std::vector<std::byte> secret;
  for (int i = 0; i < 2; ++i) {
    const auto made = open_cold_tier(settings, usual, scope(), log.out);
    REQUIRE(made);
    REQUIRE(made->store);
    CHECK(made->store->stats().limit_bytes == settings.cache_cold_bytes);
    const auto bytes = made->key->bytes();
    if (i > 0)
      CHECK(std::equal(bytes.begin(), bytes.end(), secret.begin(), secret.end()));
    secret.assign(bytes.begin(), bytes.end());
  }
  settings.cache_cold_dir = folder.path() / "other";
  REQUIRE(open_cold_tier(settings, usual, scope(), log.out));
  CHECK(std::filesystem::exists(settings.cache_cold_dir));
}

TEST_CASE("without a budget there is no cold tier, and no folder") {
  const temporary_folder folder;
  const log_file log;
  config settings;
  settings.cache_cold_bytes = 0;
  const auto made = open_cold_tier(settings, folder.path() / "cold", scope(), log.out);
  REQUIRE(made);
  CHECK_FALSE(made->store);
  CHECK_FALSE(made->key);
  CHECK_FALSE(std::filesystem::exists(folder.path() / "cold"));
}

TEST_CASE("a folder that is in use or holds something else keeps the node from starting, by name") {
  const temporary_folder folder;
  const log_file log;
  const config settings;
  const auto usual = folder.path() / "cold";
  const auto first = open_cold_tier(settings, usual, scope(), log.out);
  REQUIRE(first);
  const auto second = open_cold_tier(settings, usual, scope(), log.out);
  REQUIRE_FALSE(second);
  CHECK(second.error().code == errc::conflict);
  CHECK(second.error().param == "cache_cold_dir");
  const auto foreign = folder.path() / "photos";
  std::filesystem::create_directory(foreign);
  std::ofstream(foreign / "holiday.jpg") << "x";
  const auto third = open_cold_tier(settings, foreign, scope(), log.out);
  REQUIRE_FALSE(third);
  CHECK(third.error().code == errc::invalid_argument);
  CHECK(third.error().message.find(foreign.string()) != std::string::npos);
}

TEST_CASE("a disk that cannot be used costs the tier and one line in the log, and counts as degraded") {
  const temporary_folder folder;
  log_file log;
  config settings;
  settings.cache_cold_dir = folder.path() / "nowhere" / "cold";
  const auto made = open_cold_tier(settings, folder.path(), scope(), log.out);
  REQUIRE(made);
  REQUIRE(made->store);
  CHECK(made->store->stats().degraded);
  CHECK(made->store->stats().failures == 0);
  const block_identity name{1, 2};
  CHECK(made->store->known({&name, 1}) == 0);
  CHECK_FALSE(made->store->write({}));
  CHECK_FALSE(made->key);
  CHECK(log.text().find("the node serves without it") != std::string::npos);
}
