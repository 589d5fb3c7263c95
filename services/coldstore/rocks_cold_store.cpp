#include "services/coldstore/rocks_cold_store.hpp"

#include "messages/check.hpp"
#include "services/coldstore/key_file.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace godwit {

namespace {

/// Of one commit: what is copied for it in memory.
constexpr std::size_t most_commit_bytes = std::size_t{64} << 20;
/// Records that wait to be deleted. One more is not forgotten: it is found again by the next start.
constexpr std::size_t most_damaged = 4096;

std::string_view view(const rocksdb::Slice& slice) {
  return {slice.data(), slice.size()};
}

} // namespace

result<std::unique_ptr<cold_store>> open_cold_store(const cold_options& options) {
  auto made = rocks_cold_store::open(options);
  if (!made)
    return fail(made);
  return std::unique_ptr<cold_store>(std::move(*made));
}

result<std::unique_ptr<rocks_cold_store>> rocks_cold_store::open(const cold_options& options) {
  if (options.limit_bytes == 0)
    return fail(errc::invalid_argument, "a cold store needs a limit of at least one byte");
  if (const auto key = cold_identity_key(options.folder); !key)
    return fail(key);
  std::unique_ptr<rocks_cold_store> made(new rocks_cold_store(options));
  auto opened = made->start(mending::reopen);
  if (!opened && opened.error().code == errc::corrupt) {
    made->warn(opened.error().message + "; it is emptied, and its blocks are computed again");
    opened = made->start(mending::empty);
    if (opened)
      opened->damaged = 1;
  }
  if (!opened)
    return fail(opened);
  made->take(std::move(*opened));
  made->committer_ = std::thread([store = made.get()] { store->commit_loop(); });
  made->merger_ = std::thread([store = made.get()] { store->merge_loop(); });
  return made;
}

rocks_cold_store::rocks_cold_store(const cold_options& options)
  : options_(options), model_(cold_codec::digest_of(options.scope.fingerprint)),
    profile_(cold_codec::digest_of(options.scope.profile)), index_(options.limit_bytes) {
  counters_.limit_bytes = options.limit_bytes;
}

rocks_cold_store::~rocks_cold_store() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    cancel_merge_ = true;
  }
  changed_.notify_all();
  if (committer_.joinable())
    committer_.join();
  if (merger_.joinable())
    merger_.join();
}

// Callers' threads.

std::size_t rocks_cold_store::known(std::span<const block_identity> chain) const {
  const std::lock_guard lock(mutex_);
  return index_.known(chain);
}

cold_stats rocks_cold_store::stats() const {
  const std::lock_guard lock(mutex_);
  auto out = counters_;
  out.blocks = index_.blocks();
  out.bytes = index_.bytes();
  out.refusing = degraded();
  out.degraded = out.refusing || unproved_bytes_ != 0;
  return out;
}

std::size_t rocks_cold_store::read(
  std::span<const block_identity> chain, std::span<const std::span<std::byte>> into) {
  GODWIT_CHECK(into.size() >= chain.size());
  database from;
  std::vector<std::uint32_t> places;
  std::uint64_t given_up = 0;
  {
    const std::lock_guard lock(mutex_);
    from = database_;
    if (from != nullptr)
      places = index_.places(chain);
    given_up = index_.given_up();
  }
  const auto end = clock::now() + options_.patience;
  std::size_t count = 0;
  auto verdict = reading::good;
  std::string reason;
  for (; count < places.size() && clock::now() < end; ++count)
    if (verdict = read_one(*from, places[count], chain[count], into[count], reason); verdict != reading::good)
      break;
  from.reset();

  std::string line;
  {
    const std::lock_guard lock(mutex_);
    index_.visited(chain, count);
    counters_.hits += count;
    counters_.misses += chain.size() - count;
    if (verdict == reading::refused) {
      ++counters_.failures;
      if (!std::exchange(read_failed_, true))
        line = "the cold store in " + options_.folder.string() + " cannot be read: " + reason
               + "; its blocks are computed again";
    } else if (count > 0) {
      read_failed_ = false;
    }
    // A block that was evicted meanwhile is missing, too, though it may have been written again since.
    const bool lost =
      verdict == reading::damaged || (verdict == reading::missing && given_up == index_.given_up());
    if (const auto place = lost ? index_.lost(chain[count]) : std::nullopt) {
      ++counters_.damaged;
      if (damaged_.size() < most_damaged)
        damaged_.emplace_back(chain[count], *place);
    }
  }
  changed_.notify_all();
  if (!line.empty())
    warn(line);
  return count;
}

rocks_cold_store::reading rocks_cold_store::read_one(const cold_database& from, std::uint32_t place,
  const block_identity& identity, std::span<std::byte> into, std::string& reason) const {
  rocksdb::PinnableSlice value;
  if (const auto status = from.read_record(place, identity, value); !status.ok()) {
    reason = status.ToString();
    if (status.IsNotFound())
      return reading::missing;
    return status.IsCorruption() || status.IsPathNotFound() ? reading::damaged : reading::refused;
  }
  const auto record = cold_codec::open_record(identity, view(value));
  if (!record)
    return reading::damaged;
  const auto& scope = options_.scope;
  const auto& header = record->header;
  // A block of another model has another identity, unless somebody knows the key.
  if (header.model != model_ || header.profile != profile_ || header.shape != scope.shape
      || header.layout_version != scope.layout_version || header.block_tokens != scope.block_tokens
      || record->pages.size() != into.size())
    return reading::damaged;
  std::memcpy(into.data(), record->pages.data(), into.size());
  return reading::good;
}

result<void> rocks_cold_store::write(std::span<const cold_block> blocks) {
  while (!blocks.empty()) {
    std::size_t bytes = 0;
    std::size_t count = 0;
    do
      bytes += blocks[count++].pages.size();
    while (count < blocks.size() && bytes + blocks[count].pages.size() <= most_commit_bytes);
    if (auto written = write_some(blocks.first(count)); !written)
      return written;
    blocks = blocks.subspan(count);
  }
  return {};
}

result<void> rocks_cold_store::write_some(std::span<const cold_block> blocks) {
  const auto end = clock::now() + options_.patience;
  std::unique_lock lock(mutex_);
  const auto late = [&] {
    ++counters_.failures;
    return fail(errc::io, "the disk of the cold store did not answer in time");
  };
  if (!changed_.wait_until(lock, end,
        [&] { return stop_ || degraded() || (!busy_ && (!merging_ || garbage_ <= allowed_garbage())); }))
    return late();
  if (degraded() || stop_) {
    ++counters_.failures;
    return tl::unexpected<error>(failure_);
  }
  const auto steps = index_.plan(blocks);
  if (steps.empty())
    return {};
  busy_ = true;
  auto memory = std::exchange(spare_, rocksdb::WriteBatch());
  lock.unlock();

  if (options_.at_point)
    options_.at_point(cold_point::planned);
  const auto job = make_commit(blocks, steps, std::move(memory));
  lock.lock();
  job_ = job;
  changed_.notify_all();
  if (changed_.wait_until(lock, end, [&] { return job->done; })) {
    if (!job->verdict)
      ++counters_.failures;
    return job->verdict;
  }
  slow_ = true;
  failure_ = late().value();
  lock.unlock();
  changed_.notify_all();
  warn("the disk under the cold store in " + options_.folder.string()
       + " does not answer in time; blocks are computed again until it does");
  return fail(errc::io, "the disk of the cold store did not answer in time");
}

std::shared_ptr<rocks_cold_store::commit> rocks_cold_store::make_commit(std::span<const cold_block> blocks,
  const std::vector<cold_index::step>& steps, rocksdb::WriteBatch memory) const {
  // All at once: a batch grows by copying, and this one is large.
  std::size_t bytes = 0;
  for (const auto& step : steps)
    bytes += (step.what == cold_index::step::kind::put ? step.bytes : 0) + 512;
  if (memory.Data().capacity() < bytes)
    memory = rocksdb::WriteBatch(bytes);
  auto made = std::make_shared<commit>(std::move(memory));
  for (const auto& step : steps) {
    if (step.what == cold_index::step::kind::drop) {
      cold_database::drop(made->batch, step.place, step.identity);
      made->evicted += step.bytes != 0 ? 1U : 0U;
      made->dropped_bytes += step.bytes;
      continue;
    }
    const auto& block = blocks[step.block];
    cold_codec::note note;
    note.identity = block.identity;
    note.parent = block.parent;
    note.model = model_;
    note.depth = block.depth;
    note.bytes = step.bytes;
    note.place = step.place;
    note.hits = block.hits;
    note.worth = step.worth;
    note.tenant = block.tenant;
    cold_codec::header header;
    header.identity = block.identity;
    header.parent = block.parent;
    header.model = model_;
    header.profile = profile_;
    header.shape = options_.scope.shape;
    header.layout_version = options_.scope.layout_version;
    header.block_tokens = options_.scope.block_tokens;
    header.depth = block.depth;
    header.tenant = block.tenant;
    cold_database::put(made->batch, note, header, block.pages);
    ++made->written;
  }
  return made;
}

std::uint64_t rocks_cold_store::allowed_garbage() const {
  return std::max<std::uint64_t>(options_.limit_bytes / 4, 2 * options_.write_buffer_bytes);
}

std::chrono::milliseconds rocks_cold_store::longer_pause() const {
  return std::min(std::max(2 * pause_, options_.first_retry), options_.last_retry);
}

std::string rocks_cold_store::refuse(
  const rocksdb::Status& status, std::string_view what, std::size_t bytes) {
  const bool first = mend_ == mending::none;
  const bool again = unproved_bytes_ != 0;
  cancel_merge_ = true;
  failure_ = to_cold_error(status);
  // Damage is met when tables are merged. That of a record goes with the record; if no record is damaged, or
  // if it comes back, a table is.
  auto how = mending::reopen;
  if (status.IsCorruption()) {
    // Merges and writers may all tell of the same damage: it comes back only once it was looked for.
    const bool back = checked_ && first;
    checked_ = true;
    how = back ? mending::empty : mending::check_all;
  }
  mend_ = std::max(mend_, how);
  // A full disk may take a probe and refuse the next commit: that is still the same failure.
  pause_ = again ? longer_pause() : options_.first_retry;
  if (!status.IsCorruption()) {
    refused_bytes_ = std::max({refused_bytes_, bytes, std::size_t{1}});
    unproved_bytes_ = refused_bytes_;
  }
  next_attempt_ = clock::now() + (status.IsCorruption() ? std::chrono::milliseconds(0) : pause_);
  if (!first || again)
    return {};
  return "the cold store in " + options_.folder.string() + " cannot " + std::string(what) + ": "
         + status.ToString() + "; blocks are computed again until it can";
}

void rocks_cold_store::warn(const std::string& line) const {
  if (options_.warn && !line.empty())
    options_.warn(line);
}

} // namespace godwit
