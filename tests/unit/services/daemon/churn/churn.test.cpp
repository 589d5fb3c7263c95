// Workers come and go by the hundred under load: every completion ends, with its answer or with a stated
// error, and nothing of any of them is left anywhere.

#include "tests/support/allocated_bytes.hpp"
#include "tests/support/asked_number.hpp"
#include "tests/support/eventually.hpp"
#include "tests/unit/services/daemon/churn/star_hub.hpp"
#include "tests/unit/services/daemon/churn/star_process.hpp"
#include "tests/unit/services/daemon/churn/star_worker.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <numeric>
#include <random>
#include <sstream>
#include <thread>

using namespace godwit;
using test::allocated_bytes;
using test::eventually;
using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;

namespace {

std::size_t descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

/// A line of /proc/self/status, as a number.
std::size_t status(const std::string& name) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(name + ":"))
      return std::strtoull(line.c_str() + name.size() + 1, nullptr, 10);
  return 0;
}

/// What must be as before when nothing runs.
struct idle_counts {
  std::size_t actors = 0;
  std::size_t references = 0;
  std::uint64_t asking = 0;
  std::uint64_t serving = 0;
  std::uint64_t streams = 0;
  std::uint64_t queued = 0;
  double requests = 0;

  bool operator==(const idle_counts&) const = default;
};

std::ostream& operator<<(std::ostream& out, const idle_counts& counts) {
  return out << counts.actors << " actors, " << counts.references << " references, " << counts.asking
             << " requests of ours, " << counts.serving << " of others, " << counts.streams << " streams, "
             << counts.queued << " letters, " << counts.requests << " generations";
}

idle_counts counts_of(const star_hub& hub) {
  const auto& link = hub.of().counters();
  return {hub.actors(), hub.of().figures().references, link.pending_requests.load(),
    link.serving_requests.load(), link.streams.load(), link.queued_parcels.load(), hub.gauge("requests")};
}

/// Workers of this process and of others, by the groups in which they come and go.
class workers {
 public:
  workers(caf::actor_system& system, star_hub& hub, const toy_worker_options& options)
    : system_(system), hub_(hub), options_(options) {}

  void join() {
    auto nodes = std::make_shared<spoke_registry>(
      hub_.of().self(), on_any_port(), [this](const node_record& record) { hub_.nodes->put(record); });
    const auto name = next_name();
    here_.emplace_back(name, std::make_unique<star_worker>(system_, name, std::move(nodes), options_));
  }
  void join_process(std::size_t count) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < count; ++i)
      names.push_back(next_name());
    there_.push_back(std::make_unique<star_process>(*hub_.nodes, hub_.of().self(), std::move(names)));
  }
  /// One of this process leaves, in good order or at once.
  void leave(std::mt19937_64& random) {
    settle(0ms);
    const auto which = here_.begin() + static_cast<std::ptrdiff_t>(random() % here_.size());
    if (random() % 2 == 0) {
      which->second->drain();
      draining_.emplace_back(std::move(*which), steady::now() + 2s);
    } else {
      take(*which);
    }
    here_.erase(which);
  }
  void kill(std::mt19937_64& random) {
    const auto which = there_.begin() + static_cast<std::ptrdiff_t>(random() % there_.size());
    early_ += (*which)->kill() ? 0U : 1U;
    killed_.push_back(std::move(*which));
    there_.erase(which);
  }
  /// Processes that had ended when they were to be killed.
  std::size_t early() const { return early_; }
  bool any_here() const { return !here_.empty(); }
  bool any_there() const { return !there_.empty(); }
  std::size_t alive() const {
    std::size_t out = here_.size();
    for (const auto& each : there_)
      out += each->size();
    return out;
  }

  /// Lets those go that have drained, or had their time for it.
  void settle(std::chrono::milliseconds within) {
    const auto until = steady::now() + within;
    do {
      std::erase_if(draining_, [&](auto& each) {
        const bool over = each.first.second->view().streams == 0 || steady::now() > each.second;
        if (over)
          take(each.first);
        return over;
      });
      if (draining_.empty() || within == 0ms)
        return;
      std::this_thread::sleep_for(5ms);
    } while (steady::now() < until);
  }
  /// Generations that workers here have.
  std::size_t streams() const {
    std::size_t out = 0;
    for (const auto& [name, worker] : here_)
      out += worker->view().streams;
    return out;
  }
  std::size_t references() const {
    std::size_t out = 0;
    for (const auto& [name, worker] : here_)
      out += worker->of().figures().references;
    return out;
  }
  void end_all() {
    settle(5s);
    for (auto& each : here_)
      take(each);
    here_.clear();
    there_.clear();
    killed_.clear();
  }

 private:
  using named = std::pair<std::string, std::unique_ptr<star_worker>>;

  std::string next_name() { return "w" + std::to_string(++last_); }
  void take(named& which) {
    which.second.reset();
    hub_.nodes->take(node_name(which.first));
  }

  caf::actor_system& system_;
  star_hub& hub_;
  toy_worker_options options_;
  std::size_t last_ = 0;
  std::size_t early_ = 0;
  std::vector<named> here_;
  std::vector<std::pair<named, steady::time_point>> draining_;
  std::vector<std::unique_ptr<star_process>> there_;
  std::vector<std::unique_ptr<star_process>> killed_;
};

/// The actor system of all workers here.
struct worker_system {
  caf::actor_system_config config;
  caf::actor_system system;
  worker_system() : system(configured(config)) {}
  static caf::actor_system_config& configured(caf::actor_system_config& config) {
    config.set("scheduler.max-threads", 2);
    return config;
  }
};

star_request request_of(std::uint64_t number, std::mt19937_64& random) {
  star_request out;
  out.number = number;
  out.seed = random() % 1000;
  out.most = 5 + static_cast<std::uint32_t>(random() % 60);
  out.choices = random() % 8 == 0 ? 2 : 1;
  out.stream = random() % 4 != 0;
  out.stop = random() % 5 == 0;
  return out;
}

gateway_options quick() {
  gateway_options out;
  out.request_timeout = 5s;
  out.tries.patience = 5s;
  return out;
}

struct tally {
  std::size_t answered = 0;
  std::size_t left = 0;
  std::map<std::string, std::size_t> errors;
  std::vector<std::string> wrong;

  void add(const star_answer& one) {
    if (one.gone()) {
      ++left;
      return;
    }
    std::string code;
    if (auto verdict = one.verdict(code); !verdict.empty())
      wrong.push_back("request " + std::to_string(one.asked.number) + ": " + std::move(verdict));
    else if (code.empty())
      ++answered;
    else
      ++errors[code];
  }
  std::string words() const {
    std::ostringstream out;
    out << answered << " answered, " << left << " left";
    for (const auto& [code, count] : errors)
      out << ", " << count << " " << code;
    for (const auto& each : wrong)
      out << "\n" << each;
    return out.str();
  }
};

enum class event { ask, join, join_process, leave, kill };

/// What happens, in an order in which somebody is left to leave, and workers remain.
std::vector<event> events_of(std::mt19937_64& random, std::uint64_t requests, std::size_t joins,
  std::size_t leaves, std::size_t processes, std::size_t each) {
  std::vector<event> out(requests, event::ask);
  out.insert(out.end(), processes, event::join_process);
  out.insert(out.end(), processes, event::kill);
  out.insert(out.end(), joins - processes * each, event::join);
  out.insert(out.end(), leaves - processes * each, event::leave);
  std::shuffle(out.begin(), out.end(), random);
  return out;
}

/// What a mesh without workers has.
struct idle_marks {
  idle_counts counts;
  std::size_t descriptors;
  std::size_t threads;

  explicit idle_marks(const star_hub& hub)
    : counts(counts_of(hub)), descriptors(::descriptors()), threads(status("Threads")) {}
};

/// Workers come and go under completions; some are left.
void one_round(star_hub& hub, workers& all, const idle_marks& before, std::mt19937_64& random) {
  const auto time = std::chrono::milliseconds(asked_number("GODWIT_CHURN_MS", 8'000));
  constexpr std::size_t requests = 1'536;
  constexpr std::size_t joins = 248;
  constexpr std::size_t leaves = 149;
  constexpr std::size_t each = 3; // workers of a process that is killed
  constexpr auto processes = leaves / each / each;
  for (int i = 0; i < 8; ++i)
    all.join();
  REQUIRE(eventually(20s, [&] { return hub.gauge("workers") >= 4; }));

  const auto events = events_of(random, requests, joins - 8, leaves, processes, each);
  std::vector<std::shared_ptr<star_answer>> asked;
  std::size_t owed_leaves = 0; // that came before somebody could leave
  std::size_t owed_kills = 0;
  const auto begin = steady::now();
  for (std::size_t i = 0; i < events.size(); ++i) {
    std::this_thread::sleep_until(begin + time * i / events.size());
    switch (events[i]) {
    case event::ask:
      asked.push_back(hub.ask(request_of(asked.size(), random)));
      break;
    case event::join:
      all.join();
      break;
    case event::join_process:
      all.join_process(each);
      break;
    case event::leave:
      ++owed_leaves;
      break;
    case event::kill:
      ++owed_kills;
      break;
    }
    // Now and then a client has enough.
    if (random() % 20 == 0 && !asked.empty())
      asked[asked.size() - 1 - random() % std::min<std::size_t>(asked.size(), 20)]->leave();
    for (; owed_leaves > 0 && all.any_here() && all.alive() > 4; --owed_leaves)
      all.leave(random);
    for (; owed_kills > 0 && all.any_there() && all.alive() > 4; --owed_kills)
      all.kill(random);
  }
  CHECK(owed_leaves + owed_kills == 0);
  CHECK(all.early() == 0);

  // A wait for the router, one for another worker, and what the loss of a node takes to be noticed.
  const auto over = [&] { return std::ranges::all_of(asked, [](const auto& one) { return one->over(); }); };
  REQUIRE(eventually(15s, over));
  tally ends;
  for (const auto& one : asked)
    ends.add(*one);
  INFO(ends.words());
  CHECK(ends.wrong.empty());
  CHECK(ends.answered > requests * 8 / 10);

  // Nothing is left of them, with the workers that are still there.
  all.settle(5s);
  idle_counts now;
  CHECK(eventually(10s, [&] {
    now = counts_of(hub);
    return now == before.counts;
  }));
  CHECK(now == before.counts);
  CHECK(eventually(5s, [&] { return all.streams() == 0; }));
  CHECK(hub.gauge("workers") >= 1);
}

/// Completions that run at a time.
constexpr std::size_t few = 8;
constexpr std::size_t many = 96;

/// Least squares: how much more there is at the end than at the beginning.
double growth_of(const std::vector<double>& samples) {
  const auto n = static_cast<double>(samples.size());
  const auto mean = std::accumulate(samples.begin(), samples.end(), 0.0) / n;
  double up = 0;
  double across = 0;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const auto x = static_cast<double>(i) - (n - 1) / 2;
    up += x * (samples[i] - mean);
    across += x * x;
  }
  return up / across * n;
}

/// Keeps so many completions running until so many were asked for, and waits for their ends.
/// @param sample called so often, at even distances
/// @returns how many ended otherwise than they must
std::size_t load(star_hub& hub, std::size_t at_once, std::uint64_t requests, std::mt19937_64& random,
  std::uint64_t samples, const std::function<void()>& sample) {
  std::vector<std::shared_ptr<star_answer>> running;
  std::size_t wrong = 0;
  const auto reap = [&] {
    std::erase_if(running, [&](const auto& one) {
      if (!one->over())
        return false;
      std::string code;
      wrong += one->verdict(code).empty() && code.empty() ? 0U : 1U;
      return true;
    });
    return running.size() < at_once;
  };
  for (std::uint64_t i = 0; i < requests; ++i) {
    REQUIRE(eventually(20s, reap));
    running.push_back(hub.ask(request_of(i, random)));
    if ((i + 1) % (requests / samples) == 0)
      sample();
  }
  REQUIRE(eventually(20s, [&] { return reap() && running.empty(); }));
  return wrong;
}

/// A mesh with two workers that have room for any load.
struct loaded_mesh {
  worker_system actors;
  star_hub hub{quick()};
  workers all{actors.system, hub, {.capacity = 512, .most = 16, .step = 1ms}};
  std::mt19937_64 random{1};

  loaded_mesh() {
    all.join();
    all.join();
    REQUIRE(eventually(20s, [&] { return hub.gauge("workers") == 2; }));
  }
};

} // namespace

TEST_CASE(star_process_test, "[.]") {
  const char* const told = std::getenv(star_process_variable);
  if (told == nullptr)
    return; // not started by the test below
  std::istringstream in(told);
  node_record hub;
  hub.name = node_name("hub");
  in >> hub.endpoints.letters >> hub.endpoints.bulk >> hub.endpoints.events;
  worker_system actors;
  std::vector<std::unique_ptr<star_worker>> all;
  std::string name;
  node_endpoints where;
  while (in >> name >> where.letters >> where.bulk >> where.events)
    all.push_back(std::make_unique<star_worker>(actors.system, name,
      std::make_shared<spoke_registry>(hub, where, [](const node_record&) {}), toy_worker_options{}));
  other_process::wait_for_end();
}

TEST_CASE("completions end well while hundreds of workers join, leave and are killed") {
  const auto seed = asked_number("GODWIT_CHURN_SEED", std::random_device{}());
  const auto rounds = asked_number("GODWIT_CHURN_ROUNDS", 1);
  INFO("GODWIT_CHURN_SEED=" << seed);
  std::mt19937_64 random(seed);

  worker_system actors;
  const auto workers_before = actors.system.registry().running();
  star_hub hub(quick());
  const idle_marks before(hub);
  workers all(actors.system, hub, {});
  // More join than leave: those that are left go at the end of each round, or no process could hold them all.
  for (std::uint64_t round = 0; round < rounds; ++round) {
    INFO("round " << round);
    one_round(hub, all, before, random);
    all.end_all();
    CHECK(eventually(10s, [&] { return hub.gauge("workers") == 0; }));
    CHECK(eventually(10s, [&] { return counts_of(hub) == before.counts; }));
    CHECK(eventually(10s, [&] { return actors.system.registry().running() == workers_before; }));
    CHECK(eventually(10s, [&] { return descriptors() <= before.descriptors; }));
    CHECK(eventually(10s, [&] { return status("Threads") <= before.threads; }));
  }
}

TEST_CASE("what is left of completions is nothing, whether few or many run at a time, and however many ran") {
  if (!test::allocated_bytes_are_exact())
    return;
  loaded_mesh mesh;
  const auto before = counts_of(mesh.hub);
  const auto run = [&](std::size_t at_once, std::uint64_t requests) {
    CHECK(load(mesh.hub, at_once, requests, mesh.random, 1, [] {}) == 0);
    CHECK(eventually(5s, [&] { return counts_of(mesh.hub) == before; }));
  };
  // CAF keeps a request's time-out until its time: the longest is that of a router for a worker.
  constexpr auto remembered = 11s;
  run(few, 200);
  run(many, 400);
  std::this_thread::sleep_for(remembered);
  const auto first = allocated_bytes();
  constexpr std::uint64_t more = 5'000;
  // Queues keep the room that they once had. Of each completion this is less than anything of it.
  constexpr auto slack = 80 * more;
  for (const auto at_once : {few, many}) {
    run(at_once, more);
    std::size_t now = 0;
    eventually(remembered + 4s, [&] { return (now = allocated_bytes()) < first + slack; });
    INFO(at_once << " at a time: " << first << " bytes, and then " << now);
    CHECK(now < first + slack);
  }
}

TEST_CASE("memory and descriptors stay flat over many completions") {
  const auto at_once = GENERATE(few, many);
  const auto requests = asked_number("GODWIT_CHURN_REQUESTS", 2'000) / 2;
  constexpr std::size_t samples = 40;
  loaded_mesh mesh;
  std::vector<double> memory;
  std::vector<std::size_t> open;
  const auto began = steady::now();
  CHECK(load(mesh.hub, at_once, requests, mesh.random, samples, [&] {
    // Not what is resident: arenas of threads grow for a while, and a sanitizer keeps what was freed.
    memory.push_back(static_cast<double>(allocated_bytes()) / 1024);
    open.push_back(descriptors());
  }) == 0);
  CHECK(*std::ranges::max_element(open) <= open.front() + 2);
  // The second half: by then all pools are as large as they get.
  const std::vector<double> late(memory.begin() + samples / 2, memory.end());
  const auto mean = std::accumulate(late.begin(), late.end(), 0.0) / static_cast<double>(late.size());
  const auto growth = growth_of(late); // kB over that half
  INFO(at_once << " at a time: memory " << memory.front() << " to " << memory.back() << " kB, slope "
               << growth << " kB");
  // What is remembered for some seconds is still being filled in a short run: only a long one tells.
  if (steady::now() - began > 30s)
    CHECK(growth < 0.02 * mean + 512);
}
