#include "services/log/log.hpp"

#include "services/log/line.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <sstream>
#include <thread>
#include <vector>

using namespace godwit;

namespace {

const auto nine = std::chrono::system_clock::time_point(std::chrono::milliseconds(784111777123));

std::string written(const log_options& options, const std::function<void(logger&)>& use) {
  std::FILE* file = std::tmpfile();
  REQUIRE(file != nullptr);
  {
    const auto out = make_logger(file, options);
    use(*out);
  } // the log writes what waits before it ends
  std::rewind(file);
  std::string text;
  char buffer[4096];
  while (const auto n = std::fread(buffer, 1, sizeof buffer, file))
    text.append(buffer, n);
  std::fclose(file);
  return text;
}

} // namespace

TEST_CASE("a text line quotes what is not one word") {
  CHECK(
    format_log_line(false, nine, log_level::info, "it runs",
      {{"node", "a-1"}, {"why", "two \"words\""}, {"n", std::int64_t{-3}}, {"ok", true}, {"empty", ""}})
    == "1994-11-06T08:49:37.123Z info  it runs node=a-1 why=\"two \\\"words\\\"\" n=-3 ok=true empty=\"\"");
}

TEST_CASE("a JSON line is one object with typed fields") {
  const auto line = format_log_line(true, nine, log_level::warn, "say \"x\"\n",
    {{"count", std::uint64_t{7}}, {"share", 0.5}, {"ok", false}, {"name", "a\tb"}});
  CHECK(line.find('\n') == std::string::npos);
  const auto read = nlohmann::json::parse(line);
  CHECK(read
        == nlohmann::json{{"ts", "1994-11-06T08:49:37.123Z"}, {"level", "warn"}, {"msg", "say \"x\"\n"},
          {"fields", {{"count", 7}, {"share", 0.5}, {"ok", false}, {"name", "a\tb"}}}});
}

TEST_CASE("hostile text stays within its line") {
  const std::string evil = "a\nb\r\x1b[31m\x7f";
  CHECK(format_log_line(false, nine, log_level::info, evil, {{"f", evil}})
        == "1994-11-06T08:49:37.123Z info  a\\x0ab\\x0d\\x1b[31m\\x7f f=\"a\\x0ab\\x0d\\x1b[31m\\x7f\"");
  CHECK_NOTHROW(
    nlohmann::json::parse(format_log_line(true, nine, log_level::info, "\xff\xfe", {{"f", "\xc3"}})));
}

TEST_CASE("levels are read and obeyed") {
  CHECK(parse_log_level("warn") == log_level::warn);
  CHECK_FALSE(parse_log_level("loud"));
  const auto text = written({.level = log_level::warn}, [](logger& out) {
    out.info("too quiet");
    out.warn("heard");
    out.error("loud");
  });
  CHECK(text.find("too quiet") == std::string::npos);
  CHECK(text.find("warn  heard\n") != std::string::npos);
  CHECK(text.find("error loud\n") != std::string::npos);
}

TEST_CASE("lines of many threads stay whole") {
  const auto text = written({.json = true}, [](logger& out) {
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&] {
        for (std::int64_t i = 0; i < 200; ++i)
          out.info("line", {{"i", i}});
      });
    for (auto& thread : threads)
      thread.join();
  });
  std::istringstream lines(text);
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count)
    REQUIRE(nlohmann::json::parse(line).at("msg") == "line");
  CHECK(count == 800);
}
