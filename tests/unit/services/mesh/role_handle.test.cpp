#include "services/mesh/role_handle.hpp"

#include "messages/actor_error.hpp"
#include "messages/catalogue.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/make_actor.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <catch2/catch.hpp>

#include <array>
#include <atomic>
#include <functional>
#include <thread>

using namespace godwit;
using namespace std::chrono_literals;

namespace {

/// Remembers the last message, and from whom it is.
class last_message final : public caf::actor_proxy {
 public:
  explicit last_message(caf::actor_config& config) : caf::actor_proxy(config) {}
  void enqueue(caf::mailbox_element_ptr what, caf::execution_unit*) override {
    ++count;
    element = std::move(what);
  }
  void kill_proxy(caf::execution_unit* host, caf::error reason) override { cleanup(std::move(reason), host); }

  int count = 0;
  caf::mailbox_element_ptr element;
};

struct fixture {
  caf::actor_system_config config;
  caf::actor_system system{config};
  std::shared_ptr<role_targets> targets = std::make_shared<role_targets>("tokenizer", node_name("alpha"));
  caf::scoped_actor self{system};

  caf::strong_actor_ptr recorder() {
    caf::actor_config made;
    return caf::make_actor<last_message, caf::strong_actor_ptr>(
      system.next_actor_id(), system.node(), &system, made);
  }

  static last_message& seen_by(const caf::strong_actor_ptr& actor) {
    return static_cast<last_message&>(*actor->get());
  }

  template <class Answer, class Actor, class... Ask>
  result<Answer> ask(const Actor& whom, Ask... what) {
    result<Answer> out = fail(errc::internal, "no answer");
    self->request(whom, 10s, std::move(what)...)
      .receive([&](const Answer& answer) { out = answer; },
        [&](const caf::error& why) { out = tl::unexpected<error>(from_caf_error(why)); });
    return out;
  }
};

letter<schema::EncodeRequest> words(const std::string& text) {
  return letter<schema::EncodeRequest>::make([&](schema::EncodeRequest::Builder b) {
    b.setText({reinterpret_cast<const capnp::byte*>(text.data()), text.size()});
  });
}

/// A tokenizer that answers everything with one id.
tokenizer_actor spawn_numbered(caf::actor_system& system, std::uint32_t id) {
  return caf::actor_cast<tokenizer_actor>(system.spawn([id](caf::event_based_actor* self) -> caf::behavior {
    return {
      [id](const letter<schema::EncodeRequest>&) {
        return letter<schema::TokenIds>::make([id](schema::TokenIds::Builder b) { b.initIds(1).set(0, id); });
      },
      [self](stop_atom) { self->quit(); },
    };
  }));
}

caf::strong_actor_ptr pointer(const tokenizer_actor& actor) {
  return caf::actor_cast<caf::strong_actor_ptr>(actor);
}

/// What CAF keeps of an element in a message.
template <class T>
struct kept {
  static T make() { return T{}; }
};
template <caf::atom_value Value>
struct kept<caf::atom_constant<Value>> {
  static caf::atom_value make() { return Value; }
};

/// Sends each message of an interface through a handle, as a letter and as a request.
template <class Signature>
struct signature_check;

template <class... Ins, class Outs>
struct signature_check<caf::typed_mpi<caf::detail::type_list<Ins...>, Outs>> {
  static void run(fixture& f, const caf::strong_actor_ptr& handle, const caf::strong_actor_ptr& target) {
    auto& seen = fixture::seen_by(target);
    auto content = caf::make_message(kept<Ins>::make()...);
    const caf::type_erased_tuple& elements = content.content();
    const bool ours =
      elements.template match_elements<stop_atom>() || elements.template match_elements<drain_atom>();
    const auto asker = f.recorder();
    for (const auto id : {caf::make_message_id(), caf::make_message_id(77)}) {
      const auto before = seen.count;
      handle->enqueue(asker, id, content, nullptr);
      if (ours) {
        CHECK(seen.count == before);
        continue;
      }
      REQUIRE(seen.count == before + 1);
      CHECK(seen.element->content().template match_elements<Ins...>());
      CHECK(seen.element->sender == asker);
      CHECK(seen.element->mid == id);
    }
  }
};

template <class Interface>
struct interface_check;

template <class... Signatures>
struct interface_check<caf::typed_actor<Signatures...>> {
  static void run(fixture& f) {
    const auto target = f.recorder();
    const auto targets = std::make_shared<role_targets>("any", node_name("alpha"));
    targets->put(node_name("beta"), target);
    const auto handle = make_role_handle<caf::typed_actor<Signatures...>>(f.system, targets);
    (signature_check<Signatures>::run(f, caf::actor_cast<caf::strong_actor_ptr>(handle), target), ...);
    CHECK(fixture::seen_by(target).count > 0);
  }
};

} // namespace

TEST_CASE_METHOD(fixture, "every message of every interface passes through as it is, with its sender") {
  interface_check<tokenizer_actor>::run(*this);
  interface_check<generation_sink_actor>::run(*this);
  interface_check<router_actor>::run(*this);
  interface_check<placement_actor>::run(*this);
  interface_check<cache_client_actor>::run(*this);
  interface_check<cache_actor>::run(*this);
  interface_check<step_client_actor>::run(*this);
  interface_check<device_actor>::run(*this);
  interface_check<prefill_actor>::run(*this);
  interface_check<decode_actor>::run(*this);
  interface_check<event_sink_actor>::run(*this);
  interface_check<session_actor>::run(*this);
  interface_check<directory_actor>::run(*this);
  interface_check<node_actor>::run(*this);
}

TEST_CASE_METHOD(fixture, "an answer reaches whoever asked, from the target itself") {
  const auto one = spawn_numbered(system, 1);
  targets->put(node_name("beta"), pointer(one));
  const auto handle = make_role_handle<tokenizer_actor>(system, targets);
  const auto ids = ask<letter<schema::TokenIds>>(handle, words("x"));
  REQUIRE(ids);
  CHECK(ids->read().getIds()[0] == 1);
  CHECK(targets->refused == 0);
  self->send(one, stop_atom::value);
}

TEST_CASE_METHOD(fixture, "with nobody there requests are unavailable by name, and letters are counted") {
  const auto handle = make_role_handle<tokenizer_actor>(system, targets);
  const auto ids = ask<letter<schema::TokenIds>>(handle, words("x"));
  REQUIRE_FALSE(ids);
  CHECK(ids.error().code == errc::unavailable);
  CHECK(ids.error().message.find("tokenizer") != std::string::npos);
  CHECK(targets->refused == 1);
  self->send(handle, words("x"));
  CHECK(targets->dropped == 1);
}

TEST_CASE_METHOD(fixture, "when the target goes the next one is taken, with the same handle") {
  const auto one = spawn_numbered(system, 1);
  const auto two = spawn_numbered(system, 2);
  const auto handle = make_role_handle<tokenizer_actor>(system, targets);
  targets->put(node_name("beta"), pointer(one));
  targets->put(node_name("gamma"), pointer(two));
  CHECK(ask<letter<schema::TokenIds>>(handle, words("x"))->read().getIds()[0] == 1);
  targets->remove(node_name("beta"));
  CHECK(ask<letter<schema::TokenIds>>(handle, words("x"))->read().getIds()[0] == 2);
  targets->remove(node_name("gamma"));
  CHECK(ask<letter<schema::TokenIds>>(handle, words("x")).error().code == errc::unavailable);
  targets->put(node_name("beta"), pointer(one));
  CHECK(ask<letter<schema::TokenIds>>(handle, words("x"))->read().getIds()[0] == 1);
  self->send(one, stop_atom::value);
  self->send(two, stop_atom::value);
}

TEST_CASE_METHOD(fixture, "a request that a target takes with it when it ends has failed with peer_lost") {
  const auto one = spawn_numbered(system, 1);
  targets->put(node_name("beta"), pointer(one));
  const auto handle = make_role_handle<tokenizer_actor>(system, targets);
  self->send(one, stop_atom::value); // the request stands behind it in the mailbox, or meets a dead actor
  const auto ids = ask<letter<schema::TokenIds>>(handle, words("x"));
  REQUIRE_FALSE(ids);
  CHECK(ids.error().code == errc::peer_lost);
}

TEST_CASE_METHOD(fixture, "a handle takes no part in the end of this node") {
  const auto target = recorder();
  targets->put(node_name("beta"), target);
  const auto handle = make_role_handle<tokenizer_actor>(system, targets);
  self->send(handle, stop_atom::value);
  self->send_exit(handle, caf::exit_reason::user_shutdown);
  self->send_exit(handle, caf::exit_reason::kill);
  const auto drained = ask<letter<schema::Drained>>(handle, drain_atom::value);
  REQUIRE(drained);
  CHECK(drained->read().getRemaining() == 0);
  CHECK(seen_by(target).count == 0);
  self->send(handle, words("x"));
  CHECK(seen_by(target).count == 1);
}

TEST_CASE_METHOD(fixture, "letters go to a target that drains too, requests do not") {
  const auto one = recorder();
  const auto two = recorder();
  targets->put(node_name("beta"), one);
  targets->put(node_name("gamma"), two);
  targets->put(node_name("beta"), one, true);
  const auto handle = make_role_handle<tokenizer_actor>(system, targets);
  self->send(handle, words("letter"));
  CHECK(seen_by(one).count == 1);
  CHECK(seen_by(two).count == 1);
  caf::actor_cast<caf::strong_actor_ptr>(handle)->enqueue(
    recorder(), caf::make_message_id(5), caf::make_message(words("request")), nullptr);
  CHECK(seen_by(one).count == 1);
  CHECK(seen_by(two).count == 2);
}

TEST_CASE_METHOD(fixture, "a thousand requests of four threads all end while targets come and go") {
  const std::array all{spawn_numbered(system, 1), spawn_numbered(system, 2), spawn_numbered(system, 3)};
  const auto handle = make_role_handle<tokenizer_actor>(system, targets);
  std::atomic<int> answered{0};
  std::atomic<int> refused{0};
  std::atomic<int> other{0};
  std::atomic<bool> done{false};
  std::thread churn([&] {
    for (std::size_t i = 0; !done; ++i) {
      const node_name node("node-" + std::to_string(i % 3));
      if ((i / 3) % 2 == 0)
        targets->put(node, pointer(all[i % 3]), i % 5 == 0);
      else
        targets->remove(node);
      if (i % 16 == 0)
        std::this_thread::sleep_for(100us);
    }
  });
  std::vector<std::thread> askers;
  for (int t = 0; t < 4; ++t)
    askers.emplace_back([&] {
      caf::scoped_actor me{system};
      for (int i = 0; i < 250; ++i)
        me->request(handle, 30s, words("x"))
          .receive([&](const letter<schema::TokenIds>&) { ++answered; },
            [&](const caf::error& why) {
              ++(from_caf_error(why).code == errc::unavailable ? refused : other);
            });
    });
  for (auto& each : askers)
    each.join();
  done = true;
  churn.join();
  CHECK(answered + refused == 1000);
  CHECK(other == 0);
  CHECK(targets->refused == static_cast<std::uint64_t>(refused));
  for (const auto& each : all)
    self->send(each, stop_atom::value);
}
