#pragma once

// The node in front: a gateway and a router over workers of other nodes, and clients of it.

#include "actors/generation/answer_text.hpp"
#include "actors/router/router.hpp"
#include "messages/text.hpp"
#include "services/gateway/gateway.hpp"
#include "tests/support/toy_generation.hpp"
#include "tests/support/toy_tokenizer.hpp"
#include "tests/unit/services/daemon/churn/star.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>
#include <nlohmann/json.hpp>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace godwit {

/// A completion that a client asks for.
struct star_request {
  std::uint64_t number = 0;
  std::uint64_t seed = 0;
  std::uint32_t most = 20;
  std::uint32_t choices = 1;
  bool stream = true;
  bool stop = false; ///< ends at " STOP"

  std::string words() const { return "request " + std::to_string(number); }
  std::string body() const {
    nlohmann::json out{{"model", "m"}, {"messages", {{{"role", "user"}, {"content", words()}}}},
      {"seed", seed}, {"max_tokens", most}, {"n", choices}, {"stream", stream}};
    if (stop)
      out["stop"] = " STOP";
    return out.dump();
  }

  /// What the model says, from its definition.
  std::string answer(std::uint32_t choice) const {
    const auto text = std::make_shared<toy_text>();
    toy_generation whole;
    whole.tokens = text->encode(toy_chat({{"user", words()}}));
    whole.left = most;
    whole.credit = most;
    whole.seed = seed + choice;
    answer_text shown(text, stop ? std::vector<std::string>{" STOP"} : std::vector<std::string>{});
    std::string out;
    const auto step = whole.go_on(most);
    for (const auto token : step->tokens)
      out += shown.push(token);
    return out + shown.finish();
  }
};

/// What came of it. Any thread.
class star_answer {
 public:
  explicit star_answer(star_request request) : asked(std::move(request)) {}
  const star_request asked;

  bool over() const { return over_; }
  void leave() {
    std::function<void()> told;
    {
      const std::lock_guard lock(mutex_);
      gone_ = true;
      told = std::exchange(on_leave_, nullptr);
    }
    if (told)
      told();
  }
  bool gone() const {
    const std::lock_guard lock(mutex_);
    return gone_;
  }

  /// What is wrong with how it ended; empty: nothing. `code` is that of the error that was told, if one was.
  std::string verdict(std::string& code) const {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> texts(asked.choices);
    bool whole = false;
    if (asked.stream && status_ == 200) {
      if (!ended_)
        return "a stream was cut off";
      for (std::size_t at = 0; (at = bytes_.find("data: ", at)) != std::string::npos;) {
        const auto end = bytes_.find("\n\n", at += 6);
        const auto data = bytes_.substr(at, end - at);
        if (whole)
          return "something follows [DONE]";
        if ((whole = data == "[DONE]"))
          continue;
        const auto event = nlohmann::json::parse(data);
        if (event.contains("error"))
          code = event["error"]["code"];
        else
          for (const auto& choice : event["choices"])
            texts[choice["index"]] += choice["delta"].value("content", "");
      }
    } else if (status_ == 0) {
      return "it was dropped without an answer";
    } else {
      const auto body = nlohmann::json::parse(bytes_);
      whole = status_ == 200;
      if (!whole)
        code = body["error"]["code"];
      else
        for (const auto& choice : body["choices"])
          texts[choice["index"]] = choice["message"]["content"];
    }
    for (std::uint32_t i = 0; i < asked.choices; ++i) {
      const auto right = asked.answer(i);
      if (whole ? texts[i] != right : !right.starts_with(texts[i]))
        return "choice " + std::to_string(i) + " says \"" + texts[i] + "\" and not \"" + right + "\"";
    }
    static const std::set<std::string> stated{
      "unavailable", "peer_lost", "draining", "overloaded", "deadline"};
    if (!whole && !stated.contains(code))
      return "it failed with \"" + code + "\"";
    return {};
  }

 private:
  friend class star_exchange;

  mutable std::mutex mutex_;
  std::atomic<bool> over_{false};
  int status_ = 0;
  std::string bytes_;
  bool ended_ = false;
  bool gone_ = false;
  std::function<void()> on_leave_;
};

/// A connection without a socket.
class star_exchange final : public http::exchange {
 public:
  explicit star_exchange(std::shared_ptr<star_answer> answer) : answer_(std::move(answer)) {
    request_.method = "POST";
    request_.path = "/v1/chat/completions";
    request_.fields = {{"Content-Type", "application/json"}};
    request_.body = answer_->asked.body();
  }
  ~star_exchange() override { answer_->over_ = true; }

  const http::request& request() const override { return request_; }
  void respond(http::response answer) override {
    const std::lock_guard lock(answer_->mutex_);
    answer_->status_ = answer.status;
    answer_->bytes_ = std::move(answer.body);
    answer_->ended_ = true;
  }
  void begin(int status, http::headers) override {
    const std::lock_guard lock(answer_->mutex_);
    answer_->status_ = status;
  }
  void write(std::string bytes, written done) override {
    bool there = false;
    {
      const std::lock_guard lock(answer_->mutex_);
      there = !answer_->gone_;
      if (there)
        answer_->bytes_ += bytes;
    }
    done(there);
  }
  void end() override {
    const std::lock_guard lock(answer_->mutex_);
    answer_->ended_ = true;
  }
  void on_leave(std::function<void()> callback) override {
    {
      const std::lock_guard lock(answer_->mutex_);
      if (!answer_->gone_) {
        answer_->on_leave_ = std::move(callback);
        return;
      }
    }
    callback();
  }

 private:
  http::request request_;
  std::shared_ptr<star_answer> answer_;
};

/// The node itself.
class star_hub {
 public:
  explicit star_hub(const gateway_options& options = {}) {
    config_.set("scheduler.max-threads", 2);
    system_ = std::make_unique<caf::actor_system>(config_);
    router_ = spawn_router(*system_, "m", {}, {});
    tokenizer_ = system_->spawn(toy_tokenizer, std::make_shared<const toy_text>());
    auto made = mesh::start(*system_, star_node("hub", {"gateway", "session", "router", "tokenizer"}, nodes));
    if (!made)
      throw std::runtime_error(made.error().message);
    mesh_ = std::move(*made);
    node_ = spawn_star_status(
      *system_, "hub", {"gateway", "session", "router", "tokenizer"}, 0, [] { return false; });
    mesh_->offer("node", caf::actor_cast<node_actor>(node_));
    mesh_->watch_workers([router = router_](const remote_worker& worker) {
      worker_load load;
      load.name = worker.node.value;
      load.capacity = worker.capacity;
      caf::anon_send(router, join_atom::value, worker_join(load), worker.prefill, worker.decode);
    });
    gateway_config front;
    front.router = router_;
    front.tokenizer = tokenizer_;
    front.model = {.id = "m",
      .fingerprint = "0123456789abcdef0123456789abcdef",
      .context = 512,
      .created = 0,
      .text = std::make_shared<toy_text>()};
    front.next_request = [next = std::make_shared<std::atomic<request_id>>(0)] { return ++*next; };
    front.random = [next = std::make_shared<std::atomic<std::uint64_t>>(0)] { return ++*next; };
    front.now = [] { return std::int64_t{0}; };
    front.options = options;
    gateway_ = make_gateway(*system_, std::move(front));
  }
  ~star_hub() {
    gateway_.reset();
    caf::anon_send(router_, stop_atom::value);
    caf::anon_send(tokenizer_, stop_atom::value);
    caf::anon_send(node_, stop_atom::value);
    mesh_->stop(link::end_cause::draining, std::chrono::milliseconds(100));
  }
  star_hub(const star_hub&) = delete;
  star_hub& operator=(const star_hub&) = delete;

  std::shared_ptr<star_answer> ask(const star_request& request) {
    auto answer = std::make_shared<star_answer>(request);
    gateway_->handle(std::make_shared<star_exchange>(answer));
    return answer;
  }

  mesh& of() const { return *mesh_; }
  std::size_t actors() const { return system_->registry().running(); }
  /// A gauge of the router.
  double gauge(const std::string& name) const {
    caf::scoped_actor self{*system_};
    double out = -1;
    self->request(router_actor(router_), std::chrono::seconds(20), status_atom::value)
      .receive(
        [&](const letter<schema::ActorStatus>& status) {
          for (const auto each : status.read().getGauges())
            if (text_of(each.getName()) == name)
              out = each.getValue();
        },
        [](const caf::error&) {});
    return out;
  }

  const std::shared_ptr<hub_registry> nodes = std::make_shared<hub_registry>();

 private:
  caf::actor_system_config config_;
  std::unique_ptr<caf::actor_system> system_;
  router_behaviour router_;
  tokenizer_actor tokenizer_;
  caf::actor node_;
  std::unique_ptr<mesh> mesh_;
  std::shared_ptr<gateway> gateway_;
};

} // namespace godwit
