#include "services/daemon/journal_options.hpp"

#include "tests/support/temporary_folder.hpp"

#include <catch2/catch.hpp>

#include <fstream>

using namespace godwit;

TEST_CASE("each setting of the journal reaches it") {
  const auto from = [](const key_values& flags) {
    const auto settings = load_config(flags, {});
    REQUIRE(settings);
    return journal_options(*settings, "/somewhere", nullptr);
  };
  const auto usual = from({});
  CHECK(usual.folder == "/somewhere");
  CHECK(usual.when_damaged == damaged_log::refuse);
  CHECK(usual.queue.deadline == std::chrono::seconds(10));
  CHECK(usual.queue.bytes == std::size_t{64} << 20);
  const auto other =
    from({{"journal_damaged_log", "cut"}, {"journal_deadline_s", "3"}, {"journal_queue_bytes", "2097152"}});
  CHECK(other.when_damaged == damaged_log::cut);
  CHECK(other.queue.deadline == std::chrono::seconds(3));
  CHECK(other.queue.bytes == 2097152);
}

TEST_CASE("each setting of the journal in a database reaches it") {
  const auto settings = load_config({{"journal", "postgres"}, {"journal_url", "postgresql://a/b"},
                                      {"journal_deadline_s", "3"}, {"journal_queue_bytes", "2097152"}},
    {{"GODWIT_JOURNAL_ALLOW_UNSAFE", "1"}});
  REQUIRE(settings);
  const auto made = postgres_options(*settings, nullptr);
  REQUIRE(made);
  CHECK(made->url == "postgresql://a/b");
  CHECK(made->allow_unsafe);
  CHECK(made->queue.deadline == std::chrono::seconds(3));
  CHECK(made->queue.bytes == 2097152);
  CHECK_FALSE(postgres_journal_options().allow_unsafe);
}

TEST_CASE("the address of the database may stand in a file") {
  const temporary_folder folder;
  const auto path = folder.path() / "url";
  const auto from = [&](const std::string& content) {
    std::ofstream(path) << content;
    const auto settings = load_config({{"journal", "postgres"}, {"journal_url_file", path.string()}}, {});
    REQUIRE(settings);
    return postgres_options(*settings, nullptr);
  };
  CHECK(from("postgresql://me:secret@a/b\n")->url == "postgresql://me:secret@a/b");
  CHECK(from("").error().code == errc::invalid_argument);
  CHECK(from("\n").error().code == errc::invalid_argument);
  CHECK(from(std::string(20'000, 'x')).error().code == errc::invalid_argument);
  std::filesystem::remove(path);
  const auto settings = load_config({{"journal", "postgres"}, {"journal_url_file", path.string()}}, {});
  CHECK(postgres_options(*settings, nullptr).error().code == errc::io);
}
