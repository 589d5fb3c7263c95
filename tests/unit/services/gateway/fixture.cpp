#include "tests/unit/services/gateway/fixture.hpp"

#include "actors/trace/trace_scope.hpp"

#include <caf/send.hpp>
#include <caf/typed_event_based_actor.hpp>

namespace godwit::test {

namespace {

using world_ptr = std::shared_ptr<world>;

/// A reply, or the scripted error in its place.
template <class T>
caf::result<T> reply(const std::optional<error>& failure, T value) {
  if (failure)
    return to_caf_error(*failure);
  return value;
}

/// Notes for which trace an actor is asked now.
template <class Self>
void note_trace(Self self, const world_ptr& w) {
  const auto trace = trace_of(self->current_sender());
  w->seen_traces.push_back(trace.known() ? to_traceparent(trace) : "none");
}

letter<schema::SessionInfo> info(const char* status = "idle") {
  return letter<schema::SessionInfo>::make([=](auto b) {
    b.setId(fixture::session_id.c_str());
    b.setStatus(status);
    b.setOldestEvent("50");
  });
}

session_actor::behavior_type session(session_actor::pointer self, const world_ptr& w) {
  return {
    [self, w](info_atom) {
      note_trace(self, w);
      // What is gone concerns a place, not the session.
      const bool gone = w->session_error && w->session_error->code == errc::gone;
      return reply(gone ? std::nullopt : w->session_error, info());
    },
    [w](transcript_atom) { return reply(w->session_error, letter<schema::Transcript>()); },
    [w](const letter<schema::PostMessage>& mail) {
      w->posted.push_back(mail);
      return reply(w->session_error, letter<schema::MessageAccepted>::make([](auto b) {
        b.setTurn(2);
        b.setSequence(11);
        b.setEventBefore("10");
      }));
    },
    [w](const letter<schema::SubscribeRequest>& mail, const event_sink_actor& sink) {
      if (!w->session_error)
        w->subscriptions.push_back({mail, sink});
      const auto id = w->subscriptions.size();
      return reply(
        w->session_error, letter<schema::Subscribed>::make([id](auto b) { b.setSubscription(id); }));
    },
    [w](const letter<schema::EventCredit>& mail) { w->event_credits.push_back(mail); },
    [w](const letter<schema::Unsubscribe>& mail) { w->unsubscribed.push_back(mail); },
    [w](const letter<schema::CancelTurn>& mail) {
      w->cancelled_turns.push_back(mail);
      return reply(w->session_error, letter<schema::TurnState>::make([](auto b) {
        b.setTurn(2);
        b.setStatus("cancelled");
      }));
    },
    [w](suspend_atom) {
      ++w->suspensions;
      return reply(w->session_error, info("suspended"));
    },
    [w](const letter<schema::CachePin>& mail) {
      w->pins.push_back(mail.read().getSeconds());
      return reply(w->session_error, letter<schema::CachePinned>::make([](auto b) {
        b.setPin(5);
        b.setBlocks(3);
      }));
    },
    [w](const letter<schema::CacheUnpin>&) {
      ++w->unpins;
      return reply(w->session_error, letter<schema::CachePinned>());
    },
    [w](const letter<schema::ForkRequest>& mail) {
      w->forks.push_back(mail);
      return reply(w->session_error, info());
    },
    [](const letter<schema::CloseSession>&) { return info(); },
    [](passivate_atom) { return false; },
    [](const letter<schema::TokenBatch>&) {},
    [](status_atom) { return letter<schema::ActorStatus>(); },
    [](drain_atom) { return letter<schema::Drained>(); },
    [self](stop_atom) { self->quit(); },
  };
}

directory_actor::behavior_type directory(directory_actor::pointer self, const world_ptr& w) {
  return {
    [w](const letter<schema::SessionSettings>& mail) {
      w->created.push_back(mail);
      return reply(w->directory_error, info());
    },
    [self, w](const letter<schema::LocateRequest>& mail) -> caf::result<session_actor> {
      note_trace(self, w);
      w->located.push_back(mail);
      if (mail.read().getSession() != fixture::session_id.c_str())
        return to_caf_error({errc::not_found, "there is no such session", {}, "session_not_found"});
      return reply(w->directory_error, w->session);
    },
    [w](const letter<schema::ListRequest>& mail) {
      w->listed.push_back(mail);
      return reply(w->directory_error, letter<schema::SessionList>());
    },
    [w](erase_atom, const letter<schema::LocateRequest>& mail) {
      w->erased.push_back(mail);
      return reply(w->directory_error, info());
    },
    [](status_atom) { return letter<schema::ActorStatus>(); },
    [](drain_atom) { return letter<schema::Drained>(); },
    [self](stop_atom) { self->quit(); },
  };
}

router_actor::behavior_type router(router_actor::pointer self, const world_ptr& w) {
  return {
    [self, w](const letter<schema::GenerateRequest>& mail,
      const generation_sink_actor& sink) -> caf::result<letter<schema::GenerateAccepted>> {
      note_trace(self, w);
      w->generations.push_back({mail, sink, 0});
      if (w->silent_router)
        return self->make_response_promise<letter<schema::GenerateAccepted>>();
      return reply(w->router_error, letter<schema::GenerateAccepted>());
    },
    [w](const letter<schema::CreditGrant>& mail) { w->token_credits.push_back(mail); },
    [w](const letter<schema::CancelRequest>& mail) { w->cancels.push_back(mail); },
    [](const letter<schema::RouteExplainRequest>&) { return letter<schema::GenerateAccepted>(); },
    [](status_atom) { return letter<schema::ActorStatus>(); },
    [](drain_atom) { return letter<schema::Drained>(); },
    [self](stop_atom) { self->quit(); },
  };
}

tokenizer_actor::behavior_type tokenizer(tokenizer_actor::pointer self, const world_ptr& w) {
  return {
    [](const letter<schema::EncodeRequest>&) { return letter<schema::TokenIds>(); },
    [](const letter<schema::DecodeRequest>&) { return letter<schema::DecodedText>(); },
    [w](const letter<schema::RenderRequest>& mail) {
      w->renders.push_back(mail);
      return reply(
        w->tokenizer_error, letter<schema::RenderedChat>::make([w](auto b) { b.initIds(w->prompt_tokens); }));
    },
    [](status_atom) { return letter<schema::ActorStatus>(); },
    [](drain_atom) { return letter<schema::Drained>(); },
    [self](stop_atom) { self->quit(); },
  };
}

node_actor::behavior_type node(node_actor::pointer self, const world_ptr& w) {
  return {
    [w](info_atom) {
      return letter<schema::NodeStatus>::make([w](auto b) {
        b.setName("n1");
        b.setState(w->node_state.c_str());
      });
    },
    [](join_atom, const std::string&, const common_actor&) {},
    [](escalate_atom, const std::string&, const std::string&) {},
    [](status_atom) { return letter<schema::ActorStatus>(); },
    [](drain_atom) { return letter<schema::Drained>(); },
    [self](stop_atom) { self->quit(); },
  };
}

} // namespace

fixture::fixture(bool serves, bool in_mesh)
  : system_(config_), scheduler_(dynamic_cast<caf::scheduler::test_coordinator&>(system_.scheduler())),
    world_(std::make_shared<world>()) {
  world_->session = system_.spawn(session, world_);
  directory_ = system_.spawn(directory, world_);
  router_ = system_.spawn(router, world_);
  tokenizer_ = system_.spawn(tokenizer, world_);
  node_ = system_.spawn(node, world_);
  process_ = system_.spawn([w = world_](process_actor::pointer) -> process_actor::behavior_type {
    return {[w](leave_atom) {
              ++w->leaves;
              return letter<schema::ActorStatus>::make([](auto b) { b.setState("draining"); });
            },
      [w](const letter<schema::TraceRequest>& mail) {
        w->traces.push_back(mail);
        return letter<schema::Trace>::make([&](auto b) {
          b.setActor(mail.read().getActor());
          auto letters = b.initLetters(2);
          letters[0].setMicroseconds(1500);
          letters[0].setKind("letter");
          letters[0].setTypes("TokenBatch");
          letters[0].setBytes(64);
          letters[0].setFrom("decode");
          letters[1].setMicroseconds(2'000);
          letters[1].setKind("request");
          letters[1].setTypes("CacheLookup");
          letters[1].setBytes(8);
          letters[1].setTo("cache on n2");
        });
      }};
  });
  if (in_mesh)
    nodes_ = system_.spawn([w = world_](node_list_actor::pointer) -> node_list_actor::behavior_type {
      return {[w](list_atom) { return w->all_nodes; }};
    });
  gateway_config config;
  config.serves = serves;
  config.nodes = nodes_;
  config.process = [this](const std::string& name) {
    return name == "n1" || name.empty() ? std::optional(process_) : std::nullopt;
  };
  config.absent = [w = world_] { return w->absent; };
  config.directory = directory_;
  config.router = router_;
  config.tokenizer = tokenizer_;
  config.node = node_;
  config.model = {.id = "m",
    .fingerprint = "0123456789abcdef0123456789abcdef",
    .context = 100,
    .created = 5,
    .text = std::make_shared<words>(std::vector<std::string>{"a", "b", "c"})};
  config.metrics = [] { return std::string("up 1\n"); };
  config.journal_trouble = [w = world_] { return w->journal_trouble; };
  config.next_request = [next = std::make_shared<request_id>(100)] { return ++*next; };
  config.random = [next = std::make_shared<std::uint64_t>(0)] { return ++*next; };
  config.now = [] { return std::int64_t{1700000000}; };
  config.report = [w = world_](std::string_view call, const error& failure) {
    w->reports.emplace_back(std::string(call), failure);
  };
  gateway_ = make_gateway(system_, std::move(config));
  run();
}

fixture::~fixture() {
  // Calls that a test leaves open end with the gateway; the system would wait for their actors.
  gateway_.reset();
  for (const auto& part : {caf::actor_cast<caf::actor>(world_->session),
         caf::actor_cast<caf::actor>(directory_), caf::actor_cast<caf::actor>(router_),
         caf::actor_cast<caf::actor>(tokenizer_), caf::actor_cast<caf::actor>(node_)})
    caf::anon_send(part, stop_atom::value);
  pass(std::chrono::seconds(20));
}

void fixture::run() {
  while (scheduler_.has_job())
    scheduler_.run_once();
}

void fixture::pass(std::chrono::milliseconds time) {
  // In steps, so that timers that set timers come in their order.
  constexpr std::chrono::milliseconds step{500};
  for (; time.count() > 0; time -= step) {
    scheduler_.advance_time(std::min(time, step));
    run();
  }
}

std::shared_ptr<client_view> fixture::send(std::shared_ptr<client_view> view, const std::string& method,
  const std::string& path, const std::string& body, http::headers fields) {
  http::request request;
  request.method = method;
  const auto query = path.find('?');
  request.path = path.substr(0, query);
  if (query != std::string::npos) {
    const auto parameter = path.substr(query + 1);
    const auto equals = parameter.find('=');
    request.query.emplace_back(parameter.substr(0, equals), parameter.substr(equals + 1));
  }
  request.fields = std::move(fields);
  if (!body.empty() && !request.field("Content-Type"))
    request.fields.emplace_back("Content-Type", "application/json");
  request.body = body;
  gateway_->handle(std::make_shared<fake_exchange>(std::move(request), view));
  run();
  return view;
}

std::shared_ptr<client_view> fixture::ask(
  const std::string& method, const std::string& path, const std::string& body, http::headers fields) {
  return send(std::make_shared<client_view>(), method, path, body, std::move(fields));
}

std::shared_ptr<client_view> fixture::ask_slowly(
  const std::string& method, const std::string& path, const std::string& body, http::headers fields) {
  auto view = std::make_shared<client_view>();
  view->reads = false;
  return send(std::move(view), method, path, body, std::move(fields));
}

void fixture::tokens(std::size_t generation, batch_parts parts) {
  auto& target = world_->generations.at(generation);
  const auto asked = target.request.read();
  parts.request = asked.getRequest();
  parts.position = asked.getTokens().size() + target.sent;
  target.sent += static_cast<std::uint32_t>(parts.tokens.size());
  caf::anon_send(target.sink, batch(parts));
  run();
}

void fixture::lose(std::size_t generation) {
  tokens(generation, {.finish = schema::FinishReason::FAILED,
                       .code = errc::peer_lost,
                       .message = "the worker of this generation has stopped"});
}

void fixture::events(std::size_t subscription, const std::vector<std::array<std::string, 3>>& list,
  bool ended, std::optional<error> failure) {
  caf::anon_send(world_->subscriptions.at(subscription).sink, letter<schema::EventBatch>::make([&](auto b) {
    b.setSubscription(subscription + 1);
    auto out = b.initEvents(static_cast<unsigned>(list.size()));
    for (unsigned i = 0; i < out.size(); ++i) {
      out[i].setId(list[i][0].c_str());
      out[i].setType(list[i][1].c_str());
      out[i].setData(list[i][2].c_str());
    }
    b.setEnded(ended);
    if (failure) {
      b.setErrorCode(static_cast<std::uint8_t>(failure->code));
      b.setErrorMessage(failure->message.c_str());
    }
  }));
  run();
}

void fixture::replace_session() {
  const auto old = world_->session;
  world_->session = system_.spawn(session, world_);
  caf::anon_send(old, stop_atom::value);
  run();
}

} // namespace godwit::test
