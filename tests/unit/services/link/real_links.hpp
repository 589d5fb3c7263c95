#pragma once

// Links with real sockets on loopback, and a receiver that remembers.

#include "messages/schemas/tokenizer.capnp.h"
#include "services/link/mesh_link.hpp"
#include "tests/support/eventually.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace godwit::link {

/// Waits for something that another thread does. @returns whether it came true within ten seconds
inline bool eventually(const std::function<bool()>& what) {
  return test::eventually(std::chrono::seconds(10), what);
}

inline letter<schema::EncodeRequest> text_letter(const std::string& text) {
  return letter<schema::EncodeRequest>::make([&](schema::EncodeRequest::Builder b) {
    b.setText({reinterpret_cast<const capnp::byte*>(text.data()), text.size()});
  });
}

inline std::string text_in(const incoming& mail) {
  const auto read = letter<schema::EncodeRequest>::parse(mail.words);
  if (!read)
    return "malformed";
  const auto data = read->read().getText();
  return {reinterpret_cast<const char*>(data.begin()), data.size()};
}

/// Remembers what came; answers requests with the text they bring, but for those that say "wait".
class recorder : public receiver {
 public:
  void on_letter(const incoming& mail) override {
    if (before)
      before(text_in(mail));
    const std::lock_guard lock(mutex_);
    letters_.push_back(text_in(mail));
    for (const auto& each : mail.attachments)
      attached_.emplace_back(each.bytes.begin(), each.bytes.end());
    lanes_.push_back(mail.which);
  }
  void on_request(const incoming& mail, const reply_token& token) override {
    const auto text = text_in(mail);
    if (text == "wait") {
      const std::lock_guard lock(mutex_);
      waiting_.push_back(token);
      return;
    }
    if (text == "refuse")
      return link->fail(token, {errc::conflict, "a turn is running", "turn", "turn_running"});
    link->reply(token, to_message(text_letter(text)));
  }
  void on_cancel(const reply_token&, end_cause cause) override {
    const std::lock_guard lock(mutex_);
    cancels_.push_back(cause);
  }
  bool on_stream(
    const incoming&, const reply_token& token, const std::shared_ptr<stream_credit>& credit) override {
    const std::lock_guard lock(mutex_);
    token_ = token;
    credit_ = credit;
    return true;
  }
  void on_event(const incoming& mail) override {
    const std::lock_guard lock(mutex_);
    events_.push_back(std::string(mail.header.name) + ":" + text_in(mail));
  }
  void on_peer(const peer_change& change) override {
    const std::lock_guard lock(mutex_);
    changes_.emplace_back(change.up, change.cause);
  }

  template <class T>
  T get(T recorder::*member) {
    const std::lock_guard lock(mutex_);
    return this->*member;
  }

  mesh_link* link = nullptr;
  std::function<void(const std::string&)> before; ///< called with each letter, set before there are any
  std::vector<reply_token> waiting_;              ///< requests that nobody has answered
  std::vector<std::string> letters_;
  std::vector<std::vector<std::byte>> attached_;
  std::vector<lane> lanes_;
  std::vector<end_cause> cancels_;
  std::vector<std::string> events_;
  std::vector<std::pair<bool, end_cause>> changes_;
  reply_token token_;
  std::shared_ptr<stream_credit> credit_;

 private:
  std::mutex mutex_;
};

/// A node of a test.
struct real_node {
  std::shared_ptr<recorder> seen = std::make_shared<recorder>();
  std::optional<node_keys> keys;
  std::unique_ptr<mesh_link> link;

  real_node(const std::string& name, bool curve, const std::function<void(link_options&)>& change = {}) {
    link_options options;
    options.node = node_name(name);
    options.hash_mode = "kv-1";
    if (curve) {
      keys = *make_keys(options.node);
      options.sockets.keys = keys;
    }
    if (change)
      change(options);
    auto made = mesh_link::start(std::move(options), seen);
    if (!made)
      throw std::runtime_error(made.error().message);
    link = std::move(*made);
    seen->link = link.get();
  }

  peer_record record() const {
    const auto& at = link->bound();
    return {link->self(), keys ? std::optional(keys->open) : std::nullopt, at.letters, at.bulk, at.events};
  }

  bool up(const std::string& name) const {
    for (const auto& each : link->members())
      if (each.node.value == name)
        return each.state == peer_state::up;
    return false;
  }

  /// Asks another node, and waits.
  result<std::string> ask(const std::string& node, const std::string& text,
    std::chrono::milliseconds within = std::chrono::seconds(10)) const {
    struct answer {
      std::mutex mutex;
      std::optional<result<std::string>> value;
    };
    auto held = std::make_shared<answer>();
    link->request(
      {node, "echo", 0}, to_message(text_letter(text)), within, [held](const result<incoming>& got) {
        const std::lock_guard lock(held->mutex);
        held->value = got ? result<std::string>(text_in(*got)) : result<std::string>(fail(got));
      });
    const auto ready = [&] {
      const std::lock_guard lock(held->mutex);
      return held->value.has_value();
    };
    if (!eventually(ready))
      throw std::runtime_error("a request never ended");
    return *held->value;
  }
};

inline void introduce(const real_node& one, const real_node& other) {
  one.link->add_peer(other.record());
  other.link->add_peer(one.record());
}

} // namespace godwit::link
