#include "actors/tokenizer/actor.hpp"

#include "kernels/gguf/writer.hpp"
#include "messages/actor_error.hpp"
#include "tests/support/byte_tokenizer.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/scheduler/test_coordinator.hpp>
#include <caf/scoped_actor.hpp>
#include <catch2/catch.hpp>

using namespace godwit;

namespace {

struct config : caf::actor_system_config {
  config() { set("scheduler.policy", caf::atom("testing")); }
};

/// A tokenizer actor on CAF's deterministic scheduler.
struct fixture {
  config settings;
  caf::actor_system system{settings};
  caf::scheduler::test_coordinator& scheduler =
    dynamic_cast<caf::scheduler::test_coordinator&>(system.scheduler());
  caf::scoped_actor self{system};
  tokenizer_actor subject = start();

  tokenizer_actor start() {
    gguf::writer made;
    made.add("tokenizer.chat_template", "{{ messages[0].role }}<end>");
    const auto bytes = made.finish();
    return spawn_tokenizer(
      system, std::make_shared<const byte_tokenizer>(), *chat_template::load(**gguf::file::parse(bytes)));
  }

  ~fixture() {
    self->send(subject, stop_atom::value);
    scheduler.run();
  }

  /// The answer to a request, or the error.
  template <class Answer, class... Ask>
  result<Answer> ask(Ask... what) {
    auto pending = self->request(subject, std::chrono::seconds(5), std::move(what)...);
    scheduler.run();
    result<Answer> out = fail(errc::internal, "no answer");
    pending.receive([&](const Answer& answer) { out = answer; },
      [&](const caf::error& why) { out = tl::unexpected<error>(from_caf_error(why)); });
    return out;
  }
};

letter<schema::EncodeRequest> text(std::string_view bytes) {
  return letter<schema::EncodeRequest>::make([&](schema::EncodeRequest::Builder b) {
    b.setText({reinterpret_cast<const capnp::byte*>(bytes.data()), bytes.size()});
    b.setSpecial(true);
  });
}

} // namespace

TEST_CASE_METHOD(fixture, "the tokenizer actor encodes, decodes and renders") {
  const auto ids = ask<letter<schema::TokenIds>>(text("a<end>"));
  REQUIRE(ids);
  CHECK(ids->read().getIds()[1] == 256);
  const auto decoded = ask<letter<schema::DecodedText>>(
    letter<schema::DecodeRequest>::make([](schema::DecodeRequest::Builder b) { b.initIds(1).set(0, 'q'); }));
  REQUIRE(decoded);
  CHECK(decoded->read().getText().size() == 1);
  const auto chat = ask<letter<schema::RenderedChat>>(letter<schema::RenderRequest>::make(
    [](schema::RenderRequest::Builder b) { b.initMessages(1)[0].setRole("user"); }));
  REQUIRE(chat);
  CHECK(chat->read().getIds().size() == 5);
}

TEST_CASE_METHOD(fixture, "the tokenizer actor passes failures on") {
  const auto out = ask<letter<schema::DecodedText>>(
    letter<schema::DecodeRequest>::make([](schema::DecodeRequest::Builder b) { b.initIds(1).set(0, 9999); }));
  REQUIRE_FALSE(out);
  CHECK(out.error().code == errc::invalid_argument);
  CHECK(out.error().param == "ids");
}

TEST_CASE_METHOD(fixture, "the tokenizer actor drains at once, and then refuses") {
  CHECK(ask<letter<schema::ActorStatus>>(status_atom::value)->read().getState() == "ready");
  CHECK(ask<letter<schema::Drained>>(drain_atom::value)->read().getRemaining() == 0);
  CHECK(ask<letter<schema::ActorStatus>>(status_atom::value)->read().getState() == "draining");
  CHECK(ask<letter<schema::TokenIds>>(text("a")).error().code == errc::draining);
}

TEST_CASE_METHOD(fixture, "the tokenizer actor ends when it is told to") {
  self->send(subject, stop_atom::value);
  scheduler.run();
  CHECK(ask<letter<schema::ActorStatus>>(status_atom::value).error().code == errc::peer_lost);
}
