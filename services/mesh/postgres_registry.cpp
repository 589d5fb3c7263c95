#include "services/mesh/postgres_registry.hpp"

#include "services/mesh/registry_table.hpp"
#include "services/postgres/primary.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <thread>
#include <utility>

namespace godwit {

namespace {

using postgres::clock;
using postgres::outcome;
using postgres::patience;
using std::chrono::milliseconds;

/// Between two readings at least, however often others tell of changes.
constexpr milliseconds gather{100};
constexpr milliseconds first_retry{50};
/// For giving the name up at the end.
constexpr milliseconds farewell{1'000};

std::string random_bytes() {
  std::random_device device;
  std::string out;
  for (int i = 0; i < 4; ++i) {
    const auto number = device();
    out.append(reinterpret_cast<const char*>(&number), sizeof number);
  }
  return out;
}

registry_view::moment since_start(clock::time_point at) {
  return std::chrono::duration_cast<registry_view::moment>(at.time_since_epoch());
}

bool may_pass(errc code) {
  return code == errc::io || code == errc::deadline || code == errc::resource_exhausted;
}

class table_registry final : public registry {
 public:
  table_registry(postgres_registry_options options, const postgres::address& servers)
    : options_(std::move(options)), address_(servers),
      servers_({.servers = servers,
        .schema = options_.schema,
        .tables = registry_table::tables(),
        .prepared = registry_table::statements(options_.schema),
        .durable = false,
        .statement_time = options_.statement}),
      holder_(random_bytes()), view_(options_.self, options_.limit) {}
  ~table_registry() override { stop(); }

  std::optional<node_endpoints> listen() const override { return std::nullopt; }

  result<void> announce(const node_record& self) override {
    {
      const std::lock_guard lock(mutex_);
      self_ = self;
    }
    if (!running_)
      return first_claim();
    changed_ = true;
    poked_ = true;
    return {};
  }

  void watch(std::function<void(const registry_change&)> watcher) override {
    watcher_ = std::move(watcher);
    if (line_)
      read();
    running_ = true;
    thread_ = std::thread([this] { run(); });
  }

  std::uint64_t incarnation() const override { return incarnation_; }

  std::string trouble() const override {
    const std::lock_guard lock(trouble_mutex_);
    return away_words_.empty() ? name_words_ : away_words_;
  }

  void stop() override {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    poked_ = true;
    wake_.notify_all();
    if (thread_.joinable())
      thread_.join();
    if (line_ && held_)
      line_->line->run({registry_table::leave(options_.self, holder_)}, {clock::now() + farewell});
    line_.reset();
  }

 private:
  // --- at start, on the caller's thread ---

  result<void> first_claim() {
    const auto end = clock::now() + options_.start;
    name_watch others;
    error why{errc::deadline, "the registry's database did not answer in time", {}, {}};
    while (clock::now() < end && !stopping_) {
      if (!line_) {
        auto found = connect();
        if (!found) {
          why = found.error();
          if (!may_pass(why.code))
            break;
          wait(options_.last_retry / 4);
          continue;
        }
      }
      if (!claim())
        continue; // the connection has ended
      if (held_)
        return {};
      const auto holder = ask(registry_table::holder_of(options_.self));
      if (!holder)
        continue;
      if (holder->size() == 1) {
        const auto who = holder->at(0, 0);
        if (others.beats(std::string(who.value_or("")), postgres::number_of(holder->at(0, 1)).value_or(0)))
          return fail(errc::conflict, "another process of this mesh is called " + options_.self.value
                                        + " and lives: give this one another name (the setting node)");
      }
      wait(options_.beat / 2);
    }
    return fail(why.code, "the registry cannot be used: " + why.message);
  }

  // --- afterwards, on its thread ---

  void run() {
    auto next_try = clock::now();
    milliseconds pause{0};
    while (!stopping_) {
      if (!line_) {
        if (clock::now() < next_try) {
          wait(std::chrono::ceil<milliseconds>(next_try - clock::now()));
          continue;
        }
        if (const auto found = connect(); !found) {
          away(found.error());
          pause = std::clamp(2 * pause, first_retry, options_.last_retry);
          next_try = clock::now() + pause;
          continue;
        }
        pause = milliseconds(0);
      }
      step();
    }
  }

  /// Beats and reads when it is time, and waits for the next time.
  void step() {
    poked_ = false;
    const auto now = clock::now();
    if (changed_.exchange(false)) {
      announces_ = true;
      next_beat_ = now;
    }
    if (now >= next_beat_ && !renew(now))
      return;
    if (clock::now() >= next_read_ && !read())
      return;
    if (std::exchange(away_, false)) {
      say(away_words_, {});
      options_.report("the registry's database is back, at " + line_->server);
    }
    if (stopping_)
      return;
    const auto steady = view_.next();
    auto until = std::min(next_beat_, next_read_);
    if (steady != registry_view::moment::max())
      until = std::min(until, clock::time_point(steady));
    if (!line_->line->wait_for_notifications({until, &poked_}))
      return lose({errc::io, "the connection to the database ended", {}, {}});
    for (const auto& name : line_->line->take_notifications())
      if (name != options_.self.value)
        next_read_ = std::min(next_read_, last_read_ + gather);
    if (steady != registry_view::moment::max() && since_start(clock::now()) >= steady)
      next_read_ = clock::now();
  }

  /// @returns false when the connection is gone
  bool renew(clock::time_point began) {
    next_beat_ = began + options_.beat;
    bool held = false;
    if (held_ && !announces_) {
      const auto beaten = ask(registry_table::beat(options_.self, holder_, options_.limit));
      if (!beaten)
        return false;
      held = beaten->size() == 1;
    }
    if (!held && !claim())
      return false;
    if (clock::now() - began > options_.limit / 2)
      view_.away(since_start(clock::now()));
    if (held_) {
      if (std::exchange(name_lost_, false))
        say(name_words_, {});
      return true;
    }
    if (!std::exchange(name_lost_, true)) {
      const auto words = "another process of this mesh took the name " + options_.self.value
                         + " while this one did not beat: others use that one";
      say(name_words_, words);
      options_.report(words);
    }
    return true;
  }

  bool read() {
    last_read_ = clock::now();
    next_read_ = last_read_ + options_.refresh;
    const auto all = ask(registry_table::list());
    if (!all)
      return false;
    std::vector<tabled_node> table;
    std::set<std::string> wrong;
    for (std::size_t row = 0; row < all->size(); ++row) {
      std::array<postgres::field, registry_table::columns> fields;
      for (std::size_t column = 0; column < fields.size(); ++column)
        fields[column] = all->at(row, column);
      auto one = registry_table::node_of(fields, options_.plain);
      if (one)
        table.push_back(std::move(*one));
      else if (wrong.insert(one.error().message).second && !complaints_.contains(one.error().message))
        options_.report(one.error().message);
    }
    complaints_ = std::move(wrong);
    for (const auto& change : view_.read(table, since_start(clock::now())))
      watcher_(change);
    return true;
  }

  // --- the database ---

  /// Finds the server that takes writes, and listens to it.
  result<void> connect() {
    const auto time = options_.statement + servers_.connect_time() * static_cast<int>(servers_.servers());
    auto found = servers_.find({clock::now() + time, &stopping_});
    if (!found)
      return fail(found);
    line_.emplace(std::move(*found));
    // A server that took the place of another may lack the last words.
    announces_ = true;
    next_beat_ = clock::now();
    next_read_ = next_beat_;
    if (!ask(registry_table::listen(options_.schema)))
      return fail(errc::io, last_failure_);
    return {};
  }

  /// @returns false when the connection is gone
  bool claim() {
    node_record self;
    {
      const std::lock_guard lock(mutex_);
      self = self_;
    }
    auto answer = line_->line->run(
      {registry_table::claim(self, holder_, options_.limit), registry_table::sweep()}, time());
    if (!check(answer, 2))
      return false;
    held_ = answer.results[0].size() == 1;
    if (const auto number = held_ ? postgres::number_of(answer.results[0].at(0, 0)) : std::nullopt)
      incarnation_ = static_cast<std::uint64_t>(*number);
    announces_ = !held_;
    return true;
  }

  std::optional<postgres::rows> ask(postgres::statement what) {
    auto answer = line_->line->run({std::move(what)}, time());
    if (!check(answer, 1))
      return std::nullopt;
    return std::move(answer.results[0]);
  }

  /// @returns false, without a connection, unless all of it was done
  bool check(const outcome& answer, std::size_t statements) {
    if (answer.what == outcome::kind::done && answer.results.size() == statements)
      return true;
    lose(postgres::error_of(answer, address_));
    return false;
  }

  patience time() const { return {clock::now() + options_.statement, &stopping_}; }

  void lose(const error& why) {
    last_failure_ = line_ ? line_->server + ": " + why.message : why.message;
    line_.reset();
    away({why.code, last_failure_, {}, {}});
  }

  /// What went wrong is told once, until the database is back.
  void away(const error& why) {
    view_.away(since_start(clock::now()));
    if (!running_ || stopping_)
      return;
    const auto words = "the registry's database is away, the nodes that were known stay: " + why.message;
    say(away_words_, words);
    if (!std::exchange(away_, true))
      options_.report(words);
  }

  void say(std::string& what, std::string words) {
    const std::lock_guard lock(trouble_mutex_);
    what = std::move(words);
  }

  void wait(milliseconds time) {
    std::unique_lock lock(mutex_);
    wake_.wait_for(lock, time, [this] { return stopping_.load(); });
  }

  const postgres_registry_options options_;
  const postgres::address address_;
  postgres::primary_finder servers_;
  const std::string holder_; ///< this process, among those that have the name
  std::function<void(const registry_change&)> watcher_;

  std::mutex mutex_; ///< of the next
  node_record self_;
  std::condition_variable wake_;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> changed_{false}; ///< what is said of this node
  std::atomic<bool> poked_{false};   ///< a wait for news ends
  std::atomic<bool> running_{false}; ///< on a thread of its own
  std::atomic<std::uint64_t> incarnation_{0};
  std::thread thread_;

  mutable std::mutex trouble_mutex_; ///< of the next two
  std::string away_words_;           ///< why the database is away
  std::string name_words_;           ///< who has this node's name

  // Of one thread at a time.
  std::optional<postgres::primary> line_;
  registry_view view_;
  std::set<std::string> complaints_; ///< about records, as of the last reading
  clock::time_point next_beat_;
  clock::time_point next_read_;
  clock::time_point last_read_;
  bool held_ = false;      ///< the name is this process's
  bool announces_ = true;  ///< the whole record is to be written
  bool name_lost_ = false; ///< that was told
  bool away_ = false;      ///< that was told
  std::string last_failure_;
};

} // namespace

result<std::shared_ptr<registry>> postgres_registry::open(postgres_registry_options options) {
  if (!postgres::good_schema_name(options.schema))
    return fail(errc::invalid_argument, "the schema of the registry must be small letters, digits and '_'");
  const auto servers = postgres::parse_address(options.url);
  if (!servers)
    return fail(servers.error().code, "the address of the registry " + servers.error().message);
  return std::make_shared<table_registry>(std::move(options), *servers);
}

} // namespace godwit
