#pragma once

#include "actors/device/same_thread.hpp"
#include "actors/trace/trace_scope.hpp"
#include "services/daemon/node_actors.hpp"
#include "services/daemon/node_mesh.hpp"
#include "services/http/server.hpp"
#include "tests/support/journal_over_memory.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/tiny_llama.hpp"
#include "tests/support/tiny_vocabulary.hpp"
#include "tests/unit/services/http/raw_client.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>

namespace godwit::test {

/// Faults that a test sets off.
struct node_faults {
  std::atomic<int> steps_left{-1}; ///< steps of the first model before its device dies; negative: never
  std::atomic<bool> slow{false};   ///< steps of the first model take a while
  std::atomic<bool> list{false};   ///< the next listing of the journal kills who asks for it
  std::atomic<int> hold_in{-1};    ///< steps of the first model until one waits; negative: none does
  std::atomic<bool> held{false};   ///< a step waits until this is false again
};

/// A file of a random model with a byte-level vocabulary.
inline void write_tiny_model(const std::filesystem::path& file) {
  tiny_vocabulary words;
  const auto end = words.add("<end>", 3);
  tiny_llama shape;
  shape.vocabulary = static_cast<std::uint32_t>(words.tokens.size());
  auto made = shape.write();
  made.add("tokenizer.ggml.model", "gpt2").add("tokenizer.ggml.pre", words.pre);
  made.add_array("tokenizer.ggml.tokens", words.tokens);
  made.add_array("tokenizer.ggml.token_type", words.types);
  made.add_array("tokenizer.ggml.merges", words.merges);
  made.add("tokenizer.ggml.eos_token_id", end);
  made.add("tokenizer.chat_template", "{% for message in messages %}{{ message.content }}\n{% endfor %}");
  const auto bytes = made.finish();
  std::ofstream(file, std::ios::binary)
    .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

/// The text of a streamed completion, from the whole answer.
inline std::string text_of_stream(const std::string& answer) {
  std::string out;
  for (auto at = answer.find("\ndata: {"); at != std::string::npos; at = answer.find("\ndata: {", at + 1)) {
    const auto begin = at + 7;
    const auto chunk =
      nlohmann::json::parse(answer.substr(begin, answer.find('\n', begin) - begin), nullptr, false);
    if (chunk.contains("choices") && !chunk["choices"].empty())
      out += chunk["choices"][0]["delta"].value("content", "");
  }
  return out;
}

/// A model that can die as by a mistake of ours: with what nobody expects to be thrown.
class mortal_model final : public model {
 public:
  mortal_model(std::unique_ptr<model> inner, std::shared_ptr<node_faults> faults)
    : inner_(std::move(inner)), faults_(std::move(faults)) {}

  const model_shape& shape() const override { return inner_->shape(); }
  const std::string& fingerprint() const override { return inner_->fingerprint(); }
  std::uint32_t max_rows() const override { return inner_->max_rows(); }
  void forward(std::span<const chunk> chunks, std::span<float> logits, const hidden_taps& taps) override {
    if (faults_->steps_left >= 0 && faults_->steps_left-- == 0)
      throw 42;
    if (faults_->slow)
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    if (faults_->hold_in >= 0 && faults_->hold_in-- == 0)
      faults_->held = true;
    while (faults_->held)
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    inner_->forward(chunks, logits, taps);
  }

 private:
  std::unique_ptr<model> inner_;
  std::shared_ptr<node_faults> faults_;
};

/// A memory journal whose listing can kill the directory.
class mortal_journal final : public journal_over_memory {
 public:
  explicit mortal_journal(std::shared_ptr<node_faults> faults) : faults_(std::move(faults)) {}

  result<std::vector<journal_head>> list(const session_id& after, std::size_t limit) override {
    if (faults_->list.exchange(false))
      throw std::logic_error("a mistake of ours");
    return inner.list(after, limit);
  }

 private:
  std::shared_ptr<node_faults> faults_;
};

/// A streamed completion of 60 tokens.
inline std::string completion_request() {
  const std::string body = R"({"model":"tiny","stream":true,"max_tokens":60,"seed":7,"temperature":1,)"
                           R"("logit_bias":{"256":-100},"messages":[{"role":"user","content":"Hello"}]})";
  return "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
         "Content-Type: application/json\r\nContent-Length: "
         + std::to_string(body.size()) + "\r\n\r\n" + body;
}

/// A node of a random model with a byte-level vocabulary, whole but for its disk, behind a real socket.
class tiny_node {
 public:
  /// @param settings of the node's roles and mesh
  /// @param whole    whether it works as soon as it is made, or waits for others
  explicit tiny_node(config settings = {}, bool whole = true) {
    write_tiny_model(file_);
    const auto roles = roles_of(settings);
    if (!roles)
      FAIL(roles.error().message);
    auto loaded = load_model(file_, 1, false, {}, roles->worker());
    if (!loaded)
      FAIL(loaded.error().message);
    if (loaded->model)
      loaded->model = std::make_unique<mortal_model>(std::move(loaded->model), faults);
    settings.kv_tokens = 4096;
    if (settings.node.empty())
      settings.node = "tiny";
    configure_scheduler(actor_settings_);
    system_ = std::make_unique<caf::actor_system>(actor_settings_);
    node_ingredients from{settings, "i1", std::move(*loaded), roles->session ? records : nullptr,
      std::make_shared<metrics>(), out_, front_};
    from.roles = *roles;
    if (!settings.mesh_nodes.empty()) {
      auto others = mesh_options_of(settings, *roles, from.model.card, "test");
      if (!others)
        FAIL(others.error().message);
      from.others = std::move(*others);
      from.others->exchange.served = [this](const link::served_request& one) {
        const std::lock_guard lock(served_mutex_);
        served_.insert(
          std::string(one.node) + " " + std::string(one.actor) + " " + to_traceparent(one.trace));
      };
    }
    auto actors = node_actors::start(*system_, std::move(from));
    if (!actors)
      FAIL(actors.error().message);
    actors_ = std::move(*actors);
    caf::anon_send(
      actors_->node(), join_atom::value, std::string("supervisor"), common_actor(actors_->supervisor()));
    auto server = http::server::start({}, front_);
    REQUIRE(server);
    server_ = std::move(*server);
    if (whole)
      wait_until_ready();
  }

  ~tiny_node() {
    faults->hold_in = -1;
    faults->held = false;
    records->inner.resume();
    server_->stop(std::chrono::milliseconds(500));
    actors_->stop(link::end_cause::draining);
    front_->clear();
    actors_.reset();
    system_.reset();
  }
  tiny_node(const tiny_node&) = delete;
  tiny_node& operator=(const tiny_node&) = delete;

  /// The whole answer to a request: status line, fields, body.
  /// @param fields more of the head, each with its end of line
  std::string ask(const std::string& method, const std::string& path, const std::string& body = {},
    const std::string& fields = {}) const {
    http::test::raw_client client(server_->port());
    client.send(method + " " + path + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + fields);
    if (!body.empty())
      client.send(
        "Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) + "\r\n");
    client.send("\r\n" + body);
    return client.read_all();
  }
  static nlohmann::json body_of(const std::string& answer) {
    return nlohmann::json::parse(answer.substr(answer.find("\r\n\r\n") + 4), nullptr, false);
  }

  node_actors& actors() const { return *actors_; }

  std::string open_session(std::uint32_t max_tokens) const {
    const auto answer = ask("POST", "/v1/sessions",
      R"({"sampling":{"temperature":1,"seed":7,"logit_bias":{"256":-100},"max_tokens":)"
        + std::to_string(max_tokens) + "}}");
    INFO(answer);
    const auto made = body_of(answer);
    REQUIRE(made.contains("id"));
    return made["id"];
  }
  void say(const std::string& session, const std::string& text, const std::string& fields = {}) const {
    const auto answer =
      ask("POST", "/v1/sessions/" + session + "/messages", R"({"content":")" + text + "\"}", fields);
    INFO(answer);
    REQUIRE(answer.starts_with("HTTP/1.1 202 "));
  }
  /// The events of a session as they are now.
  std::string events(const std::string& session) const {
    return ask("GET", "/v1/sessions/" + session + "/events?follow=0");
  }
  /// The tokens of all events, once the turn is over.
  nlohmann::json tokens_of_turn(const std::string& session) const {
    std::string seen;
    until([&] {
      seen = events(session);
      return seen.find("event: turn.") != seen.rfind("event: turn.");
    });
    INFO(seen);
    REQUIRE(seen.find("event: turn.completed") != std::string::npos);
    auto tokens = nlohmann::json::array();
    for (auto at = seen.find("event: token\ndata: "); at != std::string::npos;
         at = seen.find("event: token\ndata: ", at + 1)) {
      const auto begin = at + 19;
      const auto data = nlohmann::json::parse(seen.substr(begin, seen.find('\n', begin) - begin));
      for (const auto& token : data["tokens"])
        tokens.push_back(token);
    }
    return tokens;
  }
  double restarts_of(const std::string& part) const {
    const auto listed = body_of(ask("GET", "/v1/actors"));
    for (const auto& actor : listed["data"])
      if (actor["name"] == "supervisor" && actor["gauges"].contains("restarts_" + part))
        return actor["gauges"]["restarts_" + part];
    return -1;
  }
  void wait_until_ready() const {
    until([&] { return ask("GET", "/readyz").starts_with("HTTP/1.1 200 "); });
  }

  /// Waits for what must come true.
  template <class Condition>
  static void until(Condition condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!condition()) {
      if (std::chrono::steady_clock::now() > end)
        FAIL("it did not happen in time");
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }

  /// All of a stream that comes to its end.
  static std::string whole_stream(http::test::raw_client& client) {
    std::string out;
    until([&] {
      out += client.read_until("data: [DONE]");
      return out.find("data: [DONE]") != std::string::npos;
    });
    return out;
  }
  static std::string whole_stream(std::uint16_t port) {
    http::test::raw_client client(port);
    client.send(completion_request());
    return whole_stream(client);
  }
  std::uint16_t port() const { return server_->port(); }
  /// Whether a node has asked an actor of this one for a trace that is sampled.
  bool has_served(const std::string& node, const std::string& actor, const std::string& traceparent) const {
    const std::lock_guard lock(served_mutex_);
    return served_.contains(node + " " + actor + " " + traceparent);
  }

  std::shared_ptr<node_faults> faults = std::make_shared<node_faults>();
  std::shared_ptr<mortal_journal> records = std::make_shared<mortal_journal>(faults);

 private:
  mutable std::mutex served_mutex_;
  std::set<std::string> served_;
  temporary_folder folder_;
  std::filesystem::path file_ = folder_.path() / "tiny.gguf";
  std::shared_ptr<std::FILE> words_{std::tmpfile(), [](std::FILE* file) { std::fclose(file); }};
  std::shared_ptr<logger> out_ = make_logger(words_.get(), {});
  std::shared_ptr<gateway_switch> front_ = std::make_shared<gateway_switch>();
  caf::actor_system_config actor_settings_;
  std::unique_ptr<caf::actor_system> system_;
  std::shared_ptr<node_actors> actors_;
  std::unique_ptr<http::server> server_;
};

} // namespace godwit::test
