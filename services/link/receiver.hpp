#pragma once

#include "services/link/frame.hpp"
#include "services/link/transport.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace godwit::link {

/// A letter that came. Everything in it is a view, valid during the call that hands it over. The header is
/// checked, the words are not: letter<T>::parse does that.
struct incoming {
  std::string_view from; ///< the node, by its key
  lane which = lane::letters;
  frame_header header;
  std::span<const std::byte> words;
  std::span<const received_frame> attachments;
};

/// Whom an answer goes to. May be kept, and used from any thread, once.
struct reply_token {
  std::string node;
  std::uint64_t session = 0; ///< its conversation; an answer into a later one is dropped
  std::uint64_t correlation = 0;
};

/// What the producer of a stream may still send; shared with the link's thread.
struct stream_credit {
  std::atomic<std::uint64_t> items{0};
  std::atomic<end_cause> ended{end_cause::none}; ///< the consumer's end, or the peer's
  std::atomic<bool> open{true};

  /// Takes one of the credit. @returns false if there is none, or the stream has ended
  bool take() {
    auto have = items.load(std::memory_order_relaxed);
    while (open.load(std::memory_order_acquire) && have > 0)
      if (items.compare_exchange_weak(have, have - 1, std::memory_order_acq_rel))
        return true;
    return false;
  }
};

/// A peer has come or gone.
struct peer_change {
  std::string_view node;
  std::uint64_t incarnation = 0;
  bool up = false;
  end_cause cause = end_cause::none; ///< why it has gone
  std::string_view why;              ///< the same as words for a log
};

/// Takes what comes from other nodes, on the link's thread: nothing in it may wait.
class receiver {
 public:
  virtual ~receiver() = default;

  virtual void on_letter(const incoming& mail) = 0;
  /// To be answered by link::reply or link::fail, in this call or later.
  virtual void on_request(const incoming& mail, const reply_token& token) = 0;
  /// Nobody waits for that answer any more.
  virtual void on_cancel(const reply_token& /*token*/, end_cause /*cause*/) {}
  /// A peer asks for a stream. @returns whether it will get one; false is answered `not_found`
  virtual bool on_stream(const incoming& /*mail*/, const reply_token& /*token*/,
    const std::shared_ptr<stream_credit>& /*credit*/) {
    return false;
  }
  /// The consumer of a stream has given credit, or has ended it (see stream_credit).
  virtual void on_credit(const reply_token& /*token*/, const std::shared_ptr<stream_credit>& /*credit*/) {}
  /// An event of a topic that this node has subscribed to.
  virtual void on_event(const incoming& /*mail*/) {}
  /// So many events of a topic were lost: ask the publisher for what they said.
  virtual void on_events_missed(
    std::string_view /*from*/, std::string_view /*topic*/, std::uint64_t /*count*/) {}
  /// `released` or `gone`: references to actors.
  virtual void on_reference(const incoming& /*mail*/) {}
  virtual void on_peer(const peer_change& /*change*/) {}
};

} // namespace godwit::link
