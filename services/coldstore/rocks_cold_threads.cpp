// The threads of a cold store: commits, the way back after a failure, and merges.

#include "services/coldstore/rocks_cold_store.hpp"

#include <algorithm>
#include <utility>

namespace godwit {

namespace {

/// Notes that are written anew beside one commit.
constexpr std::size_t most_uses = 256;
/// Memory that is kept from one commit to the next.
constexpr std::size_t most_spare = std::size_t{32} << 20;

} // namespace

void rocks_cold_store::commit_loop() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    if (job_ != nullptr) {
      run(lock, std::exchange(job_, nullptr));
    } else if (mend_ == mending::none && !damaged_.empty()) {
      drop_damaged(lock);
    } else if (mend_ != mending::none && !busy_ && !merging_ && clock::now() >= next_attempt_) {
      mend(lock);
    } else if (mend_ != mending::none && !busy_ && !merging_) {
      changed_.wait_until(lock, next_attempt_);
    } else {
      changed_.wait(lock);
    }
  }
  // Whoever waits must not wait for ever.
  if (job_ != nullptr) {
    job_->verdict = fail(errc::io, "the cold store is closed");
    job_->done = true;
  }
  changed_.notify_all();
  if (mend_ == mending::none && !slow_ && database_ != nullptr)
    database_->note_uses(index_.take_uses(~std::size_t{0}));
}

void rocks_cold_store::run(std::unique_lock<std::mutex>& lock, const std::shared_ptr<commit>& job) {
  std::string line;
  if (mend_ != mending::none) {
    job->verdict = tl::unexpected<error>(failure_);
  } else {
    const auto to = database_;
    const auto uses = index_.take_uses(most_uses);
    lock.unlock();
    // Before the commit: what that drops must not come back.
    to->note_uses(uses);
    const auto status = to->write(job->batch);
    lock.lock();
    if (status.ok()) {
      index_.confirm();
      counters_.written += job->written;
      counters_.evicted += job->evicted;
      garbage_ += job->dropped_bytes;
      const bool doubted = unproved_bytes_ != 0;
      unproved_bytes_ -= std::min(unproved_bytes_, job->batch.GetDataSize());
      const bool proved = doubted && unproved_bytes_ == 0;
      if (proved) {
        refused_bytes_ = 0;
        pause_ = std::chrono::milliseconds(0);
      }
      if (std::exchange(slow_, false) || proved)
        line = "the cold store in " + options_.folder.string() + " can write again";
    } else {
      line = refuse(status, "write", job->batch.GetDataSize());
      slow_ = false;
      job->verdict = tl::unexpected<error>(failure_);
    }
  }
  if (job->batch.Data().capacity() <= most_spare) {
    job->batch.Clear();
    spare_ = std::move(job->batch);
  }
  job->done = true;
  busy_ = false;
  changed_.notify_all();
  lock.unlock();
  warn(line);
  lock.lock();
}

void rocks_cold_store::drop_damaged(std::unique_lock<std::mutex>& lock) {
  rocksdb::WriteBatch batch;
  // What was written again meanwhile is good; what is planned now is written after this.
  for (const auto& [identity, place] : std::exchange(damaged_, {}))
    if (index_.has(identity))
      cold_database::drop_record(batch, place, identity);
    else
      cold_database::drop(batch, place, identity);
  if (batch.Count() == 0)
    return;
  const auto to = database_;
  lock.unlock();
  if (options_.at_point)
    options_.at_point(cold_point::dropping);
  const auto status = to->write(batch);
  lock.lock();
  if (status.ok())
    return;
  ++counters_.failures;
  const auto line = refuse(status, "write", batch.GetDataSize());
  lock.unlock();
  changed_.notify_all();
  warn(line);
  lock.lock();
}

void rocks_cold_store::mend(std::unique_lock<std::mutex>& lock) {
  const auto later = [&] {
    pause_ = longer_pause();
    next_attempt_ = clock::now() + pause_;
  };
  const auto bytes = refused_bytes_;
  lock.unlock();
  const bool takes = cold_database::disk_takes_writes(options_, bytes);
  lock.lock();
  if (!takes)
    return later();

  // Readers that hold the old one are short; without them the folder is free.
  auto old = std::exchange(database_, nullptr);
  lock.unlock();
  const auto patience = clock::now() + options_.patience;
  while (old.use_count() > 1 && clock::now() < patience)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  lock.lock();
  if (old != nullptr && old.use_count() > 1) {
    database_ = std::move(old);
    return later();
  }
  const auto how = mend_;
  lock.unlock();
  old.reset();
  auto fresh = start(how);
  lock.lock();
  if (!fresh) {
    // Without a database all look-ups miss.
    const auto code = fresh.error().code;
    failure_ = {
      code == errc::resource_exhausted ? code : errc::io, "the disk of the cold store refused", "", ""};
    if (code == errc::corrupt)
      mend_ = mending::empty;
    return later();
  }
  if (how == mending::empty)
    fresh->damaged = std::max<std::uint64_t>(index_.blocks(), 1);
  take(std::move(*fresh));
  // What refused has to take as much again before it counts as good.
  const bool good = unproved_bytes_ == 0;
  lock.unlock();
  changed_.notify_all();
  if (good || how == mending::empty)
    warn("the cold store in " + options_.folder.string()
         + (how == mending::empty ? " was damaged and is emptied; it can write again" : " can write again"));
  lock.lock();
}

void rocks_cold_store::take(started from) {
  database_ = std::move(from.opened);
  from.index.succeed(index_);
  index_ = std::move(from.index);
  counters_.damaged += from.damaged;
  counters_.evicted += from.evicted;
  garbage_ = from.garbage;
  merge_from_ = allowed_garbage() / 2;
  mend_ = mending::none;
  damaged_.clear();
}

result<rocks_cold_store::started> rocks_cold_store::start(mending how) const {
  if (how == mending::empty)
    if (const auto emptied = cold_database::empty(options_); !emptied)
      return fail(emptied);
  auto opened = cold_database::open(options_, how != mending::check_all);
  if (!opened)
    return fail(opened);
  auto notes = (*opened)->read_notes();
  if (!notes)
    return fail(notes);
  started out{std::move(*opened), cold_index(options_.limit_bytes), notes->damaged.size()};
  if (how == mending::check_all) {
    const auto bad = check_all(*out.opened, notes->good);
    if (!bad)
      return fail(bad);
    out.damaged += *bad;
  }

  rocksdb::WriteBatch batch;
  out.opened->drop_damaged(batch, *notes);
  const auto steps = out.index.restore(std::move(notes->good));
  for (const auto& step : steps)
    cold_database::drop(batch, step.place, step.identity);
  out.evicted = steps.size();
  if (batch.Count() != 0)
    if (const auto status = out.opened->write(batch); !status.ok())
      return tl::unexpected<error>(to_cold_error(status));
  const auto used = out.opened->used();
  out.garbage = used.garbage_bytes();
  if (!options_.compress)
    out.garbage = std::max(out.garbage, used.blob_bytes() - std::min(used.blob_bytes(), out.index.bytes()));
  if (how == mending::check_all)
    out.opened->merge_again();
  return out;
}

result<std::uint64_t> rocks_cold_store::check_all(cold_database& in, std::vector<cold_codec::note>& notes) {
  rocksdb::WriteBatch batch;
  const auto bad = std::erase_if(notes, [&](const cold_codec::note& note) {
    rocksdb::PinnableSlice value;
    const auto status = in.read_record(note.place, note.identity, value);
    if (status.ok() && cold_codec::open_record(note.identity, {value.data(), value.size()}))
      return false;
    cold_database::drop(batch, note.place, note.identity);
    return true;
  });
  if (bad != 0)
    if (const auto status = in.write(batch); !status.ok())
      return tl::unexpected<error>(to_cold_error(status));
  return bad;
}

void rocks_cold_store::merge_loop() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    if (garbage_ >= merge_from_ && garbage_ != 0 && !degraded() && database_ != nullptr)
      merge(lock);
    else
      changed_.wait(lock);
  }
}

void rocks_cold_store::merge(std::unique_lock<std::mutex>& lock) {
  merging_ = true;
  cancel_merge_ = stop_;
  auto in = database_;
  const auto before = garbage_;
  lock.unlock();

  auto status = in->merge(0, cancel_merge_);
  auto used = in->used();
  const auto allowed = allowed_garbage();
  if (status.ok() && used.garbage_bytes() > allowed / 4 * 3) {
    // As many of the oldest files as have enough of it: there is most, since what is old is what goes.
    std::size_t move = 0;
    for (std::uint64_t gained = 0; move < used.blobs.size() && used.garbage_bytes() - gained > allowed / 2;)
      gained += used.blobs[move++].garbage;
    status = in->merge(move, cancel_merge_);
    used = in->used();
  }
  in.reset();

  lock.lock();
  merging_ = false;
  std::string line;
  if (status.ok()) {
    checked_ = false;
    garbage_ = used.garbage_bytes() + (garbage_ - before);
    merge_from_ = std::max(allowed / 2, garbage_ + allowed / 8);
  } else if (!status.IsIncomplete() && !stop_) {
    ++counters_.failures;
    line = refuse(status, "merge its files", options_.write_buffer_bytes);
  }
  lock.unlock();
  changed_.notify_all();
  warn(line);
  lock.lock();
}

} // namespace godwit
