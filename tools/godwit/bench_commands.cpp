#include "tools/godwit/bench_commands.hpp"

#include "actors/tokenizer/tokenizer.hpp"
#include "services/journal/bench.hpp"
#include "tools/bench/cache_bench.hpp"
#include "tools/bench/cold_bench.hpp"
#include "tools/bench/machine.hpp"
#include "tools/bench/model_bench.hpp"
#include "tools/bench/product_bench.hpp"
#include "tools/bench/sampling_bench.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>

namespace godwit::cli {

using nlohmann::ordered_json;

namespace {

bench::model_settings settings_of(const bench_words& said) {
  return {.model = said.model,
    .threads = said.threads,
    .implementation = said.ops,
    .kv = kv_type_named(said.kv_type),
    .rounds = said.rounds};
}

std::string rate(double tokens_per_s) {
  return fmt::format("{:.1f}", tokens_per_s);
}

std::string percent(double part, double whole) {
  return fmt::format("{:.0f} %", 100 * part / whole);
}

result<std::vector<token_id>> tokens_of(const bench_words& said) {
  std::ifstream file(said.text, std::ios::binary);
  if (!file)
    return fail(errc::not_found, "the text " + said.text.string() + " cannot be read", "text");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto model = gguf::file::open(said.model);
  if (!model)
    return fail(model);
  const auto words = tokenizer::load(**model);
  if (!words)
    return fail(words);
  return (*words)->encode(text, false);
}

double milliseconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

ordered_json commit_json(const commit_rate& rate) {
  return {{"records_per_s", rate.records_per_s}, {"records_per_sync", rate.records_per_sync},
    {"p50_ms", milliseconds(rate.p50)}, {"p99_ms", milliseconds(rate.p99)}};
}

} // namespace

int bench_prefill(const settings& how, const bench_words& said) {
  const auto rates = bench::prefill(settings_of(said), said.tokens);
  if (!rates)
    return report(rates.error(), how.json);
  const auto limits = bench::measure_machine(said.ops, said.threads);
  if (!limits)
    return report(limits.error(), how.json);
  auto out = ordered_json::array();
  std::vector<std::vector<std::string>> rows{{"TOKENS", "TOKENS/S", "GOP/S", "OF INT8 PEAK"}};
  for (const auto& each : *rates) {
    out.push_back({{"tokens", each.tokens}, {"tokens_per_s", each.tokens_per_s},
      {"operations_per_s", each.operations_per_s}, {"int8_peak_per_s", limits->int8_per_s}});
    rows.push_back({std::to_string(each.tokens), rate(each.tokens_per_s), rate(each.operations_per_s / 1e9),
      percent(each.operations_per_s, limits->int8_per_s)});
  }
  how.json ? print_json(out) : print_table(rows);
  return exit_ok;
}

int bench_decode(const settings& how, const bench_words& said) {
  const auto rates = bench::decode(settings_of(said), said.contexts, said.batches);
  if (!rates)
    return report(rates.error(), how.json);
  const auto limits = bench::measure_machine(said.ops, said.threads);
  if (!limits)
    return report(limits.error(), how.json);
  auto out = ordered_json::array();
  std::vector<std::vector<std::string>> rows{{"CONTEXT", "BATCH", "TOKENS/S", "GB/S", "OF READ BANDWIDTH"}};
  for (const auto& each : *rates) {
    out.push_back({{"context", each.context}, {"batch", each.batch}, {"tokens_per_s", each.tokens_per_s},
      {"bytes_per_s", each.bytes_per_s}, {"read_bandwidth", limits->bytes_per_s}});
    rows.push_back({std::to_string(each.context), std::to_string(each.batch), rate(each.tokens_per_s),
      rate(each.bytes_per_s / 1e9), percent(each.bytes_per_s, limits->bytes_per_s)});
  }
  how.json ? print_json(out) : print_table(rows);
  return exit_ok;
}

int bench_verify(const settings& how, const bench_words& said) {
  const auto times = bench::verify(settings_of(said), said.contexts, said.blocks);
  if (!times)
    return report(times.error(), how.json);
  auto out = ordered_json::array();
  std::vector<std::vector<std::string>> rows{{"CONTEXT", "TOKENS", "MS", "OVER THE FIRST"}};
  double first = 0;
  std::uint32_t context = 0;
  for (const auto& each : *times) {
    if (first == 0 || each.context != context) {
      first = each.seconds;
      context = each.context;
    }
    out.push_back({{"context", each.context}, {"tokens", each.tokens}, {"seconds", each.seconds}});
    rows.push_back({std::to_string(each.context), std::to_string(each.tokens),
      fmt::format("{:.2f}", 1000 * each.seconds), fmt::format("{:.2f}", each.seconds / first)});
  }
  how.json ? print_json(out) : print_table(rows);
  return exit_ok;
}

int bench_products(const settings& how, const bench_words& said) {
  const auto rates = bench::products(settings_of(said), said.sizes);
  if (!rates)
    return report(rates.error(), how.json);
  const auto limits = bench::measure_machine(said.ops, said.threads);
  if (!limits)
    return report(limits.error(), how.json);
  auto out = ordered_json::array();
  std::vector<std::vector<std::string>> rows{
    {"ROWS", "MS", "GOP/S", "OF INT8 PEAK", "GB/S", "OF READ BANDWIDTH"}};
  for (const auto& each : *rates) {
    out.push_back({{"rows", each.rows}, {"seconds", each.seconds},
      {"operations_per_s", each.operations_per_s}, {"int8_peak_per_s", limits->int8_per_s},
      {"bytes_per_s", each.bytes_per_s}, {"read_bandwidth", limits->bytes_per_s}});
    rows.push_back({std::to_string(each.rows), fmt::format("{:.2f}", 1e3 * each.seconds),
      rate(each.operations_per_s / 1e9), percent(each.operations_per_s, limits->int8_per_s),
      rate(each.bytes_per_s / 1e9), percent(each.bytes_per_s, limits->bytes_per_s)});
  }
  how.json ? print_json(out) : print_table(rows);
  return exit_ok;
}

int bench_machine(const settings& how, const bench_words& said) {
  const auto limits = bench::measure_machine(said.ops, said.threads);
  if (!limits)
    return report(limits.error(), how.json);
  if (how.json)
    print_json({{"instructions", limits->instructions}, {"threads", limits->threads},
      {"int8_per_s", limits->int8_per_s}, {"bytes_per_s", limits->bytes_per_s}});
  else
    fmt::print("{} threads: products of 8-bit numbers {:.0f} GOP/s ({}), reads {:.1f} GB/s\n",
      limits->threads, limits->int8_per_s / 1e9, limits->instructions, limits->bytes_per_s / 1e9);
  return exit_ok;
}

int bench_cache(const settings& how, const bench_words& said) {
  const auto rates = bench::cache(settings_of(said), said.cached, said.folder);
  if (!rates)
    return report(rates.error(), how.json);
  const auto& [index, pages, hit, tiers] = *rates;
  if (how.json) {
    print_json({{"index", {{"blocks", index.blocks}, {"lookup_us", index.lookup_us},
                            {"inserted_per_s", index.inserted_per_s}, {"indexed", index.indexed},
                            {"bytes_per_block", index.bytes_per_block}}},
      {"pages", {{"pages", pages.pages}, {"pool_ms", pages.pool_ms}, {"fork_tokens", pages.fork_tokens},
                  {"fork_us", pages.fork_us}, {"fork_blocks", pages.fork_blocks}}},
      {"hit", {{"tokens", hit.tokens}, {"cold_ms", hit.cold_ms}, {"hit_ms", hit.hit_ms},
                {"ratio", hit.hit_ms / hit.cold_ms}}},
      {"tiers", {{"tokens", tiers.tokens}, {"cold_ms", tiers.cold_ms}, {"host_ms", tiers.host_ms},
                  {"disk_ms", tiers.disk_ms}, {"host_ratio", tiers.host_ms / tiers.cold_ms},
                  {"disk_ratio", tiers.disk_ms / tiers.cold_ms}, {"slow_tokens", tiers.slow_tokens},
                  {"slow_disk_ratio", tiers.slow_ms / tiers.slow_cold_ms}, {"streams", tiers.streams},
                  {"decode_alone_per_s", tiers.alone_per_s},
                  {"decode_beside_offload_per_s", tiers.beside_offload_per_s}}}});
    return exit_ok;
  }
  fmt::print("look-up of {} blocks: {:.1f} us\n", index.blocks, index.lookup_us);
  fmt::print("insertion: {:.2f} M blocks/s\n", index.inserted_per_s * 1e-6);
  fmt::print("index: {:.1f} bytes a block, of {} blocks\n", index.bytes_per_block, index.indexed);
  fmt::print("pool: {} pages allocated and freed in {:.3f} ms\n", pages.pages, pages.pool_ms);
  fmt::print("fork of {} tokens: {:.1f} us, {} block\n", pages.fork_tokens, pages.fork_us, pages.fork_blocks);
  fmt::print("prompt of {} tokens: {:.1f} ms cold, {:.1f} ms found, {:.4f} of it\n", hit.tokens, hit.cold_ms,
    hit.hit_ms, hit.hit_ms / hit.cold_ms);
  fmt::print("the same from host memory: {:.1f} ms, {:.3f} of {:.1f} ms cold; from disk after a restart: "
             "{:.1f} ms, {:.3f}\n",
    tiers.host_ms, tiers.host_ms / tiers.cold_ms, tiers.cold_ms, tiers.disk_ms,
    tiers.disk_ms / tiers.cold_ms);
  fmt::print("{} tokens from a disk that is as slow as computing them: {:.1f} ms, {:.3f} of {:.1f} ms cold\n",
    tiers.slow_tokens, tiers.slow_ms, tiers.slow_ms / tiers.slow_cold_ms, tiers.slow_cold_ms);
  fmt::print("{} streams: {:.0f} tokens/s alone, {:.0f} while such a prompt goes down, {:.3f} of it\n",
    tiers.streams, tiers.alone_per_s, tiers.beside_offload_per_s,
    tiers.beside_offload_per_s / tiers.alone_per_s);
  return exit_ok;
}

int bench_cold(const settings& how, const cold_words& said) {
  const auto rates = bench::cold({.folder = said.folder,
    .model = said.model,
    .megabytes = said.megabytes,
    .batch = said.batch,
    .rounds = said.rounds,
    .compress = said.compress});
  if (!rates)
    return report(rates.error(), how.json);
  const auto& r = *rates;
  if (how.json) {
    print_json({{"block_bytes", r.block_bytes}, {"blocks", r.blocks},
      {"write", {{"bytes_per_s", r.write}, {"file", r.file_write}, {"file_synced", r.file_write_synced},
                  {"ratio", r.write / r.file_write}, {"amplification", r.write_amplification}}},
      {"read", {{"bytes_per_s", r.read}, {"file", r.file_read}, {"ratio", r.read / r.file_read}}},
      {"read_warm", {{"bytes_per_s", r.read_warm}, {"file", r.file_read_warm},
                      {"ratio", r.read_warm / r.file_read_warm}}},
      {"space_amplification", r.space_amplification},
      {"full", {{"bytes_per_s", r.full_write}, {"amplification", r.full_write_amplification},
                 {"space_amplification", r.full_space_amplification}, {"evicted", r.evicted},
                 {"worthy_kept", r.worthy_kept}, {"unworthy_kept", r.unworthy_kept}}}});
    return exit_ok;
  }
  const auto mb = [](double bytes) { return fmt::format("{:.0f}", bytes / 1e6); };
  const auto ratio = [](double a, double b) { return fmt::format("{:.2f}", a / std::max(b, 1e-9)); };
  print_table({{"", "STORE MB/S", "FILE MB/S", "RATIO"},
    {"write, file synced at its end", mb(r.write), mb(r.file_write), ratio(r.write, r.file_write)},
    {"write, file synced as often", mb(r.write), mb(r.file_write_synced),
      ratio(r.write, r.file_write_synced)},
    {"read from disk", mb(r.read), mb(r.file_read), ratio(r.read, r.file_read)},
    {"read from memory", mb(r.read_warm), mb(r.file_read_warm), ratio(r.read_warm, r.file_read_warm)},
    {"write when full", mb(r.full_write), mb(r.file_write), ratio(r.full_write, r.file_write)}});
  fmt::print("{} blocks of {} bytes; written {:.3f} times, {:.3f} of them on disk\n", r.blocks, r.block_bytes,
    r.write_amplification, r.space_amplification);
  fmt::print("full: {} blocks evicted, written {:.3f} times, at most {:.2f} of what is in it on disk\n",
    r.evicted, r.full_write_amplification, r.full_space_amplification);
  fmt::print("full: {} of the texts that were read again are there, {} of the others\n",
    percent(r.worthy_kept, 1), percent(r.unworthy_kept, 1));
  return exit_ok;
}

int bench_sampling(const settings& how, const bench_words& said) {
  const auto rates = bench::sampling(settings_of(said), said.rows);
  if (!rates)
    return report(rates.error(), how.json);
  auto out = ordered_json::array();
  std::vector<std::vector<std::string>> rows{{"SETTINGS", "MS", "A ROW, US", "OF THE STEP"}};
  for (const auto& way : rates->ways) {
    out.push_back({{"settings", way.name}, {"rows", rates->rows}, {"seconds", way.seconds},
      {"step_seconds", rates->step_seconds}, {"share", way.seconds / rates->step_seconds}});
    rows.push_back({way.name, fmt::format("{:.2f}", 1e3 * way.seconds),
      fmt::format("{:.1f}", 1e6 * way.seconds / rates->rows),
      fmt::format("{:.1f} %", 100 * way.seconds / rates->step_seconds)});
  }
  how.json ? print_json(out) : print_table(rows);
  return exit_ok;
}

int bench_nll(const settings& how, const bench_words& said) {
  const auto tokens = tokens_of(said);
  if (!tokens)
    return report(tokens.error(), how.json);
  const auto loss = bench::nll(settings_of(said), *tokens);
  if (!loss)
    return report(loss.error(), how.json);
  if (how.json)
    print_json({{"tokens", loss->tokens}, {"mean_nll", loss->mean_nll}});
  else
    fmt::print("{} tokens, mean negative log-likelihood {:.6f}\n", loss->tokens, loss->mean_nll);
  return exit_ok;
}

int bench_journal(const settings& how, const journal_words& said) {
  auto out = ordered_json::array();
  std::vector<std::vector<std::string>> rows{
    {"SESSIONS", "RECORDS/S", "A SYNC", "P50 MS", "P99 MS", "RAW FILE/S", "RATIO"}};
  for (const auto sessions : said.sessions) {
    const auto measured = measure_journal({.folder = said.folder,
      .url = said.url,
      .sessions = sessions,
      .record_bytes = said.record_bytes,
      .rounds = said.rounds,
      .round = std::chrono::milliseconds(said.round_ms)});
    if (!measured)
      return report(measured.error(), how.json);
    const auto& [journal, raw] = *measured;
    const double ratio = journal.records_per_s / std::max(raw.records_per_s, 1e-9);
    out.push_back({{"sessions", sessions}, {"record_bytes", said.record_bytes},
      {"journal", commit_json(journal)}, {"raw", commit_json(raw)}, {"ratio", ratio}});
    rows.push_back({std::to_string(sessions), fmt::format("{:.0f}", journal.records_per_s),
      fmt::format("{:.1f}", journal.records_per_sync), fmt::format("{:.2f}", milliseconds(journal.p50)),
      fmt::format("{:.2f}", milliseconds(journal.p99)), fmt::format("{:.0f}", raw.records_per_s),
      fmt::format("{:.2f}", ratio)});
  }
  how.json ? print_json(out) : print_table(rows);
  return exit_ok;
}

} // namespace godwit::cli
