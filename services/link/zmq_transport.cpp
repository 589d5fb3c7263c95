// ZeroMQ stays in this file and in those that it includes of this folder, and in the keys'.
#include "services/link/zmq_transport.hpp"

#include "messages/check.hpp"
#include "services/link/byte_window.hpp"
#include "services/link/doorkeeper.hpp"
#include "services/link/frame_reader.hpp"
#include "services/link/socket_watch.hpp"
#include "services/link/waker.hpp"
#include "services/link/zmq_frames.hpp"
#include "services/link/zmq_setup.hpp"

#include <zmq.hpp>

#include <algorithm>
#include <random>
#include <unordered_map>
#include <utility>
#include <vector>

namespace godwit::link {

namespace {

using namespace detail;

constexpr int letters_portion = 256;
constexpr int bulk_portion = 8;

// What the watch tells of beside channels, which are known by their numbers.
constexpr socket_watch::mark of_waker = std::uint64_t{1} << 32U;
constexpr socket_watch::mark of_letters = of_waker + 1;
constexpr socket_watch::mark of_bulk = of_waker + 2;
constexpr socket_watch::mark of_door = of_waker + 3;

/// A socket of this node's own.
struct entrance {
  lane which;
  int portion; ///< messages that are read in one go
  zmq::socket_t socket;
  /// It has to be read. At first: nobody is told of what comes by a way that was not read yet.
  bool ready = true;
};

struct channel {
  lane which;
  zmq::socket_t socket;
  std::shared_ptr<byte_window> window;
  bool full = false;  ///< the last message found no place
  bool used = false;  ///< is among those that are looked at before the next wait
  bool ready = false; ///< is among those that are read
};

class sockets final : public zmq_transport {
 public:
  sockets(socket_options options, link_counters& counters)
    : options_(std::move(options)), context_(2), reader_(options_.most_frames, counters),
      door_(limited(context_), options_.most_frames, counters) {}

  void bind() {
    letters_.socket = server_socket(context_, options_, lane::letters);
    bulk_.socket = server_socket(context_, options_, lane::bulk);
    events_ = server_socket(context_, options_, lane::events);
    bound_.letters = listen(letters_.socket, options_.letters);
    bound_.bulk = listen(bulk_.socket, options_.bulk);
    bound_.events = listen(events_, options_.events);
    bool watched = watch_.add(waker_.descriptor(), of_waker);
    watched = watch_.add(letters_.socket.get(zmq::sockopt::fd), of_letters) && watched;
    watched = watch_.add(bulk_.socket.get(zmq::sockopt::fd), of_bulk) && watched;
    for (auto* socket : door_.sockets())
      watched = watch_.add(socket->get(zmq::sockopt::fd), of_door) && watched;
    GODWIT_CHECK(watched);
  }

  ~sockets() override {
    for (auto* socket : {&letters_.socket, &bulk_.socket, &events_})
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
      if (!watch_.add(socket.get(zmq::sockopt::fd), id))
        return id;
      auto window = std::make_shared<byte_window>(
        which == lane::bulk ? options_.bulk_window : options_.letter_window, waker_);
      use(id, channels_.emplace(id, channel{which, std::move(socket), std::move(window)}).first->second);
    } catch (const zmq::error_t&) {
      // An endpoint that is none, or no descriptors: a channel that leads nowhere.
    }
    return id;
  }

  void hang_up(channel_id id) override {
    const auto found = channels_.find(id);
    if (found == channels_.end())
      return;
    auto& socket = found->second.socket;
    watch_.remove(socket.get(zmq::sockopt::fd));
    if (linger_.count() > 0)
      socket.set(zmq::sockopt::linger, static_cast<int>(linger_.count()));
    channels_.erase(found);
  }

  bool send(channel_id id, parcel& what) override {
    const auto found = channels_.find(id);
    if (found == channels_.end() || found->second.which == lane::events)
      return false;
    auto& to = found->second;
    if (to.full || to.window->full())
      return false;
    use(id, to);
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
        if (!to.socket.send(head_frame(std::move(what.head), to.window), flags))
          return block(to);
      }
      // Once the first frame was taken, the others of the message are.
      for (std::size_t i = 0; i < what.attachments.size(); ++i)
        to.socket.send(attached_frame(std::move(what.attachments[i]), to.window),
          i + 1 < what.attachments.size() ? zmq::send_flags::sndmore : zmq::send_flags::none);
      return true;
    } catch (const zmq::error_t&) {
      return block(to);
    }
  }

  bool answer(const return_path& path, parcel what) override {
    auto& from = path.which == lane::bulk ? bulk_ : letters_;
    from.ready = true; // see use()
    try {
      if (!from.socket.send(zmq::buffer(path.id), zmq::send_flags::dontwait | zmq::send_flags::sndmore))
        return false;
      return from.socket.send(head_frame(std::move(what.head)), zmq::send_flags::dontwait).has_value();
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
      if (one.which == lane::events) {
        one.socket.set(zmq::sockopt::subscribe, topics_.back());
        use(id, one);
      }
  }

  // --- in ---

  bool receive(message_sink& sink) override {
    // Asking a socket costs a call of the system's: they are read when a wait has told of them.
    bool any = from_router(letters_, sink);
    any = from_router(bulk_, sink) || any;
    if (std::exchange(door_ready_, false))
      door_.serve(options_.keys ? &allowed_ : nullptr);
    ids_.swap(ready_);
    for (const auto id : ids_)
      any = from_channel(id, sink) || any;
    ids_.clear();
    return any;
  }

  void wait(moment time, std::unique_lock<std::mutex>& turn) override {
    const auto longest = settle() ? moment(0) : std::min(time, moment(60'000'000));
    turn.unlock();
    const auto marks = watch_.wait(std::chrono::ceil<std::chrono::milliseconds>(longest));
    turn.lock();
    for (const auto mark : marks) {
      if (mark == of_waker)
        waker_.settle();
      else if (mark == of_door)
        door_ready_ = true;
      else if (mark == of_letters)
        letters_.ready = true;
      else if (mark == of_bulk)
        bulk_.ready = true;
      else
        look(static_cast<channel_id>(mark));
    }
  }

  bool settle() override {
    // The watch would not tell of what using these has brought to light already.
    ids_.swap(used_);
    for (const auto id : ids_)
      look(id);
    ids_.clear();
    return letters_.ready || bulk_.ready || door_ready_ || !ready_.empty();
  }

  void wake() override { waker_.wake(); }

  void linger(std::chrono::milliseconds time) override {
    linger_ = time;
    for (auto* socket : {&letters_.socket, &bulk_.socket, &events_})
      socket->set(zmq::sockopt::linger, static_cast<int>(time.count()));
  }

 private:
  static zmq::context_t& limited(zmq::context_t& context) {
    context.set(zmq::ctxopt::max_sockets, 8192);
    context.set(zmq::ctxopt::blocky, 0);
    return context;
  }

  std::string listen(zmq::socket_t& socket, const std::string& endpoint) {
    door_.watch(socket);
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

  /// The socket may have carried out commands, of which the watch does not tell any more.
  void use(channel_id id, channel& one) {
    if (!std::exchange(one.used, true))
      used_.push_back(id);
  }

  /// Asks a socket what it has; behind this the watch tells of what comes.
  void look(channel_id id) {
    const auto found = channels_.find(id);
    if (found == channels_.end())
      return;
    auto& one = found->second;
    one.used = false;
    const auto has = one.socket.get(zmq::sockopt::events);
    if ((has & ZMQ_POLLOUT) != 0)
      one.full = false;
    if ((has & ZMQ_POLLIN) != 0 && !std::exchange(one.ready, true))
      ready_.push_back(id);
  }

  bool from_router(entrance& from, message_sink& sink) {
    bool any = false;
    for (int i = 0; from.ready && i < from.portion; ++i) {
      zmq::message_t id;
      if (!from.socket.recv(id, zmq::recv_flags::dontwait)) {
        from.ready = false; // and the watch tells of what comes behind this
        break;
      }
      any = true;
      if (!reader_.read(from.socket, id.more()))
        continue;
      if (options_.keys)
        user_ = reader_.owner(allowed_);
      else
        user_.assign(text(id).substr(0, text(id).find('/')));
      path_.which = from.which;
      path_.id.assign(text(id));
      sink.on_message(from.which, user_, path_, reader_.views());
    }
    return any;
  }

  bool from_channel(channel_id id, message_sink& sink) {
    bool any = false;
    for (int i = 0; i < letters_portion; ++i) {
      const auto found = channels_.find(id); // the sink may have closed it
      if (found == channels_.end())
        return any;
      auto& from = found->second;
      from.ready = false;
      zmq::message_t first;
      use(id, from);
      if (!from.socket.recv(first, zmq::recv_flags::dontwait))
        return any;
      any = true;
      if (from.which == lane::events) {
        if (reader_.read(from.socket, first.more()))
          sink.on_event_message(id, text(first), reader_.views());
      } else if (reader_.read_behind(from.socket, std::move(first))) {
        sink.on_channel_message(id, reader_.views());
      }
    }
    return any; // a look before the next wait finds what is left
  }

  socket_options options_;
  allow_list allowed_;
  waker waker_;
  zmq::context_t context_;
  frame_reader reader_;
  doorkeeper door_;
  entrance letters_{lane::letters, letters_portion, {}};
  entrance bulk_{lane::bulk, bulk_portion, {}};
  zmq::socket_t events_;
  std::unordered_map<channel_id, channel> channels_;
  socket_watch watch_;
  bound_endpoints bound_;
  std::vector<std::string> topics_;
  std::chrono::milliseconds linger_{0};
  channel_id last_channel_ = 0;
  bool door_ready_ = true; ///< the doorkeeper has something to do; at first as with entrances
  std::vector<channel_id> used_;
  std::vector<channel_id> ready_;
  // Kept between calls so that they need no memory each time.
  std::vector<channel_id> ids_;
  std::string user_;
  return_path path_;
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

} // namespace godwit::link
