#include "services/daemon/watch.hpp"

#include <catch2/catch.hpp>

using namespace godwit;

TEST_CASE("the engine's counters are read when the text is made") {
  metrics figures;
  std::shared_ptr<engine_counters> now;
  watch_engine(figures, [&] { return now; });
  CHECK(figures.text().find("godwit_running_sequences 0\n") != std::string::npos);
  now = std::make_shared<engine_counters>();
  now->sequences = 3;
  now->prefilled_tokens = 512;
  now->step_nanoseconds = 2'500'000'000;
  const auto text = figures.text();
  CHECK(text.find("godwit_running_sequences 3\n") != std::string::npos);
  CHECK(text.find("godwit_prefilled_tokens_total 512\n") != std::string::npos);
  CHECK(text.find("godwit_step_seconds_total 2.5\n") != std::string::npos);
  now->host_hits = 5;
  now->onboard_nanoseconds = 500'000'000;
  const auto tiers = figures.text();
  CHECK(tiers.find("godwit_cache_host_hits_total 5\n") != std::string::npos);
  CHECK(tiers.find("godwit_cache_onboard_seconds_total 0.5\n") != std::string::npos);
  CHECK(text.find("# TYPE godwit_prefilled_tokens_total counter\n") != std::string::npos);
}

TEST_CASE("the counters of prompts that other nodes compute are shown") {
  metrics figures;
  const auto now = std::make_shared<handover_counters>();
  watch_handover(figures, [&] { return now; });
  now->orders = 4;
  now->kept_blocks = 12;
  now->transfer_nanoseconds = 1'500'000'000;
  const auto text = figures.text();
  CHECK(text.find("godwit_handover_orders_total 4\n") != std::string::npos);
  CHECK(text.find("godwit_handover_kept_blocks 12\n") != std::string::npos);
  CHECK(text.find("godwit_handover_transfer_seconds_total 1.5\n") != std::string::npos);
}

TEST_CASE("the journal's counters and its failure are shown") {
  metrics figures;
  const auto now = std::make_shared<journal_counters>();
  watch_journal(figures, [&] { return now; });
  now->records = 7;
  now->failed = true;
  const auto text = figures.text();
  CHECK(text.find("godwit_journal_records_total 7\n") != std::string::npos);
  CHECK(text.find("godwit_journal_failed 1\n") != std::string::npos);
}

TEST_CASE("the server's counts are shown") {
  metrics figures;
  watch_http(figures, [] { return http::server_counts{1, 2, 3, 4, 5}; });
  const auto text = figures.text();
  CHECK(text.find("godwit_http_connections 1\n") != std::string::npos);
  CHECK(text.find("godwit_http_turned_away_total 3\n") != std::string::npos);
}
