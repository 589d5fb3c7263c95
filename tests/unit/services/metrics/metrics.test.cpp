#include "services/metrics/metrics.hpp"

#include "services/metrics/process_usage.hpp"

#include <catch2/catch.hpp>

#include <unistd.h>

#include <atomic>
#include <optional>
#include <sstream>
#include <thread>
#include <vector>

using namespace godwit;
using namespace std::chrono_literals;

namespace {

/// The value of the line that begins with this name and these labels.
std::optional<double> value_of(const std::string& text, const std::string& series) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(series + " "))
      return std::stod(line.substr(series.size()));
  return std::nullopt;
}

} // namespace

TEST_CASE("answers are counted by route, method and status") {
  metrics all;
  for (int i = 0; i < 3; ++i)
    all.http_answer("GET", "/v1/sessions/ses_" + std::to_string(i), 200, 1ms);
  all.http_answer("GET", "/v1/sessions/ses_9", 404, 1ms);
  all.http_answer("BREW", "/coffee", 501, 1ms);
  const auto text = all.text();
  const std::string name = "godwit_http_requests_total";
  CHECK(value_of(text, name + R"({method="GET",route="/v1/sessions/{id}",status="200"})") == 3);
  CHECK(value_of(text, name + R"({method="GET",route="/v1/sessions/{id}",status="404"})") == 1);
  CHECK(value_of(text, name + R"({method="other",route="other",status="501"})") == 1);
  CHECK(value_of(text, R"(godwit_http_request_seconds_count{route="/v1/sessions/{id}"})") == 4);
}

TEST_CASE("latencies fall into their buckets") {
  metrics all;
  all.first_token(120ms);
  all.first_token(3s);
  all.between_tokens(11ms);
  const auto text = all.text();
  CHECK(value_of(text, R"(godwit_first_token_seconds_bucket{le="0.1"})") == 0);
  CHECK(value_of(text, R"(godwit_first_token_seconds_bucket{le="0.15"})") == 1);
  CHECK(value_of(text, R"(godwit_first_token_seconds_bucket{le="+Inf"})") == 2);
  CHECK(value_of(text, "godwit_first_token_seconds_sum") == Approx(3.12));
  CHECK(value_of(text, R"(godwit_inter_token_seconds_bucket{le="0.015"})") == 1);
}

TEST_CASE("a commit tells its size and time") {
  metrics all;
  all.commit(5, 10ms, 4ms);
  const auto text = all.text();
  CHECK(value_of(text, R"(godwit_commit_records_bucket{le="4"})") == 0);
  CHECK(value_of(text, R"(godwit_commit_records_bucket{le="8"})") == 1);
  CHECK(value_of(text, "godwit_commit_seconds_sum") == Approx(0.010));
  CHECK(value_of(text, "godwit_commit_write_seconds_sum") == Approx(0.004));
}

TEST_CASE("figures are read when they are asked for") {
  metrics all;
  double now = 1;
  all.watch("godwit_things_total", metric_kind::total, "Things", [&] { return now; });
  CHECK(value_of(all.text(), "godwit_things_total") == 1);
  now = 2;
  const auto text = all.text();
  CHECK(value_of(text, "godwit_things_total") == 2);
  CHECK(text.find("# TYPE godwit_things_total counter\n") != std::string::npos);
}

TEST_CASE("a figure with labels has a line for each, and none while there is nothing") {
  metrics all;
  std::vector<metrics::labelled> now;
  all.watch_each("godwit_link_up", metric_kind::level, "help", [&] { return now; });
  CHECK(all.text().find("godwit_link_up") == std::string::npos);
  now = {{{{"peer", "alpha"}}, 1}, {{{"peer", "be\"ta"}}, 0}};
  const auto text = all.text();
  CHECK(value_of(text, R"(godwit_link_up{peer="alpha"})") == 1);
  CHECK(value_of(text, R"(godwit_link_up{peer="be\"ta"})") == 0);
}

TEST_CASE("actors' gauges carry their names as labels, and new ones replace old ones") {
  const auto status = [](double value) {
    return letter<schema::NodeStatus>::make([&](schema::NodeStatus::Builder b) {
      auto actors = b.initActors(2);
      actors[0].setName("decode");
      actors[0].setState("ready");
      auto gauges = actors[0].initGauges(1);
      gauges[0].setName("running");
      gauges[0].setValue(value);
      actors[1].setName("router");
      actors[1].setState("draining");
    });
  };
  metrics all;
  all.actors(status(7));
  all.actors(status(3));
  const auto text = all.text();
  CHECK(value_of(text, R"(godwit_actor_gauge{actor="decode",gauge="running"})") == 3);
  CHECK(value_of(text, R"(godwit_actor_ready{actor="decode"})") == 1);
  CHECK(value_of(text, R"(godwit_actor_ready{actor="router"})") == 0);
}

TEST_CASE("the process's own figures are there") {
  const auto before = read_process_usage();
  CHECK(before.resident_bytes > std::size_t{1} << 20);
  CHECK(before.threads >= 1);
  int pipe[2];
  REQUIRE(::pipe(pipe) == 0);
  CHECK(read_process_usage().open_files == before.open_files + 2);
  ::close(pipe[0]);
  ::close(pipe[1]);
  CHECK(value_of(metrics().text(), "process_resident_memory_bytes") > 1e6);
  CHECK(value_of(metrics().text(), "godwit_uptime_seconds") >= 0);
}

TEST_CASE("many threads count without loss") {
  metrics all;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) {
        all.http_answer("GET", "/healthz", 200, 1ms);
        if (i % 100 == 0)
          (void)all.text();
      }
    });
  for (auto& thread : threads)
    thread.join();
  CHECK(value_of(all.text(), R"(godwit_http_requests_total{method="GET",route="/healthz",status="200"})")
        == 2000);
}
