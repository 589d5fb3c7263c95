// ZeroMQ stays in this file, in zmq_frames.hpp and zmq_setup.*, and in the keys'.
#include "services/link/zmq_transport.hpp"

#include "messages/check.hpp"
#include "services/link/waker.hpp"
#include "services/link/zap.hpp"
#include "services/link/zmq_frames.hpp"
#include "services/link/zmq_setup.hpp"

#include <zmq.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <random>
#include <unordered_map>
#include <vector>

namespace godwit::link {

namespace {

using namespace detail;

constexpr int letters_portion = 256;
constexpr int bulk_portion = 8;

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
    letters_ = server_socket(context_, options_, lane::letters);
    bulk_ = server_socket(context_, options_, lane::bulk);
    events_ = server_socket(context_, options_, lane::events);
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
    const auto& endpoint = which == lane::letters ? whom.letters
                           : which == lane::bulk  ? whom.bulk
                                                  : whom.events;
    const auto id = ++last_channel_;
    if (options_.keys ? !whom.key : !is_loopback(endpoint))
      return id;
    try {
      auto socket = client_socket(context_, options_, which, endpoint, whom.key);
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
