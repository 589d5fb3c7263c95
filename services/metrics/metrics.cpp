#include "services/metrics/metrics.hpp"

#include "services/metrics/process_usage.hpp"
#include "services/metrics/route_label.hpp"

#include <prometheus/counter.h>
#include <prometheus/histogram.h>
#include <prometheus/metric_family.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <ctime>
#include <mutex>
#include <sstream>
#include <vector>

namespace godwit {

namespace {

namespace prom = prometheus;
using bounds = prom::Histogram::BucketBoundaries;

// Seconds. Fine where the promises lie: 150 ms to a first token, some 10 ms between two, 15 ms for a commit.
const bounds answer_bounds{
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300};
const bounds first_token_bounds{0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.15, 0.2, 0.3, 0.5, 1, 2, 5, 10, 30};
const bounds between_bounds{0.0025, 0.005, 0.0075, 0.01, 0.015, 0.02, 0.03, 0.05, 0.075, 0.1, 0.2, 0.5, 1, 5};
const bounds commit_bounds{0.0005, 0.001, 0.002, 0.004, 0.008, 0.015, 0.03, 0.06, 0.125, 0.25, 0.5, 1, 2, 5};
const bounds record_bounds{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024};

/// More actors, or gauges of one, are left out: labels stay few whatever actors say.
constexpr unsigned most_labels = 64;
/// Values of one figure of watch_each.
constexpr std::size_t most_values = 1000;

prom::MetricFamily family(std::string name, std::string help, prom::MetricType type) {
  prom::MetricFamily out;
  out.name = std::move(name);
  out.help = std::move(help);
  out.type = type;
  return out;
}

void add(prom::MetricFamily& to, double value, std::vector<prom::ClientMetric::Label> labels = {}) {
  prom::ClientMetric one;
  one.label = std::move(labels);
  if (to.type == prom::MetricType::Counter)
    one.counter.value = value;
  else
    one.gauge.value = value;
  to.metric.push_back(std::move(one));
}

template <class Text>
std::string text_of(const Text& text) {
  return {text.cStr(), text.size()};
}

} // namespace

struct metrics::parts {
  struct watched {
    std::string name;
    metric_kind kind;
    std::string help;
    std::function<std::vector<labelled>()> read;
  };

  prom::Registry registry;
  prom::Family<prom::Counter>& answers = prom::BuildCounter()
                                           .Name("godwit_http_requests_total")
                                           .Help("HTTP answers by route, method and status")
                                           .Register(registry);
  prom::Family<prom::Histogram>& answer_seconds = prom::BuildHistogram()
                                                    .Name("godwit_http_request_seconds")
                                                    .Help("From a request to the end of its answer")
                                                    .Register(registry);
  prom::Histogram& first_token_seconds = histogram(
    "godwit_first_token_seconds", "From a request for tokens to its first token", first_token_bounds);
  prom::Histogram& between_token_seconds =
    histogram("godwit_inter_token_seconds", "Between two tokens of one stream", between_bounds);
  prom::Histogram& commit_seconds =
    histogram("godwit_commit_seconds", "From a journal record's arrival until it is durable", commit_bounds);
  prom::Histogram& write_seconds = histogram(
    "godwit_commit_write_seconds", "Writing and syncing one group of journal records", commit_bounds);
  prom::Histogram& commit_records =
    histogram("godwit_commit_records", "Journal records in one sync", record_bounds);

  std::mutex mutex; ///< of what follows
  std::vector<watched> readers;
  letter<schema::NodeStatus> node;

  const double started = static_cast<double>(std::time(nullptr));
  const std::chrono::steady_clock::time_point began = std::chrono::steady_clock::now();

  prom::Histogram& histogram(const char* name, const char* help, const bounds& limits) {
    return prom::BuildHistogram().Name(name).Help(help).Register(registry).Add({}, limits);
  }

  void collect_process(std::vector<prom::MetricFamily>& out) const {
    const auto usage = read_process_usage();
    const auto one = [&](const char* name, const char* help, prom::MetricType type, double value) {
      add(out.emplace_back(family(name, help, type)), value);
    };
    using enum prom::MetricType;
    one("process_resident_memory_bytes", "Resident memory", Gauge, static_cast<double>(usage.resident_bytes));
    one("process_virtual_memory_bytes", "Virtual memory", Gauge, static_cast<double>(usage.virtual_bytes));
    one("process_threads", "Threads", Gauge, static_cast<double>(usage.threads));
    one("process_open_fds", "Open file descriptors", Gauge, static_cast<double>(usage.open_files));
    one("process_max_fds", "Limit of open file descriptors", Gauge,
      static_cast<double>(usage.open_files_limit));
    one("process_cpu_seconds_total", "User and system time", Counter, usage.cpu_seconds);
    one("process_start_time_seconds", "Start of the process since 1970", Gauge, started);
    one("godwit_uptime_seconds", "Time since the start", Gauge,
      seconds(std::chrono::steady_clock::now() - began).count());
  }

  void collect_watched(std::vector<prom::MetricFamily>& out) const {
    for (const auto& one : readers) {
      auto shown = family(one.name, one.help,
        one.kind == metric_kind::total ? prom::MetricType::Counter : prom::MetricType::Gauge);
      for (const auto& [labels, value] : one.read()) {
        if (shown.metric.size() == most_values)
          break;
        std::vector<prom::ClientMetric::Label> named;
        for (const auto& [name, text] : labels)
          named.push_back({name, text});
        add(shown, value, std::move(named));
      }
      if (!shown.metric.empty())
        out.push_back(std::move(shown));
    }
  }

  void collect_actors(std::vector<prom::MetricFamily>& out) const {
    auto ready =
      family("godwit_actor_ready", "1 if the actor says that it is ready", prom::MetricType::Gauge);
    auto gauges = family("godwit_actor_gauge", "What actors say of themselves", prom::MetricType::Gauge);
    unsigned actors = 0;
    for (const auto actor : node.read().getActors()) {
      if (++actors > most_labels)
        break;
      const auto name = text_of(actor.getName());
      add(ready, actor.getState() == "ready" ? 1 : 0, {{"actor", name}});
      unsigned count = 0;
      for (const auto gauge : actor.getGauges())
        if (++count <= most_labels)
          add(gauges, gauge.getValue(), {{"actor", name}, {"gauge", text_of(gauge.getName())}});
    }
    if (!ready.metric.empty())
      out.push_back(std::move(ready));
    if (!gauges.metric.empty())
      out.push_back(std::move(gauges));
  }
};

metrics::metrics() : parts_(std::make_unique<parts>()) {}

metrics::~metrics() = default;

std::string metrics::text() const {
  auto all = parts_->registry.Collect();
  parts_->collect_process(all);
  {
    const std::lock_guard lock(parts_->mutex);
    parts_->collect_watched(all);
    parts_->collect_actors(all);
  }
  std::ostringstream out;
  prom::TextSerializer().Serialize(out, all);
  return out.str();
}

void metrics::http_answer(std::string_view method, std::string_view path, int status, seconds took) {
  const std::string route(route_label(path));
  parts_->answers
    .Add(
      {{"route", route}, {"method", std::string(method_label(method))}, {"status", std::to_string(status)}})
    .Increment();
  parts_->answer_seconds.Add({{"route", route}}, answer_bounds).Observe(took.count());
}

void metrics::first_token(seconds took) {
  parts_->first_token_seconds.Observe(took.count());
}

void metrics::between_tokens(seconds took) {
  parts_->between_token_seconds.Observe(took.count());
}

void metrics::commit(std::size_t records, seconds waited, seconds write) {
  parts_->commit_records.Observe(static_cast<double>(records));
  parts_->commit_seconds.Observe(waited.count());
  parts_->write_seconds.Observe(write.count());
}

void metrics::watch(std::string name, metric_kind kind, std::string help, std::function<double()> read) {
  watch_each(std::move(name), kind, std::move(help), [read = std::move(read)] {
    return std::vector<labelled>{{{}, read()}};
  });
}

void metrics::watch_each(
  std::string name, metric_kind kind, std::string help, std::function<std::vector<labelled>()> read) {
  const std::lock_guard lock(parts_->mutex);
  parts_->readers.push_back({std::move(name), kind, std::move(help), std::move(read)});
}

void metrics::actors(const letter<schema::NodeStatus>& status) {
  const std::lock_guard lock(parts_->mutex);
  parts_->node = status;
}

} // namespace godwit
