#include "actors/session/journal_threads.hpp"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <utility>

namespace godwit {

namespace {

using steady = std::chrono::steady_clock;

/// A journal that answers everything with one error.
class refusing_journal final : public journal {
 public:
  explicit refusing_journal(error why) : why_(std::move(why)) {}

  result<sequence_number> open(
    const session_id&, const tenant_id&, const node_name&, std::vector<journal_record>, bool) override {
    return no();
  }
  void append(append_request, appended done) override { done(no()); }
  result<journal_head> claim(const session_id&, epoch_t, const node_name&, const journal_record&) override {
    return no();
  }
  result<journal_head> head(const session_id&) override { return no(); }
  result<std::vector<placed_record>> read(const session_id&, sequence_number, std::size_t) override {
    return no();
  }
  result<void> erase(const session_id&) override { return no(); }
  result<std::vector<journal_head>> list(const session_id&, std::size_t) override { return no(); }

 private:
  tl::unexpected<error> no() const { return tl::unexpected<error>(why_); }

  error why_;
};

} // namespace

/// Where questions wait.
struct journal_threads::desk {
  struct ticket {
    journal_question question;
    told done;
    steady::time_point arrived;
  };

  desk(std::shared_ptr<journal> from, limits with) : records(std::move(from)), bounds(with) {}

  void work() {
    std::unique_lock lock(mutex);
    while (true) {
      arrival.wait(lock, [this] { return closing || !waiting.empty(); });
      if (closing)
        return;
      auto next = std::move(waiting.front());
      waiting.pop_front();
      lock.unlock();
      if (steady::now() - next.arrived <= bounds.patience) {
        next.done(next.question(*records));
      } else {
        refusing_journal late({errc::deadline, "too many questions wait for the journal", {}, {}});
        next.done(next.question(late));
      }
      // Perhaps the last that holds an actor; its end may want the lock.
      next = {};
      lock.lock();
    }
  }

  const std::shared_ptr<journal> records;
  const limits bounds;
  std::mutex mutex; ///< of the rest
  std::condition_variable arrival;
  std::deque<ticket> waiting;
  bool closing = false;
};

journal_threads::journal_threads(std::shared_ptr<journal> records, limits bounds)
  : desk_(std::make_shared<desk>(std::move(records), bounds)) {
  for (std::size_t i = 0; i < std::max<std::size_t>(bounds.threads, 1); ++i)
    threads_.emplace_back([desk = desk_] { desk->work(); });
}

journal_threads::~journal_threads() {
  std::deque<desk::ticket> dropped;
  {
    const std::lock_guard lock(desk_->mutex);
    desk_->closing = true;
    dropped.swap(desk_->waiting);
  }
  desk_->arrival.notify_all();
  for (auto& thread : threads_)
    if (thread.get_id() == std::this_thread::get_id())
      thread.detach();
    else
      thread.join();
}

void journal_threads::ask(journal_question question, told done) {
  {
    const std::lock_guard lock(desk_->mutex);
    if (desk_->waiting.size() < desk_->bounds.waiting) {
      desk_->waiting.push_back({std::move(question), std::move(done), steady::now()});
      desk_->arrival.notify_one();
      return;
    }
  }
  refusing_journal full({errc::overloaded, "too many questions wait for the journal", {}, {}});
  done(question(full));
}

} // namespace godwit
