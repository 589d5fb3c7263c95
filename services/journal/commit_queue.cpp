#include "services/journal/commit_queue.hpp"

#include "actors/session/journal_rules.hpp"
#include "messages/check.hpp"

#include <algorithm>
#include <utility>

namespace godwit {

commit_queue::commit_queue(
  limits bounds, commit write, journal_counters& counters, journal_observer* observer)
  : bounds_(bounds), write_(std::move(write)), counters_(counters), observer_(observer),
    writer_([this] { write_loop(); }), watcher_([this] { watch_loop(); }) {}

commit_queue::~commit_queue() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  arrival_.notify_all();
  writer_.join();
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  end_.notify_all();
  watcher_.join();
}

void commit_queue::push(write_request request, answered done) {
  {
    std::unique_lock lock(mutex_);
    const bool full = waiting_.size() >= bounds_.requests
                      || (!waiting_.empty() && waiting_bytes_ + request.bytes > bounds_.bytes);
    if (closing_ || full) {
      const bool closed = closing_;
      lock.unlock();
      if (!closed)
        ++counters_.overloaded;
      return done(closed ? journal_closed() : journal_overloaded());
    }
    waiting_bytes_ += request.bytes;
    waiting_.push_back({std::move(request), std::move(done), clock::now()});
    count_waiting();
  }
  arrival_.notify_one();
}

std::vector<const write_request*> commit_queue::take_batch() {
  std::vector<const write_request*> batch;
  std::size_t bytes = 0;
  while (!waiting_.empty()) {
    const auto& next = waiting_.front().request;
    if (!batch.empty() && bytes + next.bytes > bounds_.batch_bytes)
      break;
    bytes += next.bytes;
    waiting_bytes_ -= next.bytes;
    batch.push_back(&next);
    running_.splice(running_.end(), waiting_, waiting_.begin());
  }
  count_waiting();
  return batch;
}

void commit_queue::write_loop() {
  std::unique_lock lock(mutex_);
  for (;;) {
    arrival_.wait(lock, [&] { return closing_ || !waiting_.empty(); });
    if (waiting_.empty())
      return;
    const auto batch = take_batch();
    const auto oldest = running_.front().arrived;
    lock.unlock();

    const auto begin = clock::now();
    auto verdicts = write_(batch);
    const auto end = clock::now();
    GODWIT_CHECK(verdicts.size() == batch.size());
    if (observer_ != nullptr) {
      commit_sample sample{
        .requests = 0, .records = 0, .bytes = 0, .write = end - begin, .oldest = end - oldest};
      for (std::size_t i = 0; i < batch.size(); ++i)
        if (verdicts[i] && batch[i]->what != write_request::change::nothing) {
          ++sample.requests;
          sample.records += batch[i]->records.size();
          sample.bytes += batch[i]->bytes;
        }
      if (sample.requests > 0)
        observer_->committed(sample);
    }

    std::list<ticket> finished;
    lock.lock();
    finished.swap(running_);
    lock.unlock();
    // The watcher cannot reach these any more: whatever it has not answered is answered here.
    for (auto verdict = verdicts.begin(); auto& done : finished) {
      if (done.done)
        done.done(std::move(*verdict));
      ++verdict;
    }
    finished.clear();
    lock.lock();
  }
}

void commit_queue::watch_loop() {
  using std::chrono::milliseconds;
  const auto tick = std::clamp(bounds_.deadline / 8, milliseconds(1), milliseconds(250));
  std::unique_lock lock(mutex_);
  while (!end_.wait_for(lock, tick, [&] { return ended_; })) {
    const auto limit = clock::now() - bounds_.deadline;
    std::list<ticket> unwritten;
    while (!waiting_.empty() && waiting_.front().arrived <= limit) {
      waiting_bytes_ -= waiting_.front().request.bytes;
      unwritten.splice(unwritten.end(), waiting_, waiting_.begin());
    }
    std::vector<answered> unknown;
    for (auto& one : running_)
      if (one.done && one.arrived <= limit)
        unknown.push_back(std::exchange(one.done, nullptr));
    count_waiting();
    if (unwritten.empty() && unknown.empty())
      continue;

    lock.unlock();
    counters_.deadlines += unwritten.size() + unknown.size();
    for (const auto& done : unknown)
      done(
        fail(errc::deadline, "the disk did not answer in time; whether the records are stored is unknown"));
    for (const auto& one : unwritten)
      one.done(fail(errc::deadline, "the records waited too long for the disk and were not stored"));
    unwritten.clear();
    lock.lock();
  }
}

void commit_queue::count_waiting() {
  counters_.waiting_requests = waiting_.size();
  counters_.waiting_bytes = waiting_bytes_;
}

} // namespace godwit
