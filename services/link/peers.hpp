#pragma once

#include "services/link/counters.hpp"
#include "services/link/hello.hpp"
#include "services/link/outbox.hpp"
#include "services/link/peer_status.hpp"
#include "services/link/transport.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace godwit::link {

/// The pace of membership. A node that is gone is out of use after `beat * misses + grace` at most.
struct peer_options {
  moment beat{500'000};
  unsigned misses = 3;
  moment grace{250'000};       ///< for a beat that is only late
  moment handshake{3'000'000}; ///< from dialling until both sides have greeted
  moment first_pause{100'000}; ///< before dialling again; doubles up to last_pause, each by 50 to 100 % of it
  moment last_pause{5'000'000};
  moment slow{
    5'000'000}; ///< a peer that takes nothing of a lane for so long while something waits loses its place
  outbox_limits letters;
  outbox_limits bulk{.parcels = 1024, .bytes = std::size_t{256} << 20};

  /// Silence after which a peer is suspected.
  moment silence() const { return beat * misses + grace; }
  /// The same for what takes a beat there and one back.
  moment deafness() const { return silence() + beat; }
};

/// Another node as this one sees it.
struct peer {
  peer_record record;
  peer_state state = peer_state::away;

  // This way out: what we say to it.
  channel_id letters = 0;
  channel_id bulk = 0;
  channel_id events = 0;
  std::uint64_t mine = 0; ///< our number of the conversation
  bool welcomed = false;
  moment greet_until{0};
  std::vector<parcel> control; ///< greetings, ahead of letters; few
  outbox letters_out;
  outbox bulk_out;
  moment hole = never; ///< when a letter found no place, or was too late: the order is broken, it has to go
  moment letters_moved{0}; ///< when the lane last took something, or had nothing to take
  moment bulk_moved{0};
  moment bulk_dialled{0};
  bool bulk_greeted = false;    ///< the connection has taken what says whose it is
  std::uint64_t bulk_gone = 0;  ///< messages sent in bulk in this conversation
  std::uint64_t bulk_taken = 0; ///< of those, as its beats say

  // That way in: what it says to us.
  std::uint64_t theirs = 0; ///< its number of the conversation; 0: it has not greeted
  std::uint64_t incarnation = 0;
  return_path back;
  return_path bulk_back;       ///< of its bulk connection; an empty id: it has none
  std::uint64_t bulk_came = 0; ///< messages in bulk of its conversation

  // Liveness. Its beats come back on the connections that we have made, which so are proved.
  moment heard{0};
  moment beat_heard{0}; ///< by our connection for letters
  moment bulk_heard{0}; ///< by that for bulk
  moment echoed{0};     ///< when it last said that it hears us
  moment next_beat{0};
  std::uint64_t beats = 0;
  std::array<moment, 8> beat_times{};
  std::uint64_t echo = 0;        ///< the last of its beats
  moment echo_at{0};             ///< when that came
  std::uint64_t echoed_beat = 0; ///< the last of ours that it has named
  moment round_trip{0};

  // What went over it so far, all conversations together.
  std::uint64_t letters_sent = 0;
  std::uint64_t bytes_sent = 0;
  std::uint64_t letters_received = 0;
  std::uint64_t bytes_received = 0;

  // Back-off.
  unsigned failures = 0;
  moment next_dial{0};
  moment redial = never; ///< while dialing: it has greeted, and should have answered by then
  std::string refusal;   ///< why it, or we, refused the last greeting

  peer(peer_record who, const peer_options& pace)
    : record(std::move(who)), letters_out(pace.letters), bulk_out(pace.bulk) {}

  /// Before the first failure letters wait for the connection; later they fail at once.
  bool takes_letters() const { return hole == never && (state == peer_state::up || failures == 0); }
};

/// Learns what becomes of peers, on the link's thread. `one` is valid during the call.
class peer_observer {
 public:
  virtual ~peer_observer() = default;
  virtual void peer_up(peer& one) = 0;
  /// Its conversation is over, or it could not be reached: whatever waits for it fails now.
  virtual void peer_down(peer& one, end_cause cause, const std::string& why) = 0;
};

/// Who is there: greetings, beats, suspicion, dialling again. Pure: it knows time as an argument and the
/// network as an interface. Each pair of nodes has one connection in each direction; what a node says to
/// another always takes its own, so its order holds. Beats go back on the other's, where nothing waits: a
/// node with much to send is still heard, and each connection is known to be alive.
class peers {
 public:
  /// @param self `session` and `seen` are not used
  /// @param seed of the jitter
  peers(hello self, peer_options pace, transport& network, peer_observer& observer, link_counters& counters,
    std::uint64_t seed);

  /// Knows a node from now on, and dials it; or changes where it is.
  void add(peer_record record, moment now);
  /// Says goodbye to it. @returns whether it was known
  bool remove(const node_name& name, end_cause cause, moment now);
  peer* find(std::string_view name);
  peer* find_channel(channel_id channel);
  const std::map<std::string, std::unique_ptr<peer>, std::less<>>& all() const { return all_; }
  const hello& self() const { return self_; }
  /// Greets with this incarnation at least from now on.
  void rise(std::uint64_t incarnation);

  /// A hello came. @param who sent it, as its key says, or as it calls itself on plain sockets
  void on_hello(std::string_view who, const return_path& path, const hello& said, moment now);
  void on_welcome(peer& one, const hello& said, moment now);
  void on_refused(peer& one, const error& why, moment now);
  /// @param which of our connections it came back on
  void on_beat(peer& one, lane which, const letter<schema::Beat>& beat, moment now);
  /// Something came on its bulk connection. @param counts whether it is a message of the conversation
  static void on_bulk(peer& one, const return_path& path, bool counts);
  void on_bye(peer& one, end_cause cause, moment now);

  /// Queues a message for a peer. Bulk lanes are dialled when they are first needed.
  /// @returns `unavailable`, or `overloaded` when too much waits already
  result<void> post(peer& one, lane which, queued what, moment now);
  /// The same for what nobody could be told of if it found no place. Then the peer is lost: it would miss one
  /// of those whose order is promised.
  void must_post(peer& one, lane which, queued what, moment now);
  /// Whether what is posted for a peer now leaves with its next flush, as far as the peer goes: it is up, and
  /// nothing waits before it.
  static bool ready(const peer& one, lane which);
  /// Something for the peer was lost while it was there: it loses its place with the next tick(), and is
  /// told.
  void overload(peer& one, moment now);
  /// Sends what can be sent now. @returns whether something still waits for the network
  bool flush(peer& one, moment now);

  /// Does what is due. When this thread was stopped for longer than others wait for it, they have given this
  /// node up: it takes a new incarnation and begins again.
  void tick(moment now);
  /// When tick() has something to do.
  moment due() const { return due_; }

  /// Says goodbye to everybody.
  void close(end_cause cause, moment now);

 private:
  void dial(peer& one, moment now);
  void greet(peer& one);
  void refuse(const return_path& path, peer* one, errc code, std::string why);
  void come_up(peer& one, moment now);
  void lose(peer& one, end_cause cause, const std::string& why, moment now);
  void hang_up(peer& one);
  void say_bye(peer& one, end_cause cause);
  void give_up(peer& one, const std::string& why, moment now);
  void clear_out(peer& one);
  void forget_bulk(peer& one);
  void dial_bulk(peer& one, moment now);
  /// @returns whether its bulk connection knows whose it is
  bool greet_bulk(peer& one, moment now);
  void redial_bulk(peer& one, moment now);
  /// Since when its bulk connection is dead, if nothing comes until then.
  moment bulk_dead(const peer& one) const;
  void stamp(parcel& what) const;
  moment next_beats(moment now);
  void beat(peer& one, moment now);
  void check(peer& one, moment now);
  moment due_of(const peer& one) const;
  moment pause(unsigned failures);
  void send_lane(peer& one, lane which, moment now);
  std::uint64_t random();

  hello self_;
  peer_options pace_;
  transport& network_;
  peer_observer& observer_;
  link_counters& counters_;
  std::uint64_t random_;
  std::uint64_t last_session_;
  std::map<std::string, std::unique_ptr<peer>, std::less<>> all_;
  moment due_ = never;
  moment beats_at_{0}; ///< the next beats, of all peers
  bool closed_ = false;
};

} // namespace godwit::link
