// ZeroMQ stays in this file and in the keys'.
#include "services/link/zmq_transport.hpp"

#include "messages/check.hpp"
#include "services/link/zap.hpp"

#include <zmq.hpp>

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <random>
#include <unordered_map>
#include <vector>

namespace godwit::link {

namespace {

constexpr auto zap_domain = "godwit";
constexpr std::size_t copied_up_to = 1024; ///< smaller frames are copied: cheaper than counting references
constexpr int letters_portion = 256;
constexpr int bulk_portion = 8;

/// What keeps a frame's bytes alive. ZeroMQ's thread lets it go; ZeroMQ orders that behind the making, and
/// the flag says so in words that ThreadSanitizer understands, which does not see into the library.
template <class Owner>
struct kept_owner {
  Owner owner;
  std::atomic<bool> made{false};
};

/// A frame of ZeroMQ's from bytes that are kept alive by `owner` until they have been sent.
template <class Owner>
zmq::message_t lend(std::span<const std::byte> bytes, Owner owner) {
  auto* const kept = new kept_owner<Owner>{std::move(owner)};
  kept->made.store(true, std::memory_order_release);
  const auto let_go = [](void*, void* hint) {
    auto* const held = static_cast<kept_owner<Owner>*>(hint);
    (void)held->made.load(std::memory_order_acquire);
    delete held;
  };
  return zmq::message_t(const_cast<std::byte*>(bytes.data()), bytes.size(), let_go, kept);
}

zmq::message_t copy(std::span<const std::byte> bytes) {
  return zmq::message_t(bytes.data(), bytes.size());
}

zmq::message_t head_frame(std::vector<std::byte> head) {
  if (head.size() <= copied_up_to)
    return copy(head);
  // Moving a vector leaves its bytes where they are.
  const std::span<const std::byte> bytes = head;
  return lend(bytes, std::move(head));
}

zmq::message_t attached_frame(attachment what) {
  const std::span<const std::byte> bytes = *what;
  return bytes.size() <= copied_up_to ? copy(bytes) : lend(bytes, std::move(what));
}

std::string_view text(const zmq::message_t& message) {
  return {static_cast<const char*>(message.data()), message.size()};
}

std::string_view key_text(const std::array<std::byte, 32>& key) {
  return {reinterpret_cast<const char*>(key.data()), key.size()};
}

/// Endpoints with an address in brackets; others are bound and reported as IPv4.
int wants_ipv6(std::string_view endpoint) {
  return endpoint.find('[') != std::string_view::npos ? 1 : 0;
}

/// A descriptor that ends a poll.
class waker {
 public:
  waker() : descriptor_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) { GODWIT_CHECK(descriptor_ >= 0); }
  ~waker() { ::close(descriptor_); }
  waker(const waker&) = delete;
  waker& operator=(const waker&) = delete;
  int descriptor() const { return descriptor_; }
  void wake() const {
    const std::uint64_t one = 1;
    (void)!::write(descriptor_, &one, sizeof one);
  }
  void settle() const {
    std::uint64_t count = 0;
    (void)!::read(descriptor_, &count, sizeof count);
  }

 private:
  int descriptor_;
};

struct channel {
  lane which;
  zmq::socket_t socket;
  bool full = false; ///< the last message found no place
};

class sockets final : public zmq_transport {
 public:
  sockets(socket_options options, link_counters& counters)
    : options_(std::move(options)), counters_(counters), context_(2) {
    context_.set(zmq::ctxopt::max_sockets, 8192);
    context_.set(zmq::ctxopt::blocky, 0);
    zap_ = zmq::socket_t(context_, zmq::socket_type::rep);
    zap_.set(zmq::sockopt::linger, 0);
    zap_.bind("inproc://zeromq.zap.01");
  }

  void bind() {
    letters_ = server(zmq::socket_type::router, options_.letter_messages, options_.letter_bytes, 1);
    bulk_ = server(zmq::socket_type::router, options_.bulk_messages, options_.bulk_bytes, 2);
    events_ = server(zmq::socket_type::pub, options_.event_messages, options_.letter_bytes, 1);
    bound_.letters = listen(letters_, options_.letters, 0);
    bound_.bulk = listen(bulk_, options_.bulk, 1);
    bound_.events = listen(events_, options_.events, 2);
  }

  ~sockets() override {
    for (auto* socket : {&letters_, &bulk_, &events_})
      if (*socket)
        (void)zmq_socket_monitor(socket->handle(), nullptr, 0);
  }

  const bound_endpoints& bound() const override { return bound_; }
  allow_list& allowed() override { return allowed_; }

  // --- out ---

  channel_id dial(lane which, const peer_record& whom) override {
    const auto type = which == lane::events ? zmq::socket_type::sub : zmq::socket_type::dealer;
    const auto& endpoint = which == lane::letters ? whom.letters
                           : which == lane::bulk  ? whom.bulk
                                                  : whom.events;
    const auto id = ++last_channel_;
    try {
      zmq::socket_t socket(context_, type);
      socket.set(zmq::sockopt::linger, 0);
      socket.set(zmq::sockopt::ipv6, wants_ipv6(endpoint));
      // Only to connections that are there; none is made again behind our back: whoever dials decides.
      socket.set(zmq::sockopt::immediate, 1);
      socket.set(zmq::sockopt::reconnect_ivl, -1);
      socket.set(zmq::sockopt::connect_timeout, 3000);
      socket.set(zmq::sockopt::handshake_ivl, 3000);
      socket.set(zmq::sockopt::affinity, std::uint64_t{which == lane::bulk ? 2U : 1U});
      socket.set(
        zmq::sockopt::sndhwm, which == lane::bulk ? options_.bulk_messages : options_.letter_messages);
      socket.set(
        zmq::sockopt::rcvhwm, which == lane::events ? options_.event_messages : options_.letter_messages);
      socket.set(zmq::sockopt::maxmsgsize, options_.letter_bytes);
      if (options_.keys) {
        if (!whom.key)
          return id;
        socket.set(zmq::sockopt::curve_serverkey, zmq::buffer(key_text(whom.key->bytes)));
        socket.set(zmq::sockopt::curve_publickey, zmq::buffer(key_text(options_.keys->open.bytes)));
        socket.set(zmq::sockopt::curve_secretkey, zmq::buffer(key_text(options_.keys->secret.bytes())));
      } else if (!is_loopback(endpoint)) {
        return id;
      }
      if (which == lane::events)
        for (const auto& prefix : topics_)
          socket.set(zmq::sockopt::subscribe, prefix);
      else if (!options_.keys)
        socket.set(zmq::sockopt::routing_id, plain_id());
      socket.connect(endpoint);
      channels_.emplace(id, channel{which, std::move(socket)});
      changed_ = true;
    } catch (const zmq::error_t&) {
      // An endpoint that is none, or no descriptors: a channel that leads nowhere.
    }
    return id;
  }

  void hang_up(channel_id id) override {
    const auto found = channels_.find(id);
    if (found == channels_.end())
      return;
    if (linger_.count() > 0)
      found->second.socket.set(zmq::sockopt::linger, static_cast<int>(linger_.count()));
    channels_.erase(found);
    changed_ = true;
  }

  bool send(channel_id id, parcel& what) override {
    const auto found = channels_.find(id);
    if (found == channels_.end() || found->second.which == lane::events)
      return false;
    auto& to = found->second;
    if (to.full)
      return false;
    try {
      const bool more = !what.attachments.empty();
      const auto flags =
        more ? zmq::send_flags::dontwait | zmq::send_flags::sndmore : zmq::send_flags::dontwait;
      if (what.head.size() <= copied_up_to) {
        if (!to.socket.send(copy(what.head), flags))
          return block(to);
      } else {
        if ((to.socket.get(zmq::sockopt::events) & ZMQ_POLLOUT) == 0)
          return block(to);
        if (!to.socket.send(head_frame(std::move(what.head)), flags))
          return block(to);
      }
      // Once the first frame was taken, the others of the message are.
      for (std::size_t i = 0; i < what.attachments.size(); ++i)
        to.socket.send(attached_frame(std::move(what.attachments[i])),
          i + 1 < what.attachments.size() ? zmq::send_flags::sndmore : zmq::send_flags::none);
      return true;
    } catch (const zmq::error_t&) {
      return block(to);
    }
  }

  bool answer(const return_path& path, parcel what) override {
    auto& from = path.which == lane::bulk ? bulk_ : letters_;
    try {
      if (!from.send(zmq::buffer(path.id), zmq::send_flags::dontwait | zmq::send_flags::sndmore))
        return false;
      return from.send(head_frame(std::move(what.head)), zmq::send_flags::dontwait).has_value();
    } catch (const zmq::error_t&) {
      return false; // the connection is gone, or full
    }
  }

  void publish(std::string_view topic, parcel what) override {
    try {
      if (events_.send(zmq::buffer(topic), zmq::send_flags::dontwait | zmq::send_flags::sndmore))
        events_.send(head_frame(std::move(what.head)), zmq::send_flags::dontwait);
    } catch (const zmq::error_t&) {
      // Nothing that a publisher waits for: subscribers see the gap.
    }
  }

  void subscribe(std::string_view prefix) override {
    topics_.emplace_back(prefix);
    for (auto& [id, one] : channels_)
      if (one.which == lane::events)
        one.socket.set(zmq::sockopt::subscribe, topics_.back());
  }

  // --- in ---

  bool receive(message_sink& sink) override {
    bool any = from_router(letters_, lane::letters, letters_portion, sink);
    any = from_router(bulk_, lane::bulk, bulk_portion, sink) || any;
    // Little comes by the other sockets: they are asked when a poll says so, or now and then when none is
    // needed.
    if (!others_ready_ && ++rounds_ % 32 != 0)
      return any;
    others_ready_ = false;
    ids_.clear();
    for (const auto& [id, one] : channels_)
      ids_.push_back(id);
    for (const auto id : ids_)
      any = from_channel(id, sink) || any;
    answer_zap();
    count_handshakes();
    return any;
  }

  void wait(moment time) override {
    if (changed_)
      gather();
    for (std::size_t i = 0; i < polled_.size(); ++i) {
      auto& item = items_[fixed_items + i];
      item.events = static_cast<short>(channels_.at(polled_[i]).full ? ZMQ_POLLIN | ZMQ_POLLOUT : ZMQ_POLLIN);
    }
    const auto rounded = std::chrono::ceil<std::chrono::milliseconds>(std::min(time, moment(60'000'000)));
    try {
      zmq::poll(items_, std::max(rounded, std::chrono::milliseconds(0)));
    } catch (const zmq::error_t&) {
      return; // a signal
    }
    if ((items_[0].revents & ZMQ_POLLIN) != 0)
      waker_.settle();
    for (std::size_t i = 0; i < polled_.size(); ++i)
      if ((items_[fixed_items + i].revents & ZMQ_POLLOUT) != 0)
        channels_.at(polled_[i]).full = false;
    for (std::size_t i = first_other; i < items_.size(); ++i)
      others_ready_ = others_ready_ || (items_[i].revents & ZMQ_POLLIN) != 0;
  }

  void wake() override { waker_.wake(); }

  void linger(std::chrono::milliseconds time) override {
    linger_ = time;
    for (auto* socket : {&letters_, &bulk_, &events_})
      socket->set(zmq::sockopt::linger, static_cast<int>(time.count()));
  }

 private:
  // Of items_: the waker, the two ROUTERs, then all others.
  static constexpr std::size_t first_other = 3;
  static constexpr std::size_t fixed_items = 7;

  zmq::socket_t server(zmq::socket_type type, int messages, std::int64_t bytes, std::uint64_t thread) {
    zmq::socket_t socket(context_, type);
    socket.set(zmq::sockopt::linger, 0);
    socket.set(zmq::sockopt::sndhwm, messages);
    socket.set(zmq::sockopt::rcvhwm, messages);
    socket.set(zmq::sockopt::maxmsgsize, bytes);
    socket.set(zmq::sockopt::handshake_ivl, 3000);
    socket.set(zmq::sockopt::affinity, thread);
    // Closes connections whose other end has vanished; beats are the link's own.
    socket.set(zmq::sockopt::heartbeat_ivl, 10'000);
    socket.set(zmq::sockopt::heartbeat_timeout, 30'000);
    // Also for plain sockets: so that they ask here who connects, and refuse what does not speak today's
    // protocol.
    socket.set(zmq::sockopt::zap_domain, zap_domain);
    if (type == zmq::socket_type::router)
      socket.set(zmq::sockopt::router_mandatory, 1);
    if (options_.keys) {
      socket.set(zmq::sockopt::curve_server, 1);
      socket.set(zmq::sockopt::curve_secretkey, zmq::buffer(key_text(options_.keys->secret.bytes())));
    }
    return socket;
  }

  std::string listen(zmq::socket_t& socket, const std::string& endpoint, std::size_t number) {
    const auto watch = "inproc://godwit-monitor-" + std::to_string(number);
    constexpr int watched = ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_HANDSHAKE_SUCCEEDED;
    if (zmq_socket_monitor(socket.handle(), watch.c_str(), watched) != 0)
      throw zmq::error_t();
    monitors_[number] = zmq::socket_t(context_, zmq::socket_type::pair);
    monitors_[number].set(zmq::sockopt::linger, 0);
    monitors_[number].connect(watch);
    socket.set(zmq::sockopt::ipv6, wants_ipv6(endpoint));
    socket.bind(endpoint);
    return socket.get(zmq::sockopt::last_endpoint);
  }

  /// Plain sockets have no keys to tell nodes by: the name stands in the routing id, behind it what no other
  /// connection has.
  std::string plain_id() {
    std::random_device random;
    return options_.node.value + "/" + std::to_string((std::uint64_t{random()} << 32U) | random());
  }

  static bool block(channel& to) {
    to.full = true;
    return false;
  }

  /// Reads the rest of a message; a message of too many frames is read to its end and dropped.
  bool read_frames(zmq::socket_t& from, bool more) {
    frames_.clear();
    bool fits = true;
    while (more) {
      zmq::message_t frame;
      if (!from.recv(frame, zmq::recv_flags::dontwait))
        break;
      more = frame.more();
      if (frames_.size() < options_.most_frames)
        frames_.push_back(std::move(frame));
      else
        fits = false;
    }
    if (!fits)
      link_counters::add(counters_.malformed);
    return fits;
  }

  /// The frames as views; those behind the first can be kept.
  std::span<const received_frame> views() {
    views_.clear();
    for (auto& frame : frames_) {
      if (views_.empty()) {
        views_.push_back({{static_cast<const std::byte*>(frame.data()), frame.size()}, nullptr});
        continue;
      }
      auto kept = std::make_shared<zmq::message_t>(std::move(frame));
      const std::span bytes(static_cast<const std::byte*>(kept->data()), kept->size());
      views_.push_back({bytes, std::move(kept)});
    }
    return views_;
  }

  /// Whose key a message came with, as of now: a key that was taken off the list is nobody's, though its
  /// connection may still be there.
  std::string owner_of(zmq::message_t& frame) {
    const char* const user = zmq_msg_gets(frame.handle(), "User-Id");
    if (user == nullptr)
      return {};
    auto known = users_.find(user);
    if (known == users_.end()) {
      const auto key = from_z85(user);
      if (!key)
        return {};
      if (users_.size() >= 1024)
        users_.clear();
      known = users_.emplace(user, *key).first;
    }
    const auto* const node = allowed_.find(known->second);
    return node == nullptr ? std::string{} : node->value;
  }

  bool from_router(zmq::socket_t& router, lane which, int portion, message_sink& sink) {
    bool any = false;
    for (int i = 0; i < portion; ++i) {
      zmq::message_t id;
      if (!router.recv(id, zmq::recv_flags::dontwait))
        break;
      any = true;
      if (!read_frames(router, id.more()))
        continue;
      if (!options_.keys)
        user_ = text(id).substr(0, text(id).find('/'));
      else
        user_ = frames_.empty() ? std::string{} : owner_of(frames_.front());
      sink.on_message(which, user_, {which, std::string(text(id))}, views());
    }
    return any;
  }

  bool from_channel(channel_id id, message_sink& sink) {
    bool any = false;
    for (int i = 0; i < letters_portion; ++i) {
      const auto found = channels_.find(id); // the sink may have closed it
      if (found == channels_.end())
        break;
      auto& from = found->second;
      zmq::message_t first;
      if (!from.socket.recv(first, zmq::recv_flags::dontwait))
        break;
      any = true;
      if (from.which == lane::events) {
        if (!read_frames(from.socket, first.more()))
          continue;
        sink.on_event_message(id, text(first), views());
      } else {
        const bool fits = read_frames(from.socket, first.more());
        frames_.insert(frames_.begin(), std::move(first));
        if (fits)
          sink.on_channel_message(id, views());
      }
    }
    return any;
  }

  /// Says who may connect: rfc.zeromq.org/spec/27.
  void answer_zap() {
    for (;;) {
      zmq::message_t first;
      if (!zap_.recv(first, zmq::recv_flags::dontwait))
        return;
      const bool fits = read_frames(zap_, first.more());
      frames_.insert(frames_.begin(), std::move(first));
      std::vector<std::string_view> asked;
      for (const auto& frame : frames_)
        asked.push_back(text(frame));
      const auto verdict = fits ? judge(asked, options_.keys ? &allowed_ : nullptr) : zap_verdict{};
      if (!verdict.accepted)
        link_counters::add(counters_.unknown_keys);
      const auto reply = zap_reply(asked, verdict);
      for (std::size_t i = 0; i < reply.size(); ++i)
        zap_.send(
          zmq::buffer(reply[i]), i + 1 < reply.size() ? zmq::send_flags::sndmore : zmq::send_flags::none);
    }
  }

  void count_handshakes() {
    for (auto& monitor : monitors_)
      for (;;) {
        zmq::message_t first;
        if (!monitor.recv(first, zmq::recv_flags::dontwait))
          break;
        read_frames(monitor, first.more());
        std::uint16_t event = 0;
        if (first.size() >= sizeof event)
          std::memcpy(&event, first.data(), sizeof event);
        // ZeroMQ does not report every handshake that fails: those that do not succeed can be counted.
        link_counters::add(event == ZMQ_EVENT_ACCEPTED ? counters_.connections : counters_.handshakes);
      }
  }

  void gather() {
    items_.clear();
    polled_.clear();
    items_.push_back({nullptr, waker_.descriptor(), ZMQ_POLLIN, 0});
    for (auto* socket : {&letters_, &bulk_, &zap_, &monitors_[0], &monitors_[1], &monitors_[2]})
      items_.push_back({socket->handle(), 0, ZMQ_POLLIN, 0});
    for (auto& [id, one] : channels_) {
      items_.push_back({one.socket.handle(), 0, ZMQ_POLLIN, 0});
      polled_.push_back(id);
    }
    changed_ = false;
  }

  socket_options options_;
  link_counters& counters_;
  allow_list allowed_;
  waker waker_;
  zmq::context_t context_;
  zmq::socket_t zap_;
  zmq::socket_t letters_;
  zmq::socket_t bulk_;
  zmq::socket_t events_;
  std::array<zmq::socket_t, 3> monitors_;
  std::unordered_map<channel_id, channel> channels_;
  bound_endpoints bound_;
  std::vector<std::string> topics_;
  std::chrono::milliseconds linger_{0};
  channel_id last_channel_ = 0;
  bool changed_ = true;
  // Kept between calls so that they need no memory each time.
  std::vector<zmq::pollitem_t> items_;
  std::vector<channel_id> polled_; ///< whose sockets stand behind the fixed items
  std::vector<channel_id> ids_;
  bool others_ready_ = true;
  unsigned rounds_ = 0;
  std::vector<zmq::message_t> frames_;
  std::vector<received_frame> views_;
  std::string user_;
  std::unordered_map<std::string, public_key> users_;
};

} // namespace

result<std::unique_ptr<zmq_transport>> zmq_transport::open(socket_options options, link_counters& counters) {
  if (!options.keys)
    for (const auto* endpoint : {&options.letters, &options.bulk, &options.events})
      if (!is_loopback(*endpoint))
        return fail(errc::permission, "sockets without keys are for loopback only, and " + *endpoint
                                        + " is not: make keys with godwit keys new");
  if (options.keys && zmq_has("curve") == 0)
    return fail(errc::unsupported, "this machine's libzmq has no CURVE");
  try {
    auto made = std::make_unique<sockets>(std::move(options), counters);
    made->bind();
    return made;
  } catch (const zmq::error_t& failure) {
    const auto code =
      failure.num() == EINVAL || failure.num() == EPROTONOSUPPORT ? errc::invalid_argument : errc::io;
    return fail(code, std::string("the link's sockets cannot be bound: ") + failure.what());
  }
}

bool is_loopback(std::string_view endpoint) {
  constexpr std::string_view tcp = "tcp://";
  if (!endpoint.starts_with(tcp))
    return false;
  endpoint.remove_prefix(tcp.size());
  if (endpoint.starts_with("[::1]:"))
    return true;
  const auto host = endpoint.substr(0, endpoint.rfind(':'));
  if (!host.starts_with("127."))
    return false;
  // A name could begin with 127. too.
  return std::ranges::all_of(host, [](char c) { return c == '.' || (c >= '0' && c <= '9'); });
}

} // namespace godwit::link
