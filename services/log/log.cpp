#include "services/log/log.hpp"

#include "services/log/line.hpp"

#include <spdlog/async_logger.h>
#include <spdlog/details/thread_pool.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <chrono>

namespace godwit {

namespace {

constexpr std::size_t lines_waiting = 4096;

class file_sink final : public spdlog::sinks::stdout_sink_base<spdlog::details::console_mutex> {
 public:
  explicit file_sink(std::FILE* to) : stdout_sink_base(to) {}
};

class spd_log final : public logger {
 public:
  spd_log(std::FILE* to, const log_options& options)
    : options_(options), pool_(std::make_shared<spdlog::details::thread_pool>(lines_waiting, 1)),
      // Not in spdlog's registry: nobody looks it up, and it ends with its owner.
      logger_(std::make_shared<spdlog::async_logger>(
        "godwit", std::make_shared<file_sink>(to), pool_, spdlog::async_overflow_policy::overrun_oldest)) {
    logger_->set_level(spdlog::level::trace);
    logger_->set_formatter(std::make_unique<spdlog::pattern_formatter>("%v"));
  }

  bool wants(log_level level) const override { return level >= options_.level && level != log_level::off; }

  void write(log_level level, std::string_view message, fields more) override {
    if (wants(level))
      logger_->info(spdlog::string_view_t(
        format_log_line(options_.json, std::chrono::system_clock::now(), level, message, more)));
  }

 private:
  const log_options options_;
  std::shared_ptr<spdlog::details::thread_pool> pool_;
  std::shared_ptr<spdlog::async_logger> logger_;
};

} // namespace

std::shared_ptr<logger> make_logger(std::FILE* to, const log_options& options) {
  return std::make_shared<spd_log>(to, options);
}

} // namespace godwit
