#include "services/daemon/watch.hpp"

#include <array>
#include <atomic>
#include <cstdint>

namespace godwit {

namespace {

constexpr auto counter = metric_kind::total;
constexpr auto gauge = metric_kind::level;

template <class Counters>
struct row {
  const char* name;
  metric_kind kind;
  const char* help;
  std::atomic<std::uint64_t> Counters::*member;
  double scale = 1;
};

template <class Counters, std::size_t N>
void watch_all(metrics& figures, const std::function<std::shared_ptr<const Counters>()>& source,
  const std::array<row<Counters>, N>& rows) {
  for (const auto& one : rows)
    figures.watch(one.name, one.kind, one.help, [source, member = one.member, scale = one.scale] {
      const auto now = source();
      return now ? static_cast<double>(((*now).*member).load(std::memory_order_relaxed)) * scale : 0.0;
    });
}

using e = engine_counters;
constexpr std::array engine_rows{
  row<e>{"godwit_running_sequences", gauge, "Prompts and streams that hold KV pages", &e::sequences},
  row<e>{"godwit_queued_prompts", gauge, "Requests that wait for their turn", &e::queued},
  row<e>{"godwit_running_prompts", gauge, "Prompts being computed", &e::prompts},
  row<e>{"godwit_open_streams", gauge, "Generations that are not over", &e::streams},
  row<e>{"godwit_running_streams", gauge, "Generations with a row in the next step", &e::running},
  row<e>{"godwit_steps_total", counter, "Steps of the model", &e::steps},
  row<e>{"godwit_step_seconds_total", counter, "Time in steps", &e::step_nanoseconds, 1e-9},
  row<e>{"godwit_step_pause_seconds_total", counter, "Time between steps while there was work",
    &e::pause_nanoseconds, 1e-9},
  row<e>{"godwit_prefilled_tokens_total", counter, "Prompt tokens computed", &e::prefilled_tokens},
  row<e>{"godwit_prompt_cached_tokens_total", counter, "Prompt tokens taken from the prefix cache",
    &e::cached_tokens},
  row<e>{"godwit_decoded_tokens_total", counter, "Tokens sampled", &e::decoded_tokens},
  row<e>{"godwit_released_tokens_total", counter, "Tokens sent to their consumers", &e::released_tokens},
  row<e>{"godwit_preemptions_total", counter, "Sequences that gave their pages to others", &e::preemptions},
  row<e>{"godwit_kv_free_blocks", gauge, "Blocks of the KV pool that nobody holds", &e::free_blocks},
  row<e>{"godwit_kv_cached_blocks", gauge, "Blocks in the prefix cache", &e::cached_blocks},
  row<e>{"godwit_cache_lookups_total", counter, "Look-ups in the prefix cache", &e::cache_lookups},
  row<e>{"godwit_cache_hits_total", counter, "Look-ups that found something", &e::cache_hits},
  row<e>{"godwit_cache_pinned_blocks", gauge, "Cached blocks that a pin holds", &e::pinned_blocks},
  row<e>{"godwit_cache_index_bytes", gauge, "Memory of the index of cached blocks, beside their pages",
    &e::index_bytes},
  row<e>{"godwit_prompt_host_tokens_total", counter, "Of the cached prompt tokens, from host memory",
    &e::cached_host_tokens},
  row<e>{"godwit_prompt_disk_tokens_total", counter, "Of the cached prompt tokens, from the cold tier",
    &e::cached_disk_tokens},
  row<e>{"godwit_cache_host_blocks", gauge, "Blocks in the host tier", &e::host_blocks},
  row<e>{"godwit_cache_host_bytes", gauge, "Bytes of them", &e::host_bytes},
  row<e>{"godwit_cache_host_hits_total", counter, "Blocks brought from host memory", &e::host_hits},
  row<e>{"godwit_cache_host_misses_total", counter,
    "Blocks that look-ups wanted and neither device nor host had", &e::host_misses},
  row<e>{"godwit_cache_host_evicted_total", counter, "Blocks that left the host tier for others",
    &e::host_evicted},
  row<e>{"godwit_cache_disk_blocks", gauge, "Blocks in the cold tier", &e::disk_blocks},
  row<e>{"godwit_cache_disk_bytes", gauge, "Bytes of them", &e::disk_bytes},
  row<e>{"godwit_cache_disk_hits_total", counter, "Blocks brought from the cold tier", &e::disk_hits},
  row<e>{"godwit_cache_disk_misses_total", counter, "Blocks that look-ups wanted and no tier had",
    &e::disk_misses},
  row<e>{"godwit_cache_disk_evicted_total", counter, "Blocks that left the cold tier for others",
    &e::disk_evicted},
  row<e>{"godwit_cache_disk_damaged_total", counter, "Records of the cold tier that did not check",
    &e::disk_damaged},
  row<e>{
    "godwit_cache_disk_failures_total", counter, "Reads and writes that the disk refused", &e::disk_failures},
  row<e>{"godwit_cache_disk_degraded", gauge, "1 while the cold tier takes no blocks", &e::disk_degraded},
  row<e>{
    "godwit_cache_offloaded_blocks_total", counter, "Blocks copied to host memory", &e::offloaded_blocks},
  row<e>{"godwit_cache_stored_blocks_total", counter, "Blocks given to the cold tier", &e::stored_blocks},
  row<e>{"godwit_cache_swapped_blocks_total", counter, "Blocks of preempted sequences copied to host memory",
    &e::swapped_blocks},
  row<e>{"godwit_cache_offload_waiting", gauge, "Blocks on their way to a lower tier", &e::offload_waiting},
  row<e>{"godwit_cache_offload_dropped_total", counter, "Blocks that a lower tier had no room or time for",
    &e::offload_dropped},
  row<e>{"godwit_cache_onboard_loads_total", counter, "Look-ups for which blocks were brought back",
    &e::onboard_loads},
  row<e>{"godwit_cache_onboard_seconds_total", counter, "Time of that, from look-up to the last block",
    &e::onboard_nanoseconds, 1e-9},
  row<e>{"godwit_cache_onboard_staged", gauge, "Blocks of the pool that are being filled from a lower tier",
    &e::onboard_staged},
  row<e>{"godwit_cache_onboard_overlapped_total", counter,
    "Look-ups for which a part was computed while blocks behind it were brought", &e::onboard_overlapped},
  row<e>{"godwit_cache_onboard_declined_total", counter, "Blocks that were there and cheaper to compute",
    &e::onboard_declined},
  row<e>{"godwit_cache_onboard_forgone_total", counter, "Times that nobody waited for the blocks in the end",
    &e::onboard_forgone},
  row<e>{
    "godwit_cache_evicted_blocks_total", counter, "Blocks that left the prefix cache", &e::evicted_blocks},
};

using h = handover_counters;
constexpr std::array handover_rows{
  row<h>{
    "godwit_handover_orders_total", counter, "Prompts that other nodes were asked to compute", &h::orders},
  row<h>{"godwit_handover_waiting", gauge, "Prompts that others compute, or whose blocks are under way",
    &h::waiting},
  row<h>{"godwit_handover_short_total", counter, "Prompts of which too little was to be computed for that",
    &h::short_prompts},
  row<h>{"godwit_handover_brought_prompts_total", counter, "Prompts of which all blocks came",
    &h::brought_prompts},
  row<h>{"godwit_handover_brought_blocks_total", counter, "Blocks that came, checked and were used",
    &h::brought_blocks},
  row<h>{"godwit_handover_brought_bytes_total", counter, "Bytes of them", &h::brought_bytes},
  row<h>{"godwit_handover_transfer_seconds_total", counter,
    "Time of whole prompts' blocks, from the first question to the last block", &h::transfer_nanoseconds,
    1e-9},
  row<h>{"godwit_handover_refused_total", counter,
    "Prompts computed here since the other node was not there or did not want them", &h::refused},
  row<h>{"godwit_handover_lost_total", counter,
    "Prompts computed here, in part or whole, since the other node was lost or had nothing any more",
    &h::lost},
  row<h>{"godwit_handover_late_total", counter,
    "Prompts computed here, in part or whole, since the other node took too long", &h::late},
  row<h>{"godwit_handover_damaged_blocks_total", counter, "Blocks that did not check", &h::damaged_blocks},
  row<h>{"godwit_handover_no_room_total", counter,
    "Times that the device had no room for blocks that were there", &h::no_room},
  row<h>{"godwit_handover_taken_total", counter, "Prompts taken from other nodes", &h::taken},
  row<h>{"godwit_handover_turned_away_total", counter, "Prompts of other nodes that were refused",
    &h::turned_away},
  row<h>{"godwit_handover_open", gauge, "Prompts of other nodes that are computed or kept", &h::open},
  row<h>{"godwit_handover_kept_blocks", gauge, "Blocks that are kept for other nodes", &h::kept_blocks},
  row<h>{"godwit_handover_given_blocks_total", counter, "Blocks sent to other nodes", &h::given_blocks},
  row<h>{"godwit_handover_given_bytes_total", counter, "Bytes of them", &h::given_bytes},
  row<h>{"godwit_handover_expired_total", counter,
    "Prompts of other nodes of which nothing was heard any more", &h::expired},
  row<h>{"godwit_handover_released_total", counter, "Prompts of other nodes that these let go", &h::released},
};

using j = journal_counters;
constexpr std::array journal_rows{
  row<j>{"godwit_journal_appends_total", counter, "Requests that were stored", &j::appends},
  row<j>{"godwit_journal_records_total", counter, "Records that were stored", &j::records},
  row<j>{"godwit_journal_bytes_total", counter, "Bytes of records that were stored", &j::bytes},
  row<j>{"godwit_journal_syncs_total", counter, "Group commits", &j::syncs},
  row<j>{"godwit_journal_fenced_total", counter, "Requests refused as stale", &j::fenced},
  row<j>{
    "godwit_journal_overloaded_total", counter, "Requests refused since too much waited", &j::overloaded},
  row<j>{"godwit_journal_deadlines_total", counter, "Requests that took too long", &j::deadlines},
  row<j>{"godwit_journal_failures_total", counter, "Group commits that the disk refused", &j::failures},
  row<j>{
    "godwit_journal_recoveries_total", counter, "Times that writing went on after a failure", &j::recoveries},
  row<j>{"godwit_journal_quarantined_total", counter, "Sessions found damaged", &j::quarantined},
  row<j>{"godwit_journal_waiting_requests", gauge, "Requests that wait for the disk", &j::waiting_requests},
  row<j>{"godwit_journal_waiting_bytes", gauge, "Bytes that wait for the disk", &j::waiting_bytes},
};

} // namespace

void watch_engine(metrics& figures, std::function<std::shared_ptr<const engine_counters>()> source) {
  watch_all<engine_counters>(figures, source, engine_rows);
}

void watch_handover(metrics& figures, std::function<std::shared_ptr<const handover_counters>()> source) {
  watch_all<handover_counters>(figures, source, handover_rows);
}

void watch_journal(metrics& figures, std::function<std::shared_ptr<const journal_counters>()> source) {
  watch_all<journal_counters>(figures, source, journal_rows);
  figures.watch("godwit_journal_failed", gauge, "1 while the disk refuses to write", [source] {
    const auto now = source();
    return now && now->failed ? 1.0 : 0.0;
  });
}

void watch_http(metrics& figures, std::function<http::server_counts()> source) {
  const auto watch = [&](const char* name, metric_kind kind, const char* help,
                       std::uint64_t http::server_counts::*member) {
    figures.watch(name, kind, help, [source, member] { return static_cast<double>(source().*member); });
  };
  using counts = http::server_counts;
  watch("godwit_http_connections", gauge, "Open connections", &counts::open);
  watch("godwit_http_connections_total", counter, "Connections taken", &counts::accepted);
  watch("godwit_http_turned_away_total", counter, "Connections over the limit", &counts::turned_away);
  watch("godwit_http_timed_out_total", counter, "Connections closed for being too slow", &counts::timed_out);
  watch("godwit_http_body_bytes", gauge, "Request bodies in memory", &counts::body_bytes);
}

} // namespace godwit
