#include "services/link/bench_link.hpp"

#include "messages/catalogue.hpp"

#include <caf/atom.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <sstream>
#include <thread>

namespace godwit::link::bench {

namespace {

using namespace std::chrono_literals;
using text_letter = letter<schema::EncodeRequest>;

constexpr auto echo_name = "echo";
constexpr std::ptrdiff_t pages_at_once = 8;
constexpr std::ptrdiff_t letters_at_once = 4000;
constexpr auto patience = 60s;

/// Counts down and wakes. The standard library's semaphore gives its processor away before it waits, which on
/// a busy machine takes longer than what is measured.
class gate {
 public:
  explicit gate(std::ptrdiff_t open) : open_(open) {}
  void acquire() {
    std::unique_lock lock(mutex_);
    free_.wait(lock, [this] { return open_ > 0; }); // what releases it has a deadline
    --open_;
  }
  void release() {
    const std::lock_guard lock(mutex_);
    ++open_;
    free_.notify_one();
  }

 private:
  std::mutex mutex_;
  std::condition_variable free_;
  std::ptrdiff_t open_;
};

/// A letter whose words have so many bytes: segment table, root pointer, a data word, a pointer, and the
/// text.
text_letter make_letter(std::size_t words) {
  return text_letter::make(
    [&](schema::EncodeRequest::Builder b) { b.initText(static_cast<unsigned>(words - 32)); });
}

/// Answers and counts on the link's thread; what the exchange knows goes there.
class bench_receiver final : public receiver {
 public:
  explicit bench_receiver(std::shared_ptr<actor_exchange> exchange) : exchange_(std::move(exchange)) {}
  void use(mesh_link& link) { link_ = &link; }

  void on_letter(const incoming& mail) override {
    if (mail.header.name == "count")
      (void)text_letter::parse(mail.words); // as whoever reads it would
    else
      exchange_->on_letter(mail);
  }
  void on_request(const incoming& mail, const reply_token& token) override {
    if (mail.header.name != "plain")
      return exchange_->on_request(mail, token);
    const auto read = text_letter::parse(mail.words);
    if (!read)
      return link_->fail(token, read.error());
    link_->reply(token, mail.attachments.empty() ? to_message(*read) : message{});
  }
  void on_cancel(const reply_token& token, end_cause cause) override { exchange_->on_cancel(token, cause); }
  void on_reference(const incoming& mail) override { exchange_->on_reference(mail); }
  void on_peer(const peer_change& change) override { exchange_->on_peer(change); }

 private:
  std::shared_ptr<actor_exchange> exchange_;
  mesh_link* link_ = nullptr;
};

using echo_actor =
  caf::typed_actor<caf::replies_to<letter<schema::EncodeRequest>>::with<letter<schema::EncodeRequest>>>;

echo_actor::behavior_type echo() {
  return {[](const text_letter& mail) { return mail; }};
}

struct asking_state {
  std::vector<double> times;
  bench_clock::time_point begin;
};

using asking_actor = caf::typed_actor<caf::reacts_to<caf::unit_t>>;

/// Asks one request after the other, then tells.
struct asker {
  echo_actor whom;
  text_letter mail;
  std::size_t count;
  std::shared_ptr<std::vector<double>> times;
  std::shared_ptr<gate> done;
};

void ask(asking_actor::stateful_pointer<asking_state> self, const std::shared_ptr<asker>& how) {
  if (how->times->size() >= how->count) {
    how->done->release();
    return self->quit();
  }
  self->state.begin = bench_clock::now();
  self->request(how->whom, patience, how->mail)
    .then(
      [self, how](const text_letter&) {
        how->times->push_back(since(self->state.begin));
        ask(self, how);
      },
      [self, how](const caf::error&) {
        how->done->release();
        self->quit();
      });
}

asking_actor::behavior_type asking(
  asking_actor::stateful_pointer<asking_state> self, std::shared_ptr<asker> how) {
  ask(self, how);
  return {[](caf::unit_t) {}};
}

} // namespace

bench_node::bench_node(const std::string& name, const std::optional<node_keys>& keys) {
  config_.set("scheduler.max-threads", 2);
  config_.set("scheduler.policy", caf::atom("sharing")); // as a node has it
  system_ = std::make_unique<caf::actor_system>(config_);
  exchange_ = actor_exchange::make(*system_);
  auto upper = std::make_shared<bench_receiver>(exchange_);
  receiver_ = upper;
  link_options options;
  options.node = node_name(name);
  options.sockets.keys = keys;
  auto made = mesh_link::start(std::move(options), receiver_);
  GODWIT_CHECK(made.has_value());
  link_ = std::move(*made);
  upper->use(*link_);
  exchange_->use(link_);
  exchange_->publish(echo_name, system_->spawn(echo));
}

bench_node::~bench_node() {
  exchange_->close();
  link_->stop(end_cause::draining, 0ms);
}

std::string bench_node::endpoints() const {
  const auto& at = link_->bound();
  return at.letters + " " + at.bulk + " " + at.events;
}

void bench_node::meet(
  const std::string& name, const std::string& endpoints, const std::optional<node_keys>& keys) {
  std::istringstream words(endpoints);
  peer_record record{node_name(name), keys ? std::optional(keys->open) : std::nullopt, {}, {}, {}};
  words >> record.letters >> record.bulk >> record.events;
  link_->add_peer(std::move(record));
}

bool bench_node::wait_for(const std::string& name) {
  for (int i = 0; i < 1000; ++i) {
    for (const auto& each : link_->members())
      if (each.node.value == name && each.state == peer_state::up)
        return true;
    std::this_thread::sleep_for(10ms);
  }
  return false;
}

std::vector<double> bench_node::actor_requests(
  const std::string& node, std::size_t count, std::size_t words) {
  auto how = std::make_shared<asker>(
    asker{node.empty() ? system_->spawn(echo) : exchange_->remote<echo_actor>(node, echo_name),
      make_letter(words), count, std::make_shared<std::vector<double>>(), std::make_shared<gate>(0)});
  how->times->reserve(count);
  {
    auto runs = system_->spawn(asking, how);
    how->done->acquire(); // each request has a deadline
  }
  return *how->times;
}

std::size_t link_client::frame_bytes(std::size_t words) const {
  frame_header header;
  header.name = "plain";
  return encoded_size(header, words);
}

std::vector<double> link_client::requests(std::size_t count, std::size_t words) {
  const auto mail = make_letter(words);
  std::vector<double> times;
  for (std::size_t i = 0; i < count; ++i) {
    gate ready(0);
    bool good = false;
    const auto begin = bench_clock::now();
    node_.link().request({peer_, "plain", 0}, to_message(mail), patience, [&](const result<incoming>& got) {
      good = got && text_letter::parse(got->words);
      ready.release();
    });
    ready.acquire(); // the request's deadline bounds it
    if (!good)
      break;
    times.push_back(since(begin));
  }
  return times;
}

double link_client::letters(std::size_t count, std::size_t words) {
  const auto mail = make_letter(words);
  // Now and then a request: its answer says that everything before it has arrived.
  constexpr std::ptrdiff_t stretch = 500;
  gate room(letters_at_once / stretch);
  const auto begin = bench_clock::now();
  const auto mark = [&] {
    room.acquire();
    node_.link().request(
      {peer_, "plain", 0}, to_message(mail), patience, [&room](const result<incoming>&) { room.release(); });
  };
  for (std::size_t i = 0; i < count; ++i) {
    if (i % stretch == 0)
      mark();
    node_.link().send({peer_, "count", 0}, to_message(mail), patience);
  }
  mark();
  for (std::ptrdiff_t i = 0; i < letters_at_once / stretch; ++i)
    room.acquire();
  return since(begin) / 1e6;
}

double link_client::pages(
  std::size_t count, std::size_t bytes, std::size_t words, std::vector<double>* busy) {
  const auto page = std::make_shared<const std::vector<std::byte>>(bytes, std::byte{7});
  const auto plain = make_letter(words);
  const auto mail = text_letter::make([](schema::EncodeRequest::Builder) {}, {page});
  std::atomic<bool> done{false};
  std::thread beside;
  if (busy != nullptr)
    beside = std::thread([&] {
      while (!done) {
        const auto some = requests(1, words);
        busy->insert(busy->end(), some.begin(), some.end());
      }
    });
  gate room(pages_at_once);
  const auto begin = bench_clock::now();
  for (std::size_t i = 0; i < count; ++i) {
    room.acquire();
    node_.link().request(
      {peer_, "plain", 0}, to_message(mail), patience, [&room](const result<incoming>&) { room.release(); });
  }
  for (std::ptrdiff_t i = 0; i < pages_at_once; ++i)
    room.acquire();
  const auto took = since(begin) / 1e6;
  done = true;
  if (beside.joinable())
    beside.join();
  return took;
}

} // namespace godwit::link::bench
