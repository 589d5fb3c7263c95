#include "services/http/answer.hpp"

#include "services/http/error_response.hpp"
#include "services/http/head.hpp"
#include "services/http/text.hpp"

#include <ctime>
#include <iterator>

namespace godwit::http {

namespace {

/// Bodies up to this size travel in one buffer with their head.
constexpr std::size_t small_body = 16 * 1024;

class call final : public exchange {
 public:
  explicit call(std::shared_ptr<answer> state) : state_(std::move(state)) {}
  ~call() override { state_->abandon(); }
  call(const call&) = delete;
  call& operator=(const call&) = delete;

  const http::request& request() const override { return state_->request(); }
  void respond(http::response whole) override { state_->respond(std::move(whole)); }
  void begin(int status, http::headers fields) override { state_->begin(status, std::move(fields)); }
  void write(std::string bytes, written done) override { state_->write(std::move(bytes), std::move(done)); }
  void end() override { state_->end(); }
  void on_leave(std::function<void()> callback) override { state_->on_leave(std::move(callback)); }

 private:
  std::shared_ptr<answer> state_;
};

void report(std::vector<answer::piece>& pieces, bool arrived) {
  for (auto& piece : pieces)
    if (auto done = std::move(piece.done))
      done(arrived);
}

} // namespace

answer::answer(http::request request, answer_options options, std::function<void()> wake)
  : request_(std::move(request)), options_(options), wake_(std::move(wake)),
    head_only_(request_.method == "HEAD"), keep_alive_(options.keep_alive) {}

std::shared_ptr<exchange> answer::handle(std::shared_ptr<answer> state) {
  return std::make_shared<call>(std::move(state));
}

void answer::head(int status, const http::headers& fields, bool chunked, std::size_t length) {
  status_ = status;
  for (const auto& [name, value] : fields)
    if (same_token(name, "connection") && same_token(value, "close"))
      keep_alive_ = false;
  head_options options;
  options.http10 = options_.http10;
  options.now = std::time(nullptr);
  options.length = length;
  if (bodyless(status))
    options.body = framing::none;
  else if (chunked)
    options.body = options_.http10 ? framing::close : framing::chunked;
  if (options.body == framing::close)
    keep_alive_ = false;
  options.keep_alive = keep_alive_;
  chunks_ = options.body == framing::chunked;
  pieces_.push_back({format_head(status, fields, options), {}, 0});
}

void answer::respond(http::response whole) {
  {
    const std::lock_guard lock(mutex_);
    if (!accepts_head())
      return;
    const bool body = !head_only_ && !bodyless(whole.status) && !whole.body.empty();
    head(whole.status, whole.fields, false, whole.body.size());
    if (body && whole.body.size() <= small_body)
      pieces_.back().bytes += whole.body;
    else if (body)
      pieces_.push_back({std::move(whole.body), {}, 0});
    leave_ = nullptr;
  }
  wake_();
}

void answer::begin(int status, http::headers fields) {
  {
    const std::lock_guard lock(mutex_);
    if (!accepts_head())
      return;
    head(status, fields, true, 0);
    streaming_ = !head_only_ && !bodyless(status);
    if (streaming_ && left_) {
      streaming_ = false;
      cut_ = true;
    }
    if (!streaming_)
      leave_ = nullptr;
  }
  wake_();
}

void answer::write(std::string bytes, exchange::written done) {
  std::vector<piece> lost;
  std::function<void()> leave;
  {
    const std::lock_guard lock(mutex_);
    if (!streaming_) {
      lost.push_back({{}, std::move(done), 0});
    } else if (queued_ > 0 && queued_ + bytes.size() > options_.queued) {
      // The caller does not wait for its writes: the client is too slow for it, and memory is finite.
      lost = drop_stream();
      lost.push_back({{}, std::move(done), 0});
      leave = std::move(leave_);
      leave_ = nullptr;
    } else {
      if (chunks_ && !bytes.empty())
        bytes = format_chunk(bytes);
      const auto cost = bytes.size() + sizeof(piece); // empty writes are not free
      queued_ += cost;
      pieces_.push_back({std::move(bytes), std::move(done), cost});
    }
  }
  report(lost, false);
  if (leave)
    leave();
  wake_();
}

void answer::end() {
  {
    const std::lock_guard lock(mutex_);
    if (!streaming_)
      return;
    streaming_ = false;
    if (chunks_)
      pieces_.push_back({std::string(last_chunk), {}, 0});
    leave_ = nullptr;
  }
  wake_();
}

void answer::on_leave(std::function<void()> callback) {
  {
    const std::lock_guard lock(mutex_);
    if (!left_) {
      if (status_ == 0 || streaming_)
        leave_ = std::move(callback);
      return;
    }
  }
  callback();
}

void answer::abandon() {
  bool unanswered = false;
  bool left = false;
  {
    const std::lock_guard lock(mutex_);
    unanswered = accepts_head();
    left = left_;
    if (streaming_) {
      streaming_ = false;
      keep_alive_ = false; // and no last chunk: the client sees that the stream was cut
    }
    leave_ = nullptr;
  }
  if (unanswered && left)
    respond(error_response(499, "client_closed_request",
      "the client closed its sending side, which ends the work: keep it open until the answer has come"));
  else if (unanswered)
    respond(error_response(500, "internal", "the request was not answered"));
  else
    wake_();
}

std::vector<answer::piece> answer::take(std::size_t bytes) {
  constexpr std::size_t most = 64;
  std::vector<piece> out;
  std::size_t sum = 0;
  const std::lock_guard lock(mutex_);
  while (!pieces_.empty() && out.size() < most && (out.empty() || sum < bytes)) {
    sum += pieces_.front().bytes.size();
    out.push_back(std::move(pieces_.front()));
    pieces_.pop_front();
  }
  return out;
}

void answer::sent(std::vector<piece> pieces, bool arrived) {
  {
    const std::lock_guard lock(mutex_);
    for (const auto& one : pieces)
      queued_ -= one.cost;
  }
  report(pieces, arrived);
}

bool answer::complete() const {
  const std::lock_guard lock(mutex_);
  return closed_ || cut_ || (status_ != 0 && !streaming_ && pieces_.empty());
}

bool answer::cut() const {
  const std::lock_guard lock(mutex_);
  return cut_;
}

bool answer::keep_alive() const {
  const std::lock_guard lock(mutex_);
  return keep_alive_ && !cut_ && !closed_;
}

int answer::status() const {
  const std::lock_guard lock(mutex_);
  return status_;
}

/// Ends a stream whose client cannot take it. The lock is held.
std::vector<answer::piece> answer::drop_stream() {
  streaming_ = false;
  left_ = true;
  cut_ = true;
  std::vector<piece> lost(std::make_move_iterator(pieces_.begin()), std::make_move_iterator(pieces_.end()));
  pieces_.clear();
  return lost;
}

void answer::client_left() {
  std::vector<piece> lost;
  std::function<void()> leave;
  {
    const std::lock_guard lock(mutex_);
    if (streaming_)
      lost = drop_stream();
    left_ = left_ || status_ == 0;
    leave = std::move(leave_);
    leave_ = nullptr;
  }
  report(lost, false);
  if (leave)
    leave();
}

void answer::closed(bool by_client) {
  std::vector<piece> lost;
  std::function<void()> leave;
  {
    const std::lock_guard lock(mutex_);
    if (closed_)
      return;
    closed_ = true;
    lost = drop_stream();
    left_ = by_client;
    if (by_client)
      leave = std::move(leave_);
    leave_ = nullptr;
  }
  report(lost, false);
  if (leave)
    leave();
}

} // namespace godwit::http
