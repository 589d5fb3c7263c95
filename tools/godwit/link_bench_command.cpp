#include "tools/godwit/link_bench_command.hpp"

#include "services/link/bench.hpp"

#include <fmt/core.h>

namespace godwit::cli {

using nlohmann::ordered_json;

namespace {

ordered_json json_of(const link::link_rates& rates) {
  return {{"request_p50_us", rates.request_p50_us}, {"request_p99_us", rates.request_p99_us},
    {"letters_per_s", rates.letters_per_s}, {"bulk_bytes_per_s", rates.bulk_bytes_per_s},
    {"busy_p50_us", rates.busy_p50_us}, {"busy_p99_us", rates.busy_p99_us}};
}

} // namespace

int bench_link(const settings& how, const link_words& said) {
  const auto measured = link::measure_link({.curve = !said.plain,
    .rounds = said.rounds,
    .requests = said.requests,
    .letters = said.letters,
    .pages = said.pages,
    .page_bytes = said.page_bytes,
    .letter_bytes = said.letter_bytes});
  if (!measured)
    return report(measured.error(), how.json);
  const auto& [link, bare, actors_p50, actors_p99, local_p50] = *measured;
  if (how.json) {
    print_json({{"curve", !said.plain}, {"link", json_of(link)}, {"bare", json_of(bare)},
      {"actors_p50_us", actors_p50}, {"actors_p99_us", actors_p99}, {"local_p50_us", local_p50}});
    return exit_ok;
  }
  std::vector<std::vector<std::string>> rows{
    {said.plain ? "PLAIN" : "CURVE", "LINK", "BARE ZEROMQ", "RATIO"}};
  const auto row = [&rows](const char* name, double ours, double theirs, double unit, int digits) {
    rows.push_back({name, fmt::format("{:.{}f}", ours / unit, digits),
      fmt::format("{:.{}f}", theirs / unit, digits), fmt::format("{:.2f}", ours / theirs)});
  };
  row("request p50, us", link.request_p50_us, bare.request_p50_us, 1, 1);
  row("request p99, us", link.request_p99_us, bare.request_p99_us, 1, 1);
  row("letters/s, thousands", link.letters_per_s, bare.letters_per_s, 1e3, 1);
  row("bulk, MB/s", link.bulk_bytes_per_s, bare.bulk_bytes_per_s, 1e6, 0);
  row("request during bulk p50, us", link.busy_p50_us, bare.busy_p50_us, 1, 1);
  row("request during bulk p99, us", link.busy_p99_us, bare.busy_p99_us, 1, 1);
  row("  p50 over its idle time", link.busy_p50_us, link.request_p50_us, 1, 1);
  row("request between actors p50, us", actors_p50, bare.request_p50_us, 1, 1);
  row("request between actors p99, us", actors_p99, bare.request_p99_us, 1, 1);
  print_table(rows);
  fmt::print("request to an actor of the same process: p50 {:.2f} us\n", local_p50);
  return exit_ok;
}

} // namespace godwit::cli
