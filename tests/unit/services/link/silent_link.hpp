#pragma once

// A link without a network: remembers what it is told to send.

#include "services/link/mesh_link.hpp"

#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace godwit::link {

/// The incarnation of a link, apart: without `override` it is one whether links have one or not.
class one_incarnation : public mesh_link {
 public:
  virtual std::uint64_t incarnation() const { return 1; }
  virtual void rise(std::uint64_t /*incarnation*/) {}
};

class silent_link final : public one_incarnation {
 public:
  struct sent {
    actor_address to;
    std::uint64_t type = 0;
    std::vector<std::byte> extras;
    std::uint64_t number = 0; ///< of a request
    std::chrono::microseconds within{0};
    trace_context trace;
  };
  struct referred {
    std::string node;
    frame_kind kind = frame_kind::gone;
    std::uint64_t actor = 0;
  };
  struct ended {
    std::uint64_t number = 0;
    end_cause cause = end_cause::none;
    bool operator==(const ended&) const = default;
  };

  template <class T>
  std::vector<T> get(std::vector<T> silent_link::*what) {
    const std::lock_guard lock(mutex_);
    return this->*what;
  }
  /// Ends a request as the network would.
  void answer(std::size_t which, const result<incoming>& how) {
    answered done;
    {
      const std::lock_guard lock(mutex_);
      done = std::exchange(waiting_.at(which), nullptr);
    }
    if (done)
      done(how);
  }
  /// Forgets what was sent.
  void clear() {
    const std::lock_guard lock(mutex_);
    letters.clear();
    references.clear();
  }

  std::vector<sent> letters;
  std::vector<sent> requests;
  std::vector<ended> cancels;
  std::vector<referred> references;
  std::vector<errc> failures;
  std::vector<trace_context> replies;
  std::vector<std::string> overloaded;

  const node_name& self() const override { return name_; }
  const bound_endpoints& bound() const override { return bound_; }
  const link_counters& counters() const override { return counters_; }
  void add_peer(peer_record) override {}
  void remove_peer(node_name, end_cause) override {}
  std::vector<peer_status> members() override { return {}; }
  std::vector<peer_status> snapshot() const override { return {}; }

  void send(const actor_address& to, const message& what, std::chrono::microseconds within) override {
    const std::lock_guard lock(mutex_);
    letters.push_back({to, what.type, {what.extras.begin(), what.extras.end()}, 0, within, what.trace});
  }
  std::uint64_t request(
    const actor_address& to, const message& what, std::chrono::microseconds within, answered done) override {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(done));
    requests.push_back(
      {to, what.type, {what.extras.begin(), what.extras.end()}, waiting_.size(), within, what.trace});
    return waiting_.size();
  }
  void cancel(std::uint64_t request, end_cause cause) override {
    {
      const std::lock_guard lock(mutex_);
      cancels.push_back({request, cause});
    }
    answer(request - 1, godwit::fail(error_of(cause), "ended"));
  }
  void reply(const reply_token&, const message& what) override {
    const std::lock_guard lock(mutex_);
    replies.push_back(what.trace);
  }
  void fail(const reply_token&, const error& why) override {
    const std::lock_guard lock(mutex_);
    failures.push_back(why.code);
  }
  void refer(
    const std::string& node, frame_kind kind, std::uint64_t actor, std::uint64_t, end_cause) override {
    const std::lock_guard lock(mutex_);
    references.push_back({node, kind, actor});
  }
  void overload(const std::string& node) override {
    const std::lock_guard lock(mutex_);
    overloaded.push_back(node);
  }
  std::uint64_t open_stream(const actor_address&, const message&, std::uint64_t, stream_sink) override {
    return 0;
  }
  void grant(std::uint64_t, std::uint64_t) override {}
  void end_stream(std::uint64_t, end_cause) override {}
  bool stream_item(const reply_token&, stream_credit&, const message&) override { return false; }
  void stream_end(const reply_token&, stream_credit&, const std::optional<error>&) override {}
  void publish(const std::string&, const message&) override {}
  void subscribe(const std::string&) override {}
  void stop(end_cause, std::chrono::milliseconds) override {}

 private:
  node_name name_{"here"};
  bound_endpoints bound_;
  link_counters counters_;
  std::vector<answered> waiting_;
  std::mutex mutex_;
};

} // namespace godwit::link
