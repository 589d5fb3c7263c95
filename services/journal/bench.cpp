#include "services/journal/bench.hpp"

#include "messages/descriptor.hpp"
#include "services/journal/postgres/postgres_journal.hpp"
#include "services/journal/rocks_journal.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <type_traits>
#include <vector>

namespace godwit {

namespace {

using clock_type = std::chrono::steady_clock;

/// A folder that goes with its content.
class own_folder {
 public:
  explicit own_folder(const std::filesystem::path& parent)
    : path_(parent / ("bench-journal-" + std::to_string(::getpid()))) {}
  ~own_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  own_folder(const own_folder&) = delete;
  own_folder& operator=(const own_folder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

template <class T>
T quantile(std::vector<T>& values, double which) {
  if (values.empty())
    return T{};
  const auto place =
    values.begin() + static_cast<std::ptrdiff_t>(which * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), place, values.end());
  return *place;
}

commit_rate median(const std::vector<commit_rate>& rounds) {
  const auto of = [&](auto member) {
    std::vector<std::remove_cvref_t<decltype(rounds.front().*member)>> values;
    for (const auto& round : rounds)
      values.push_back(round.*member);
    return quantile(values, 0.5);
  };
  return {of(&commit_rate::records_per_s), of(&commit_rate::records_per_sync), of(&commit_rate::p50),
    of(&commit_rate::p99)};
}

/// Sessions that append until a moment, each waiting for its last record before the next.
class writers {
 public:
  writers(stored_journal& log, const journal_bench_options& options, std::size_t round)
    : log_(log), round_(options.round), lines_(options.sessions) {
    const auto name = "bench-" + std::to_string(::getpid()) + "-" + std::to_string(round) + "-";
    record_ = journal_record::make(
      [&](schema::Record::Builder b) { b.initClosed().setCause(std::string(options.record_bytes, 'x')); });
    for (std::size_t i = 0; i < lines_.size(); ++i)
      lines_[i].name = session_id(name + std::to_string(i));
  }

  result<void> open() {
    for (auto& line : lines_)
      if (auto opened = log_.open(line.name, tenant_id("bench"), node_name("bench"), {record_}, false);
          !opened)
        return fail(opened);
    return {};
  }

  void erase() {
    for (auto& line : lines_)
      static_cast<void>(log_.erase(line.name));
  }

  /// @returns how long each record took
  result<std::vector<std::chrono::nanoseconds>> run() {
    end_ = clock_type::now() + round_;
    running_ = lines_.size();
    for (auto& line : lines_)
      append(line);
    std::unique_lock lock(mutex_);
    done_.wait(lock, [&] { return running_ == 0; }); // the journal's deadline bounds it
    if (failure_.code != errc::internal)
      return tl::unexpected<error>(failure_);
    std::vector<std::chrono::nanoseconds> all;
    for (const auto& line : lines_)
      all.insert(all.end(), line.latencies.begin(), line.latencies.end());
    return all;
  }

 private:
  struct writer {
    session_id name;
    sequence_number at = 1;
    clock_type::time_point sent;
    std::vector<std::chrono::nanoseconds> latencies;
  };

  void append(writer& one) {
    one.sent = clock_type::now();
    log_.append({one.name, one.at, 1, {record_}, false}, [this, &one](const result<sequence_number>& at) {
      const auto now = clock_type::now();
      if (at && now < end_) {
        one.at = *at;
        one.latencies.push_back(now - one.sent);
        return append(one);
      }
      const std::lock_guard lock(mutex_);
      if (!at)
        failure_ = at.error();
      if (--running_ == 0)
        done_.notify_all();
    });
  }

  stored_journal& log_;
  std::chrono::milliseconds round_;
  clock_type::time_point end_;
  journal_record record_;
  std::vector<writer> lines_;
  std::mutex mutex_;
  std::condition_variable done_;
  std::size_t running_ = 0;
  error failure_{errc::internal, "", "", ""};
};

result<commit_rate> journal_round(
  stored_journal& log, const journal_bench_options& options, std::size_t round) {
  writers all(log, options, round);
  if (auto opened = all.open(); !opened)
    return fail(opened);
  const auto syncs = log.counters().syncs.load();
  const auto records = log.counters().records.load();
  auto latencies = all.run();
  const auto written = log.counters().records - records;
  const auto synced = log.counters().syncs - syncs;
  if (!options.url.empty())
    all.erase();
  if (!latencies)
    return fail(latencies);
  const std::chrono::duration<double> seconds = options.round;
  return commit_rate{static_cast<double>(latencies->size()) / seconds.count(),
    static_cast<double>(written) / std::max(1.0, static_cast<double>(synced)), quantile(*latencies, 0.5),
    quantile(*latencies, 0.99)};
}

result<std::unique_ptr<stored_journal>> open_measured(
  const journal_bench_options& options, const std::filesystem::path& folder) {
  if (!options.url.empty()) {
    postgres_journal_options settings;
    settings.url = options.url;
    settings.schema = "godwit_bench";
    return postgres_journal::create(std::move(settings));
  }
  rocks_journal_options settings;
  settings.folder = folder / "journal";
  return rocks_journal::create(std::move(settings));
}

result<commit_rate> raw_round(const std::filesystem::path& file, const journal_bench_options& options) {
  descriptor out(::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!out)
    return fail(errc::io, "cannot write to the folder");
  const std::string record(options.record_bytes, 'x');
  std::vector<std::chrono::nanoseconds> latencies;
  bool good = true;
  for (const auto end = clock_type::now() + options.round; good && clock_type::now() < end;) {
    const auto begin = clock_type::now();
    good = ::write(*out, record.data(), record.size()) == static_cast<ssize_t>(record.size())
           && ::fdatasync(*out) == 0;
    latencies.push_back(clock_type::now() - begin);
  }
  out.close();
  if (!good)
    return fail(errc::io, "the disk refused a write");
  const std::chrono::duration<double> seconds = options.round;
  return commit_rate{static_cast<double>(latencies.size()) / seconds.count(), 1, quantile(latencies, 0.5),
    quantile(latencies, 0.99)};
}

} // namespace

result<journal_bench> measure_journal(const journal_bench_options& options) {
  if (options.sessions == 0 || options.rounds == 0 || options.round.count() <= 0 || options.record_bytes == 0
      || options.record_bytes > journal::max_record_bytes / 2)
    return fail(errc::invalid_argument,
      "sessions, rounds, their length and the record's bytes must be positive, and a "
      "record below 512 KiB");
  const own_folder folder(options.folder);
  std::error_code code;
  std::filesystem::create_directories(folder.path(), code);
  if (code)
    return fail(errc::io, "cannot make a folder: " + code.message());
  auto log = open_measured(options, folder.path());
  if (!log)
    return fail(log);

  std::vector<commit_rate> journal_rates;
  std::vector<commit_rate> raw_rates;
  for (std::size_t round = 0; round < options.rounds; ++round) {
    auto journal_rate = journal_round(**log, options, round);
    if (!journal_rate)
      return fail(journal_rate);
    auto raw_rate = raw_round(folder.path() / "raw", options);
    if (!raw_rate)
      return fail(raw_rate);
    journal_rates.push_back(*journal_rate);
    raw_rates.push_back(*raw_rate);
  }
  return journal_bench{median(journal_rates), median(raw_rates)};
}

} // namespace godwit
