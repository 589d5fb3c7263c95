// The only translation unit with Beast and Asio in it: they take long to compile. A connection is one
// coroutine on a strand of its own; it reads a request, hands it over, and sends what the handler puts into
// the `answer`. While it sends, one read stays pending, so that a client that leaves is noticed at once.

#include "services/http/server.hpp"

#include "services/http/answer.hpp"
#include "services/http/byte_budget.hpp"
#include "services/http/detail/beast_request.hpp"
#include "services/http/error_response.hpp"
#include "services/http/head.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include <netinet/tcp.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <ctime>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>
#include <vector>

namespace godwit::http {

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using asio::awaitable;
using asio::ip::tcp;
using beast::error_code;
using clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using strand = asio::strand<asio::io_context::executor_type>;

auto into(error_code& ec) {
  return asio::redirect_error(asio::use_awaitable, ec);
}

/// Bytes of further requests that are read ahead while an answer goes out.
constexpr std::size_t read_ahead = 16 * 1024;
/// Bytes given to one write call.
constexpr std::size_t write_bytes = 256 * 1024;
/// Connections over the limit that are told so at the same time; others are just closed.
constexpr std::size_t most_turned_away = 64;

class connection;

/// What the connections of a server share.
struct core {
  core(server_options given, std::shared_ptr<http::handler> target)
    : options(std::move(given)), handler(std::move(target)),
      bodies(std::make_shared<byte_budget>(options.body_bytes_total)) {}

  const server_options options;
  const std::shared_ptr<http::handler> handler;
  const std::shared_ptr<byte_budget> bodies;
  asio::io_context io;
  std::atomic<bool> stopping{false};
  std::atomic<std::uint64_t> accepted{0};
  std::atomic<std::uint64_t> turned_away{0};
  std::atomic<std::uint64_t> timed_out{0};

  std::mutex mutex;
  std::condition_variable none_left;
  std::unordered_map<connection*, std::weak_ptr<connection>> connections;

  void add(connection* key, std::weak_ptr<connection> one) {
    const std::lock_guard lock(mutex);
    connections.emplace(key, std::move(one));
  }
  void remove(connection* key) {
    const std::lock_guard lock(mutex);
    connections.erase(key);
    if (connections.empty())
      none_left.notify_all();
  }
  std::size_t open() {
    const std::lock_guard lock(mutex);
    return connections.size();
  }
  std::vector<std::shared_ptr<connection>> all() {
    std::vector<std::shared_ptr<connection>> out;
    const std::lock_guard lock(mutex);
    for (const auto& [key, weak] : connections)
      if (auto one = weak.lock())
        out.push_back(std::move(one));
    return out;
  }
};

class connection : public std::enable_shared_from_this<connection> {
 public:
  connection(std::shared_ptr<core> shared, tcp::socket socket, strand own)
    : core_(std::move(shared)), strand_(std::move(own)), socket_(std::move(socket)), deadline_(strand_),
      wake_(strand_), buffer_(core_->options.head_bytes + 64 * 1024) {}

  /// @param over_limit only say that there are too many
  void start(bool over_limit) {
    core_->add(this, weak_from_this());
    asio::co_spawn(strand_, run(shared_from_this(), over_limit), asio::detached);
  }

  /// Ends the connection if it is idle, else after its exchange.
  void drain() {
    asio::post(strand_, [self = shared_from_this()] {
      if (self->idle_)
        self->socket_.cancel();
    });
  }

  /// Ends the connection.
  void abort() {
    asio::post(strand_, [self = shared_from_this()] {
      self->aborted_ = true;
      self->shut();
      if (self->answer_)
        self->answer_->closed(false);
    });
  }

 private:
  awaitable<void> run(std::shared_ptr<connection> self, bool over_limit) {
    try {
      tune();
      if (over_limit) {
        const detail::refusal why{503, "too_many_connections", "too many connections: try again later"};
        co_await refuse(why);
      } else {
        while (co_await exchange_once()) {
        }
      }
    } catch (const std::exception&) {
      // Out of memory, most likely: this connection ends, others go on.
    }
    if (answer_)
      answer_->closed(true);
    shut();
    core_->remove(self.get());
  }

  /// Reads one request and sends its answer. @returns true if the connection can take another
  awaitable<bool> exchange_once() {
    if (!co_await first_byte())
      co_return false;
    const auto& options = core_->options;
    detail::request_parser parser;
    detail::set_limits(parser, options);
    error_code ec;
    arm(options.head_time);
    co_await beast::http::async_read_header(socket_, buffer_, parser, into(ec));
    disarm();
    if (ec)
      co_return co_await reading_failed(ec);
    auto request = detail::take_head(parser);
    if (!request)
      co_return co_await refuse(request.error());

    byte_share share(core_->bodies);
    if (!co_await read_body(parser, share))
      co_return false;
    request->body = std::move(parser.get().body());
    const bool http10 = parser.get().version() < 11;
    const bool keep = parser.keep_alive() && !core_->stopping;
    co_return co_await answer_request(std::move(*request), http10, keep);
  }

  /// Waits until the client sends something. @returns false if the connection ends instead
  awaitable<bool> first_byte() {
    if (aborted_ || (eof_ && buffer_.size() == 0))
      co_return false;
    if (buffer_.size() > 0)
      co_return true;
    if (core_->stopping)
      co_return false;
    buffer_.shrink_to_fit();
    error_code ec;
    idle_ = true;
    arm(first_ ? core_->options.head_time : core_->options.idle_time);
    co_await socket_.async_wait(tcp::socket::wait_read, into(ec));
    disarm();
    idle_ = false;
    first_ = false;
    co_return !ec;
  }

  /// @returns false if the request was refused or the client is gone
  awaitable<bool> read_body(detail::request_parser& parser, byte_share& share) {
    const auto& options = core_->options;
    error_code ec;
    if (!parser.is_done() && parser.get().count(beast::http::field::expect) > 0 && buffer_.size() == 0) {
      constexpr std::string_view go_on = "HTTP/1.1 100 Continue\r\n\r\n";
      arm(options.write_time);
      co_await asio::async_write(socket_, asio::buffer(go_on), into(ec));
      disarm();
      if (ec)
        co_return false;
    }
    parser.eager(true);
    const auto began = clock::now();
    while (!parser.is_done()) {
      // The time allowed grows with what has arrived, so a large body over a thin line is fine and a trickle
      // is not.
      const auto size = parser.get().body().size();
      const auto earned = milliseconds(1000 * size / options.body_bytes_per_second);
      const auto due = began + options.body_grace + earned;
      arm(std::max(milliseconds(0), std::chrono::duration_cast<milliseconds>(due - clock::now())));
      co_await beast::http::async_read_some(socket_, buffer_, parser, into(ec));
      disarm();
      if (ec) {
        co_await reading_failed(ec);
        co_return false;
      }
      if (!share.grow_to(parser.get().body().size())) {
        const detail::refusal why{503, "overloaded", "too many request bodies at once: try again later"};
        co_await refuse(why);
        co_return false;
      }
    }
    co_return true;
  }

  awaitable<bool> reading_failed(error_code ec) {
    if (aborted_)
      co_return false;
    if (ec == asio::error::operation_aborted && late_) {
      core_->timed_out.fetch_add(1, std::memory_order_relaxed);
      const detail::refusal why{408, "request_timeout", "the request took too long to arrive"};
      co_return co_await refuse(why);
    }
    static const auto& of_http = beast::http::make_error_code(beast::http::error::end_of_stream).category();
    if (ec == beast::http::error::end_of_stream || ec.category() != of_http)
      co_return false; // closed between two requests, or broken
    const auto data = buffer_.data();
    const std::string_view line(static_cast<const char*>(data.data()), data.size());
    const auto why = detail::refusal_of(ec, line);
    co_return co_await refuse(why);
  }

  /// Answers a request that does not reach the handler, and ends the connection. @returns false
  /// @param why a variable of the caller's: g++ 12 destroys a braced temporary in a co_await twice
  awaitable<bool> refuse(const detail::refusal& why) {
    auto whole = error_response(why.status, why.code, why.message);
    if (why.status == 503)
      whole.fields.emplace_back("Retry-After", "1");
    head_options head;
    head.length = whole.body.size();
    head.keep_alive = false;
    head.now = std::time(nullptr);
    std::vector<answer::piece> pieces;
    pieces.push_back({format_head(whole.status, whole.fields, head) + whole.body, {}, 0});
    const bool arrived = co_await write_all(pieces);
    observe({{}, {}, whole.status, {}});
    if (arrived)
      co_await linger();
    co_return false;
  }

  awaitable<bool> answer_request(http::request request, bool http10, bool keep) {
    const auto began = clock::now();
    answer_options options{http10, keep, core_->options.queued_bytes};
    answer_ = std::make_shared<answer>(std::move(request), options, [weak = weak_from_this()] {
      if (const auto self = weak.lock())
        asio::post(self->strand_, [weak] {
          if (const auto still = weak.lock())
            still->woken();
        });
    });
    try {
      core_->handler->handle(answer::handle(answer_));
    } catch (const std::exception&) {
      // The exchange was dropped on the way out, so the client is answered 500.
    }
    if (eof_)
      answer_->client_left();
    watch_wanted_ = true;
    watch();
    const bool arrived = co_await send_answer();
    watch_wanted_ = false; // a read that has just completed must not start another
    watching_cancel_.emit(asio::cancellation_type::terminal);
    while (watching_)
      co_await nap();

    const bool again = arrived && answer_->keep_alive() && !aborted_;
    answer_->closed(!aborted_);
    const auto& asked = answer_->request();
    // Who leaves before there is an answer has none; that is not the node's failure.
    const int status = answer_->status() != 0 ? answer_->status() : 499;
    observe({asked.method, asked.path, status, clock::now() - began});
    answer_.reset();
    if (arrived && !again)
      co_await linger();
    co_return again;
  }

  /// Sends what the handler gives until nothing follows. @returns false if the connection broke
  awaitable<bool> send_answer() {
    for (;;) {
      if (broken_ || aborted_ || answer_->cut())
        co_return false;
      auto pieces = answer_->take(write_bytes);
      if (pieces.empty()) {
        if (answer_->complete())
          co_return true;
        co_await nap();
        continue;
      }
      const bool arrived = co_await write_all(pieces);
      if (!arrived)
        answer_->closed(!aborted_);
      answer_->sent(std::move(pieces), arrived);
      if (!arrived)
        co_return false;
    }
  }

  awaitable<bool> write_all(const std::vector<answer::piece>& pieces) {
    std::vector<asio::const_buffer> buffers;
    for (const auto& piece : pieces)
      if (!piece.bytes.empty())
        buffers.emplace_back(asio::buffer(piece.bytes));
    if (buffers.empty())
      co_return true;
    // Called before every write to the socket: the time starts again with each one that got something
    // through.
    const auto progress = [this](const error_code& failed, std::size_t) -> std::size_t {
      if (failed)
        return 0;
      arm(core_->options.write_time);
      return write_bytes;
    };
    error_code ec;
    co_await asio::async_write(socket_, buffers, progress, into(ec));
    disarm();
    if (ec && late_)
      core_->timed_out.fetch_add(1, std::memory_order_relaxed);
    co_return !ec;
  }

  /// Keeps a read pending while an answer is under way: the next requests' bytes, or the news that the client
  /// left. A client that has sent a lot ahead is not read from, and its leaving shows when a write fails.
  void watch() {
    if (!watch_wanted_ || eof_ || broken_ || buffer_.size() >= read_ahead)
      return;
    watching_ = true;
    auto handler = [self = shared_from_this()](const error_code& ec, std::size_t bytes) {
      self->watching_ = false;
      self->buffer_.commit(bytes);
      if (!ec) {
        self->watch();
      } else if (ec != asio::error::operation_aborted) {
        self->eof_ = true;
        self->broken_ = ec != asio::error::eof;
        if (self->answer_ && self->broken_)
          self->answer_->closed(true);
        else if (self->answer_)
          self->answer_->client_left();
      }
      self->woken();
    };
    socket_.async_read_some(
      buffer_.prepare(4096), asio::bind_cancellation_slot(watching_cancel_.slot(), std::move(handler)));
  }

  /// Says that nothing more is sent and reads on for a while: closing with unread bytes would reset the
  /// connection, and the client could lose the answer.
  awaitable<void> linger() {
    error_code ec;
    socket_.shutdown(tcp::socket::shutdown_send, ec);
    const auto patience =
      core_->stopping ? std::min(core_->options.linger_time, milliseconds(250)) : core_->options.linger_time;
    const auto last = clock::now() + 10 * patience;
    std::size_t left = 2 * core_->options.body_bytes;
    std::vector<char> waste(64 * 1024);
    while (!ec && !aborted_ && !eof_ && left > 0 && clock::now() < last) {
      arm(patience);
      const auto bytes = co_await socket_.async_read_some(asio::buffer(waste), into(ec));
      disarm();
      left -= std::min(left, bytes);
    }
  }

  /// Waits for `woken`. What is waited for is checked on the strand before and after, so no call is missed.
  awaitable<void> nap() {
    error_code ec;
    wake_.expires_at(clock::time_point::max());
    co_await wake_.async_wait(into(ec));
  }

  void woken() {
    if (answer_ && answer_->cut())
      shut();
    wake_.cancel();
  }

  /// Cancels what the socket is doing when the time is over; `late_` says that it was this.
  void arm(milliseconds time) {
    late_ = false;
    deadline_.expires_after(time);
    deadline_.async_wait([self = shared_from_this(), number = ++armed_](const error_code& ec) {
      if (ec || number != self->armed_)
        return;
      self->late_ = true;
      self->socket_.cancel();
    });
  }

  void disarm() {
    ++armed_;
    deadline_.cancel();
  }

  void tune() {
    error_code ec;
    socket_.set_option(tcp::no_delay(true), ec);
    socket_.set_option(tcp::socket::keep_alive(true), ec);
    // Bytes that the kernel may hold unsent: a slow reader shows early, and is cheap.
    socket_.set_option(asio::detail::socket_option::integer<IPPROTO_TCP, TCP_NOTSENT_LOWAT>(64 * 1024), ec);
    // A peer that is silently gone does not hold a stream for the kernel's quarter of an hour.
    socket_.set_option(asio::detail::socket_option::integer<IPPROTO_TCP, TCP_USER_TIMEOUT>(60'000), ec);
  }

  void shut() {
    error_code ec;
    socket_.close(ec);
    disarm();
    wake_.cancel();
  }

  void observe(const answered& what) {
    if (core_->options.observe)
      core_->options.observe(what);
  }

  const std::shared_ptr<core> core_;
  const strand strand_;
  tcp::socket socket_;
  asio::steady_timer deadline_;
  asio::steady_timer wake_;
  beast::flat_buffer buffer_;
  asio::cancellation_signal watching_cancel_;
  std::shared_ptr<answer> answer_;
  std::uint64_t armed_ = 0;
  bool late_ = false;
  bool idle_ = false;
  bool first_ = true;
  bool watch_wanted_ = false;
  bool watching_ = false;
  bool eof_ = false;    ///< the client sends nothing more
  bool broken_ = false; ///< nothing can be sent
  bool aborted_ = false;
};

awaitable<void> accept_loop(std::shared_ptr<core> shared, tcp::acceptor& acceptor) {
  while (!shared->stopping) {
    strand own = asio::make_strand(shared->io);
    tcp::socket socket(own);
    error_code ec;
    co_await acceptor.async_accept(socket, into(ec));
    if (ec == asio::error::operation_aborted || ec == asio::error::bad_descriptor || shared->stopping)
      co_return;
    if (ec) {
      // No descriptors left, most likely: let some close.
      asio::steady_timer pause(acceptor.get_executor(), milliseconds(50));
      co_await pause.async_wait(into(ec));
      continue;
    }
    shared->accepted.fetch_add(1, std::memory_order_relaxed);
    const auto open = shared->open();
    const bool over = open >= shared->options.max_connections;
    if (over)
      shared->turned_away.fetch_add(1, std::memory_order_relaxed);
    if (open < shared->options.max_connections + most_turned_away)
      std::make_shared<connection>(shared, std::move(socket), own)->start(over);
  }
}

class asio_server final : public server {
 public:
  asio_server(std::shared_ptr<core> shared, tcp::acceptor acceptor)
    : core_(std::move(shared)), acceptor_(std::move(acceptor)), port_(acceptor_.local_endpoint().port()),
      work_(core_->io.get_executor()) {
    asio::co_spawn(acceptor_.get_executor(), accept_loop(core_, acceptor_), asio::detached);
    for (unsigned i = 0; i < std::max(1U, core_->options.threads); ++i)
      threads_.emplace_back([this] { core_->io.run(); });
  }

  ~asio_server() override { stop(milliseconds(0)); }

  std::uint16_t port() const override { return port_; }

  server_counts counts() const override {
    return {core_->open(), core_->accepted, core_->turned_away, core_->timed_out, core_->bodies->used()};
  }

  void stop_accepting() override {
    core_->stopping = true;
    asio::post(acceptor_.get_executor(), [this] {
      error_code ec;
      acceptor_.close(ec);
    });
    for (const auto& one : core_->all())
      one->drain();
  }

  std::size_t stop(milliseconds time) override {
    if (threads_.empty())
      return 0;
    stop_accepting();
    {
      std::unique_lock lock(core_->mutex);
      core_->none_left.wait_for(lock, time, [this] { return core_->connections.empty(); });
    }
    const auto left = core_->all();
    for (const auto& one : left)
      one->abort();
    work_.reset();
    for (auto& thread : threads_)
      thread.join();
    threads_.clear();
    return left.size();
  }

 private:
  const std::shared_ptr<core> core_;
  tcp::acceptor acceptor_;
  const std::uint16_t port_;
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  std::vector<std::thread> threads_;
};

} // namespace

result<std::unique_ptr<server>> server::start(server_options options, std::shared_ptr<handler> handler) {
  error_code ec;
  const auto text = options.address == "localhost" ? std::string("127.0.0.1") : options.address;
  const auto address = asio::ip::make_address(text, ec);
  if (ec)
    return fail(
      errc::invalid_argument, "the address to listen on must be an IP address or localhost", "listen");
  const tcp::endpoint endpoint(address, options.port);
  auto shared = std::make_shared<core>(std::move(options), std::move(handler));
  tcp::acceptor acceptor(asio::make_strand(shared->io));
  acceptor.open(endpoint.protocol(), ec);
  if (!ec)
    acceptor.set_option(tcp::acceptor::reuse_address(true), ec);
  if (!ec)
    acceptor.bind(endpoint, ec);
  if (!ec)
    acceptor.listen(asio::socket_base::max_listen_connections, ec);
  if (ec)
    return fail(errc::io, "cannot listen on port " + std::to_string(endpoint.port()) + ": " + ec.message());
  return std::make_unique<asio_server>(std::move(shared), std::move(acceptor));
}

} // namespace godwit::http
