#include "services/daemon/journal_options.hpp"

#include <catch2/catch.hpp>

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
