#pragma once

#include "actors/session/memory_journal.hpp"
#include "actors/session/session_core.hpp"
#include "tests/support/toy_generation.hpp"
#include "tests/unit/actors/session/fake_time.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace godwit {

/// A session's core in a world of its own: a journal on a memory disk that outlives the node, a tokenizer and
/// a worker that do something only when the test says so.
class core_harness : public session_ports {
 public:
  struct options {
    std::uint64_t seed = 1;
    std::uint32_t max_tokens = 12;
    std::uint32_t context = 4'000;
    std::vector<std::string> stops;
    schema::OnBusy busy = schema::OnBusy::QUEUE;
    std::uint64_t ttl_s = 0;
    session_limits limits;
  };

  core_harness() : core_harness(options()) {}
  explicit core_harness(options with) : with_(std::move(with)) {
    const auto settings = letter<schema::SessionSettings>::make([&](schema::SessionSettings::Builder b) {
      b.setTenant("t");
      b.initSampling().setSeed(with_.seed);
      b.setMaxTokens(with_.max_tokens);
      auto list = b.initStop(static_cast<unsigned>(with_.stops.size()));
      for (unsigned i = 0; i < with_.stops.size(); ++i)
        list.set(i, with_.stops[i]);
      b.setOnBusy(with_.busy);
      b.setTtlSeconds(with_.ttl_s);
    });
    start_node();
    const session_owner owner{node_name("node"), incarnation(), "toy-1"};
    REQUIRE(log->open(id, tenant_id("t"), owner.node,
      {opened_record(settings.read(), "toy", "toy-1", time->wall), claimed_record(owner, 1, time->wall)},
      false));
    revive();
  }

  // The node's life.

  /// The process dies: what waits for the disk is lost.
  void crash() {
    core.reset();
    questions.clear();
    log.reset();
    generations.clear();
    prompts.clear();
    start_node();
  }
  void revive() {
    core = std::make_unique<session_core>(id,
      session_core_config{log, {"toy", "toy-1", with_.context, 0, text},
        {node_name("node"), incarnation(), "toy-1"}, time, [this] { return ++requests; }, with_.limits},
      *this);
    // A session takes no calls while it is being revived.
    const bool was_slow = std::exchange(slow, false);
    bool revived = false;
    core->revive({}, [&](const result<void>& outcome) { revived = outcome.has_value(); });
    REQUIRE(revived);
    slow = was_slow;
    // The client reads on behind its last event: what was written when the node died may be new to it.
    for (auto& event : replay())
      if (seen.empty() || seen.back().place < event.place)
        seen.push_back(std::move(event));
    core->start();
  }
  void restart() {
    crash();
    revive();
  }

  // Calls, with their answers kept.

  void post(const std::string& content, const std::string& key = {}, bool cancel_on_disconnect = false) {
    const auto place = answers.size();
    answers.push_back(tl::unexpected<error>(error{errc::internal, "no answer yet", {}, "open"}));
    const auto mail = letter<schema::PostMessage>::make([&](schema::PostMessage::Builder b) {
      b.setContent(content);
      b.setIdempotencyKey(key);
      b.setBodyHash(
        capnp::Data::Reader(reinterpret_cast<const capnp::byte*>(content.data()), content.size()));
      b.setCancelOnDisconnect(cancel_on_disconnect);
    });
    core->post(mail, [this, place](auto outcome) { answers[place] = std::move(outcome); });
  }
  void cancel(turn_number turn = 0) {
    core->cancel(turn, schema::EndCause::CANCELLED, [this](result<letter<schema::TurnState>> outcome) {
      if (outcome)
        states.emplace_back(outcome->read().getStatus().cStr());
      else
        states.emplace_back(to_string(outcome.error().code));
    });
  }

  // The tokenizer and the worker.

  /// Answers the oldest prompt that was asked for. @returns false if none was
  bool make_prompt() {
    if (prompts.empty())
      return false;
    auto task = std::move(prompts.front());
    prompts.pop_front();
    if (prompt_failure) {
      core->prepared(task.ticket, tl::unexpected<error>(*prompt_failure));
      return true;
    }
    const auto render = [&](std::size_t count) {
      std::vector<std::pair<std::string, std::string>> messages;
      for (std::size_t i = 0; i < count; ++i)
        messages.emplace_back(task.messages[i].role, task.messages[i].content);
      return toy_chat(messages);
    };
    const auto now = render(task.messages.size());
    prepared_prompt prompt{0, text->encode(now)};
    if (task.before > 0)
      if (const auto plan = plan_prompt(render(task.before), task.answer, *text, now); plan.reuse)
        prompt = {
          task.prompt_length + static_cast<std::uint32_t>(plan.answer_tokens), text->encode(plan.rest)};
    core->prepared(task.ticket, std::move(prompt));
    return true;
  }
  /// Generates up to so many tokens for the oldest generation that can go on. @returns how many
  std::size_t work(std::size_t most) {
    for (auto& [request, one] : generations)
      if (const auto step = one.go_on(most)) {
        send(request, *step);
        return step->tokens.size();
      }
    return 0;
  }
  void send(request_id request, const toy_step& step, const error& why = {}) {
    core->tokens(toy_batch(request, step, why).read());
  }
  void fail_generation(errc code) {
    for (auto& [request, one] : generations) {
      if (one.ended)
        continue;
      one.ended = true;
      send(request, {0, {}, schema::FinishReason::FAILED}, {code, "no", "", ""});
      return;
    }
  }
  /// Router and worker of a generation are lost.
  void orphan(request_id request) {
    generations[request].ended = true;
    core->orphaned(request);
  }
  void pass(std::int64_t milliseconds) {
    time->pass(milliseconds);
    core->tick();
  }
  /// Lets everything happen until nothing more does.
  void settle() {
    log->resume();
    slow = false;
    while (answer_question() || make_prompt() || work(5) > 0) {
    }
  }

  /// The journal is asked the oldest question, or its answer comes. @returns false if there is none
  bool answer_question() {
    if (questions.empty())
      return false;
    auto& next = questions.front();
    if (!next.second) {
      next.second = next.first(*log);
      return true;
    }
    const auto answer = std::move(next.second);
    questions.pop_front();
    answer();
    return true;
  }

  // What can be seen.

  /// All events, made anew from the disk.
  std::vector<session_event> replay() const {
    std::vector<session_event> out;
    session_machine machine(id);
    for (const auto& record : disk->sessions.at(id).records) {
      auto made = machine.apply(record);
      REQUIRE(made);
      out.insert(out.end(), made->begin(), made->end());
    }
    return out;
  }
  std::vector<std::string> types() const {
    std::vector<std::string> out;
    for (const auto& event : seen)
      out.push_back(event.type);
    return out;
  }
  std::size_t count(const std::string& type) const {
    return static_cast<std::size_t>(
      std::count_if(seen.begin(), seen.end(), [&](const auto& event) { return event.type == type; }));
  }
  std::string status(turn_number turn) const {
    return std::string(to_string(core->machine().find(turn)->now));
  }
  /// What the toy model answers to a prompt when nobody disturbs it.
  static std::vector<token_id> golden(std::uint64_t seed, std::vector<token_id> tokens, std::size_t most) {
    const auto length = tokens.size();
    while (tokens.size() < length + most) {
      tokens.push_back(toy_next(seed, tokens));
      if (tokens.back() == toy_text::end)
        break;
    }
    return tokens;
  }

  // session_ports

  void append(append_request request) override {
    log->append(std::move(request), [this](result<sequence_number> outcome) {
      if (core)
        core->appended(std::move(outcome));
    });
  }
  void consult(journal_question question) override {
    if (slow)
      questions.emplace_back(std::move(question), nullptr);
    else
      question (*log)();
  }
  void claim(epoch_t expected, journal_record claimed, journal::claimed_head done) override {
    consult([this, expected, claimed, done = std::move(done)](journal& records) -> journal_answer {
      return [done, head = records.claim(id, expected, node_name("node"), claimed)] { done(head); };
    });
  }
  void prepare(prompt_task task) override { prompts.push_back(std::move(task)); }
  void generate(letter<schema::GenerateRequest> mail) override {
    const auto request = mail.read().getRequest();
    if (refusal) {
      core->generating(request, tl::unexpected<error>(*refusal));
      return;
    }
    generations[request] = toy_generation(mail.read());
    if (confirms)
      core->generating(request, {});
  }
  void grant(request_id request, std::uint32_t tokens) override { generations[request].credit += tokens; }
  void abandon(request_id request, schema::EndCause cause) override {
    generations[request].ended = true;
    abandoned.push_back(cause);
  }
  void passed(const event_maker&) override {}
  void committed(const std::vector<session_event>& events) override {
    for (const auto& event : events) {
      // The one rule: what is told is on the disk.
      REQUIRE(event.place.sequence <= disk->sessions.at(id).records.size());
      seen.push_back(event);
    }
  }
  void wake_in(std::chrono::milliseconds delay) override { wake = delay.count(); }
  void lost(const error& why) override { lost_with.push_back(why.code); }
  void report(const error& what) override { reports.push_back(what.code); }

  session_id id{"ses_0123456789abcdef0123456789abcdef"};
  std::shared_ptr<memory_disk> disk = std::make_shared<memory_disk>();
  std::shared_ptr<memory_journal> log;
  std::shared_ptr<fake_time> time = std::make_shared<fake_time>();
  std::shared_ptr<const toy_text> text = std::make_shared<toy_text>();
  std::unique_ptr<session_core> core;
  request_id requests = 0;
  bool slow = false; ///< questions to the journal wait for answer_question()
  std::deque<std::pair<journal_question, journal_answer>> questions;
  std::deque<prompt_task> prompts;
  std::optional<error> prompt_failure;
  std::optional<error> refusal; ///< the router's answer
  bool confirms = true;         ///< the router answers at once
  std::map<request_id, toy_generation> generations;
  std::vector<schema::EndCause> abandoned;
  std::vector<session_event> seen; ///< as they were published
  std::vector<result<letter<schema::MessageAccepted>>> answers;
  std::vector<std::string> states; ///< answers of cancel()
  std::vector<errc> lost_with;
  std::vector<errc> reports;
  std::int64_t wake = 0;

 private:
  std::string incarnation() const { return "start-" + std::to_string(starts_); }
  void start_node() {
    ++starts_;
    log = std::make_shared<memory_journal>(disk);
  }

  options with_;
  int starts_ = 0;
};

/// The tokens of the last turn behind its prompt.
inline std::vector<token_id> answer_of(const core_harness& world) {
  const auto& machine = world.core->machine();
  return {machine.tokens().begin() + machine.prompt_length(), machine.tokens().end()};
}

/// What they are when nobody disturbs the toy model.
inline std::vector<token_id> golden_answer(const core_harness& world, std::uint64_t seed, std::size_t most) {
  const auto& machine = world.core->machine();
  const std::vector<token_id> prompt(
    machine.tokens().begin(), machine.tokens().begin() + machine.prompt_length());
  auto whole = core_harness::golden(seed, prompt, most);
  whole.erase(whole.begin(), whole.begin() + machine.prompt_length());
  return whole;
}

} // namespace godwit
