#include "services/gateway/chat_call.hpp"

#include "messages/actor_error.hpp"
#include "services/api/error_response.hpp"
#include "services/api/header_fields.hpp"
#include "services/api/letters.hpp"
#include "services/api/sse.hpp"
#include "services/gateway/call_actor.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

namespace godwit {

namespace {

error too_long(std::uint64_t prompt, bool at_least, std::uint32_t context) {
  return {errc::invalid_argument,
    fmt::format(
      "the prompt has {}{} tokens, but the model's context holds {} with the answer: shorten the messages",
      at_least ? "at least " : "", prompt, context),
    "messages", "context_length_exceeded"};
}

/// Why generations end when their call fails.
schema::EndCause cause_of(errc code) {
  switch (code) {
  case errc::deadline:
    return schema::EndCause::DEADLINE;
  case errc::draining:
    return schema::EndCause::DRAINING;
  case errc::overloaded:
  case errc::resource_exhausted:
    return schema::EndCause::OVERLOADED;
  case errc::peer_lost:
  case errc::unavailable:
  case errc::internal:
  case errc::io:
    return schema::EndCause::PEER_LOST;
  default:
    return schema::EndCause::CANCELLED;
  }
}

error gone() {
  return {errc::peer_lost, "the worker of this generation is gone", {}, {}};
}

struct chat_state {
  static constexpr const char* name = "chat";
  std::unique_ptr<chat_call> call;
};

chat_actor::behavior_type chat_behavior(chat_actor::stateful_pointer<chat_state> self, const call& request) {
  self->state.call = std::make_unique<chat_call>(self, request);
  self->state.call->start();
  return {
    [self](const letter<schema::TokenBatch>& batch) { self->state.call->take(batch.read()); },
    [self](written_atom, bool there) { self->state.call->written(there); },
    [self](left_atom) { self->state.call->left(); },
    [self](orphan_atom, request_id generation) { self->state.call->orphaned(generation); },
    [self](again_atom) { self->state.call->again(); },
    [self](tick_atom) { self->state.call->tick(); },
    [self](stop_atom) { self->state.call->stop(); },
  };
}

} // namespace

std::chrono::milliseconds chat_call::interval(const gateway_options& options) {
  return std::min(options.heartbeat, std::chrono::milliseconds(1000));
}

void chat_call::start() {
  const auto self = chat_actor(self_);
  if (!join_gateway(self_, call_, teller(self, stop_atom::value)))
    return stop();
  // The exchange must not own the actor, which owns it.
  call_.exchange().on_leave(teller(self, left_atom::value));
  last_tick_ = self_->clock().now();
  self_->delayed_send(self_, interval(call_.config().options), tick_atom::value);

  const auto& model = call_.config().model;
  auto parsed = parse_chat_request(call_.request().body, model.text->size(), call_.config().options.sampling);
  if (!parsed)
    return fail(parsed.error());
  request_ = std::move(*parsed);
  if (request_.model != model.id)
    return fail({errc::not_found, "this node does not serve that model", "model", "model_not_found"});
  const auto session = bound_session_of(call_.request());
  if (!session)
    return fail(session.error());
  if (!*session)
    return render();
  // Cached blocks are found by their content and tenant, so the session only has to be the tenant's.
  self_->request(call_.config().directory, call_.timeout(), locate_letter(**session, call_.tenant()))
    .then([this](const session_actor&) { render(); },
      [this](const caf::error& failure) { fail(from_caf_error(failure)); });
}

void chat_call::render() {
  // What cannot fit is not worth the tokenizer's time.
  const auto& model = call_.config().model;
  std::size_t bytes = 0;
  for (const auto& message : request_.messages)
    bytes += message.content.size();
  if (const auto least = bytes / call_.context().longest_token; least > model.context)
    return fail(too_long(least, true, model.context));
  self_->request(call_.config().tokenizer, call_.timeout(), render_letter(request_.messages))
    .then([this](const letter<schema::RenderedChat>& prompt) { place(prompt); },
      [this](const caf::error& failure) { fail(from_caf_error(failure)); });
}

void chat_call::place(const letter<schema::RenderedChat>& prompt) {
  const auto& config = call_.config();
  const auto length = prompt.read().getIds().size();
  if (length >= config.model.context)
    return fail(too_long(length, false, config.model.context));
  const auto room = config.model.context - length;
  const auto& sampling = request_.sampling;

  completion_.emplace(completion_settings{.id = answer_id(),
    .created = config.now(),
    .model = config.model.id,
    .fingerprint = "fp_" + config.model.fingerprint.substr(0, 16),
    .choices = request_.choices,
    .stop = sampling.stop,
    .logprobs = sampling.settings.logprobs,
    .stream = request_.stream,
    .include_usage = request_.include_usage,
    .vocabulary = config.model.text});
  writer_.emplace(call_.exchange(), request_.choices,
    [self = chat_actor(self_)](bool there) { caf::anon_send(self, written_atom::value, there); });

  plan_ = {.tenant = call_.tenant(),
    .model = config.model.id,
    .prompt = prompt,
    .max_tokens = sampling.max_tokens == 0 ? room : std::min(sampling.max_tokens, room),
    .seed = sampling.seeded ? sampling.settings.seed : config.random(),
    .group = config.next_request()};
  choices_.reserve(request_.choices);
  for (std::uint32_t i = 0; i < request_.choices; ++i)
    choices_.push_back({generation_tries(length, plan_.max_tokens, config.options.tries), {}});
  for (auto& each : choices_)
    begin(each);
}

void chat_call::begin(choice& which) {
  const auto& config = call_.config();
  const auto index = index_of(which);
  const auto request = config.next_request();
  // Whoever still has an earlier try is to see that nobody wants it.
  which.sinks.end();
  which.tries.begin(request);
  // The credit of an earlier try went with it; what the client has not taken of its tokens counts.
  auto& box = writer_->box();
  box.earned(index);
  generation_begin from{.request = request,
    .choice = static_cast<std::uint32_t>(index),
    .released = which.tries.tokens(),
    .credit = config.options.token_credit - std::min(box.owed(index), config.options.token_credit)};
  const auto sink = make_generation_sink(self_->system(), caf::strong_actor_ptr(self_->ctrl()),
    [me = chat_actor(self_), request] { caf::anon_send(me, orphan_atom::value, request); });
  which.sinks.add(sink);
  self_
    ->request(config.router, call_.timeout(), generate_letter(plan_, request_.sampling.settings, from), sink)
    .then(
      [this, request](const letter<schema::GenerateAccepted>&) {
        auto* const one = find(request);
        if (one != nullptr && one->tries.accept())
          return lost(*one, gone());
        pump();
      },
      [this, request](const caf::error& failure) {
        if (auto* const one = find(request))
          lost(*one, from_caf_error(failure));
      });
}

chat_call::choice* chat_call::find(request_id request) {
  for (std::size_t i = 0; i < choices_.size(); ++i)
    if (choices_[i].tries.request() == request && !failed_ && !completion_->ended(i))
      return &choices_[i];
  return nullptr;
}

std::size_t chat_call::index_of(const choice& which) const {
  return static_cast<std::size_t>(&which - choices_.data());
}

generation_tries::time chat_call::now() const {
  return std::chrono::duration_cast<generation_tries::time>(self_->clock().now().time_since_epoch());
}

void chat_call::take(schema::TokenBatch::Reader batch) {
  auto* const which = find(batch.getRequest());
  if (which == nullptr)
    return;
  quiet_ = {};
  const auto index = index_of(*which);
  if (const auto good = which->tries.take(batch, call_.config().model.text->size()); !good)
    return fail(good.error());
  const auto taken = completion_->take(index, batch);
  if (taken.failure)
    return lost(*which, *taken.failure);
  if (taken.stop_string)
    cancel(batch.getRequest(), schema::EndCause::STOP_SEQUENCE);
  writer_->box().add(taken.bytes, index, taken.tokens);
  if (completion_->done() && !writer_->closing()) {
    if (!request_.stream) {
      call_.answer(completion_->body());
      return self_->quit();
    }
    writer_->box().add(completion_->closing());
    writer_->close();
  }
  pump();
}

void chat_call::orphaned(request_id request) {
  auto* const which = find(request);
  if (which != nullptr && which->tries.orphan())
    lost(*which, gone());
}

void chat_call::lost(choice& which, const error& why) {
  const auto time = now();
  if (!which.tries.failed(why.code, time))
    return fail(why);
  self_->delayed_send(self_, *which.tries.next() - time, again_atom::value);
  pump();
}

void chat_call::again() {
  const auto time = now();
  for (auto& each : choices_)
    if (!failed_ && each.tries.next() && *each.tries.next() <= time)
      begin(each);
}

void chat_call::pump() {
  if (failed_ && !writer_->begun())
    return;
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    const auto request = choices_[i].tries.request();
    // Between two tries nobody can take it: the next begins with all that is free then.
    if (const auto earned = writer_->box().earned(i);
        earned != 0 && request != 0 && !failed_ && !completion_->ended(i))
      self_->send(call_.config().router, letter<schema::CreditGrant>::make([&](auto b) {
        b.setRequest(request);
        b.setTokens(earned);
      }));
  }
  // A refusal can still become the answer until every choice has its place.
  const auto placed =
    std::all_of(choices_.begin(), choices_.end(), [](const choice& each) { return each.tries.placed(); });
  if (placed && !writer_->box().idle())
    writer_->begin();
  if (writer_->pump())
    self_->quit();
}

void chat_call::written(bool there) {
  if (!there)
    return left();
  writer_->written();
  pump();
}

void chat_call::left() {
  cancel(schema::EndCause::CANCELLED);
  self_->quit();
}

void chat_call::tick() {
  const auto& options = call_.config().options;
  const auto now = self_->clock().now();
  const auto passed =
    std::chrono::duration_cast<std::chrono::milliseconds>(now - std::exchange(last_tick_, now));
  self_->delayed_send(self_, interval(options), tick_atom::value);
  if (!writer_)
    return;
  // A client that does not read holds the tokens up itself; the server's own time-out is for that.
  if (!writer_->writing() && !writer_->closing())
    quiet_ += passed;
  if (quiet_ >= options.stall_timeout)
    return fail({errc::deadline, "no token came for too long", {}, "generation_stalled"});
  writer_->pass(passed, options.heartbeat);
  pump();
}

void chat_call::stop() {
  const error why{errc::draining, "this node is being shut down", {}, {}};
  if (writer_ && writer_->begun())
    writer_->abandon(sse::data(error_json(why)));
  else
    call_.refuse(why);
  cancel(schema::EndCause::DRAINING);
  self_->quit();
}

void chat_call::fail(const error& failure) {
  if (failed_)
    return;
  failed_ = true;
  cancel(cause_of(failure.code));
  if (writer_ && writer_->begun()) {
    call_.report(failure);
    writer_->box().add(sse::data(error_json(failure)));
    writer_->close();
    return pump();
  }
  call_.refuse(failure);
  self_->quit();
}

void chat_call::cancel(schema::EndCause cause) {
  if (choices_.empty() || completion_->done())
    return;
  self_->send(call_.config().router, letter<schema::CancelRequest>::make([&](auto b) {
    b.setGroup(plan_.group);
    b.setCause(cause);
  }));
}

void chat_call::cancel(request_id request, schema::EndCause cause) {
  self_->send(call_.config().router, letter<schema::CancelRequest>::make([&](auto b) {
    b.initRequests(1).set(0, request);
    b.setCause(cause);
  }));
}

std::string chat_call::answer_id() const {
  const auto& random = call_.config().random;
  return fmt::format("chatcmpl-{:016x}{:016x}", random(), random());
}

void spawn_chat_call(caf::actor_system& system, call request) {
  const auto trace = request.trace();
  spawn_for(trace, system, chat_behavior, std::move(request));
}

} // namespace godwit
