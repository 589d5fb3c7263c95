#include "tests/unit/services/gateway/fixture.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

using namespace godwit;
using namespace godwit::test;
using nlohmann::json;

namespace {

const std::string one = "/v1/sessions/" + fixture::session_id;
const std::string other = "/v1/sessions/ses_ffffffffffffffffffffffffffffffff";

int status_of(const std::shared_ptr<client_view>& view) {
  return view->answer ? view->answer->status : 0;
}

json body_of(const std::shared_ptr<client_view>& view) {
  return view->answer ? json::parse(view->answer->body) : json();
}

} // namespace

TEST_CASE_METHOD(fixture, "a session is created for the tenant with the node's model and a drawn seed") {
  const auto view = ask("POST", "/v1/sessions", R"({"system":"Be short.","on_busy":"reject","ttl_s":5})",
    {{"X-Tenant-ID", "acme"}});
  CHECK(status_of(view) == 201);
  CHECK(body_of(view)["id"] == session_id);
  const auto settings = world_->created.at(0).read();
  CHECK(settings.getTenant() == "acme");
  CHECK(settings.getModel() == "m");
  CHECK(settings.getHasSystem());
  CHECK(settings.getSystem() == "Be short.");
  CHECK(settings.getOnBusy() == schema::OnBusy::REJECT);
  CHECK(settings.getTtlSeconds() == 5);
  CHECK(settings.getSampling().getSeed() != 0);
  CHECK(view->dropped);
}

TEST_CASE_METHOD(fixture, "a session needs no body, and a large one is taken too") {
  CHECK(status_of(ask("POST", "/v1/sessions")) == 201);
  CHECK(status_of(ask("POST", "/v1/sessions", json{{"system", std::string(100'000, 'x')}}.dump())) == 201);
}

TEST_CASE_METHOD(fixture, "a session of an unknown model is refused") {
  CHECK(status_of(ask("POST", "/v1/sessions", R"({"model":"other"})")) == 404);
  CHECK(world_->created.empty());
}

TEST_CASE_METHOD(fixture, "sessions are listed by page and tenant") {
  const auto view = ask("GET", "/v1/sessions?limit=7", {}, {{"X-Tenant-ID", "acme"}});
  CHECK(status_of(view) == 200);
  CHECK(body_of(view)["object"] == "list");
  CHECK(world_->listed.at(0).read().getLimit() == 7);
  CHECK(world_->listed.at(0).read().getTenant() == "acme");
  CHECK(status_of(ask("GET", "/v1/sessions?limit=0")) == 400);
}

TEST_CASE_METHOD(fixture, "an unknown session is not found, by every call") {
  CHECK(status_of(ask("GET", other)) == 404);
  CHECK(status_of(ask("GET", "/v1/sessions/nonsense")) == 404);
  CHECK(status_of(ask("GET", other + "/transcript")) == 404);
  CHECK(status_of(ask("GET", other + "/events")) == 404);
  CHECK(status_of(ask("POST", other + "/cancel")) == 404);
  CHECK(status_of(ask("POST", other + "/fork")) == 404);
  CHECK(status_of(ask("POST", other + "/messages", R"({"content":"x"})")) == 404);
  CHECK(status_of(ask("POST", other + "/messages", R"({"content":"x","stream":true})")) == 404);
}

TEST_CASE_METHOD(fixture, "a session is suspended, and no field is taken for that") {
  const auto view = ask("POST", one + "/suspend");
  CHECK(status_of(view) == 200);
  CHECK(body_of(view)["status"] == "suspended");
  CHECK(status_of(ask("POST", one + "/suspend", "{}")) == 200);
  CHECK(world_->suspensions == 2);
  const auto refused = ask("POST", one + "/suspend", R"({"to":"disk"})");
  CHECK(status_of(refused) == 400);
  CHECK(body_of(refused)["error"]["param"] == "to");
  CHECK(status_of(ask("POST", other + "/suspend")) == 404);
  CHECK(world_->suspensions == 2);
}

TEST_CASE_METHOD(
  fixture, "a session is pinned for some seconds, and what is out of range is refused by name") {
  const auto view = ask("POST", one + "/pin", R"({"ttl_seconds":60})");
  CHECK(status_of(view) == 200);
  CHECK(body_of(view) == json{{"id", session_id}, {"pinned_tokens", 48}, {"expires_at", 1700000060}});
  CHECK(world_->pins == std::vector<std::uint32_t>{60});
  for (const auto* body : {R"({"ttl_seconds":0})", R"({"ttl_seconds":86401})", R"({"ttl_seconds":-1})",
         R"({"ttl_seconds":1.5})", R"({"ttl_seconds":"60"})", "{}"}) {
    const auto refused = ask("POST", one + "/pin", body);
    CHECK(status_of(refused) == 400);
    CHECK(body_of(refused)["error"]["param"] == "ttl_seconds");
  }
  CHECK(
    body_of(ask("POST", one + "/pin", R"({"ttl_seconds":60,"tier":"host"})"))["error"]["param"] == "tier");
  CHECK(status_of(ask("POST", one + "/pin")) == 400);
  CHECK(status_of(ask("POST", other + "/pin", R"({"ttl_seconds":60})")) == 404);
  CHECK(world_->pins.size() == 1);

  const auto ended = ask("DELETE", one + "/pin");
  CHECK(status_of(ended) == 200);
  CHECK(body_of(ended) == json{{"id", session_id}, {"pinned_tokens", 0}, {"expires_at", nullptr}});
  CHECK(world_->unpins == 1);
  CHECK(status_of(ask("DELETE", other + "/pin")) == 404);
  CHECK(status_of(ask("GET", one + "/pin")) == 405);
}

TEST_CASE_METHOD(fixture, "a pin over the tenant's quota is a conflict that tells both numbers") {
  world_->session_error =
    error{errc::conflict, "the tenant would pin 30 blocks, and may pin 16", {}, "pin_quota"};
  const auto view = ask("POST", one + "/pin", R"({"ttl_seconds":60})");
  CHECK(status_of(view) == 409);
  CHECK(body_of(view)["error"]["code"] == "pin_quota");
  CHECK(body_of(view)["error"]["message"] == "the tenant would pin 30 blocks, and may pin 16");
}

TEST_CASE_METHOD(fixture, "a session is shown, read, forked and erased") {
  CHECK(body_of(ask("GET", one))["id"] == session_id);
  CHECK(body_of(ask("GET", one + "/transcript"))["messages"].is_array());
  const auto fork = ask("POST", one + "/fork", R"({"at":3})");
  CHECK(status_of(fork) == 201);
  CHECK(world_->forks.at(0).read().getAt() == "3");
  const auto erased = ask("DELETE", one, {}, {{"X-Tenant-ID", "acme"}});
  CHECK(body_of(erased)["deleted"] == true);
  CHECK(world_->erased.at(0).read().getTenant() == "acme");
}

TEST_CASE_METHOD(fixture, "a message is accepted with its turn and place") {
  const auto view = ask("POST", one + "/messages", R"({"content":"Hi"})", {{"Idempotency-Key", "k1"}});
  CHECK(status_of(view) == 202);
  CHECK(body_of(view) == json::parse(R"({"turn":2,"sequence":11,"after":"10"})"));
  const auto posted = world_->posted.at(0).read();
  CHECK(posted.getContent() == "Hi");
  CHECK(posted.getIdempotencyKey() == "k1");
  CHECK(posted.getBodyHash().size() == 16);
  CHECK_FALSE(posted.getCancelOnDisconnect());
}

TEST_CASE_METHOD(fixture, "a key with another body is the session's to refuse with 422") {
  world_->session_error =
    error{errc::unprocessable, "that key stands for another body", "Idempotency-Key", {}};
  CHECK(status_of(ask("POST", one + "/messages", R"({"content":"Hi"})", {{"Idempotency-Key", "k1"}})) == 422);
}

TEST_CASE_METHOD(fixture, "cancelling on disconnect needs a connection to watch") {
  const auto view = ask("POST", one + "/messages", R"({"content":"Hi","on_disconnect":"cancel"})");
  CHECK(status_of(view) == 400);
  CHECK(body_of(view)["error"]["param"] == "on_disconnect");
  CHECK(world_->posted.empty());
}

TEST_CASE_METHOD(fixture, "a cancel answers with the true state of the turn") {
  const auto view = ask("POST", one + "/cancel", R"({"turn":2})");
  CHECK(status_of(view) == 200);
  CHECK(body_of(view)["status"] == "cancelled");
  CHECK(world_->cancelled_turns.at(0).read().getTurn() == 2);
  CHECK(world_->cancelled_turns.at(0).read().getCause() == schema::EndCause::CANCELLED);
}

TEST_CASE_METHOD(fixture, "what the mesh refuses reaches the client with its status") {
  world_->session_error = error{errc::overloaded, "too many messages wait", {}, {}};
  const auto view = ask("POST", one + "/messages", R"({"content":"Hi"})");
  CHECK(status_of(view) == 529);
  world_->directory_error = error{errc::draining, "the node is being shut down", {}, {}};
  CHECK(status_of(ask("GET", one)) == 503);
}

TEST_CASE_METHOD(
  fixture, "a message that meets an overtaken owner is posted to the new one, as the same message") {
  world_->session_error = error{errc::stale_epoch, "another node owns the session", {}, {}};
  const auto named = GENERATE(false, true);
  const auto view = ask("POST", one + "/messages", R"({"content":"Hi"})",
    named ? http::headers{{"Idempotency-Key", "k1"}} : http::headers{});
  CHECK_FALSE(view->answer);
  world_->session_error.reset();
  pass(std::chrono::seconds(1));
  CHECK(status_of(view) == 202);
  CHECK(view->dropped);
  CHECK(world_->located.size() == 2);
  REQUIRE(world_->posted.size() == 2);
  const auto first = world_->posted[0].read();
  const auto second = world_->posted[1].read();
  CHECK(first.getIdempotencyKey().size() > 0);
  CHECK(first.getIdempotencyKey() == second.getIdempotencyKey());
  CHECK(first.getBodyHash() == second.getBodyHash());
  CHECK((first.getIdempotencyKey() == "k1") == named);
}

TEST_CASE_METHOD(fixture, "messages without keys have different ones inside") {
  ask("POST", one + "/messages", R"({"content":"Hi"})");
  ask("POST", one + "/messages", R"({"content":"Hi"})");
  CHECK(world_->posted.at(0).read().getIdempotencyKey() != world_->posted.at(1).read().getIdempotencyKey());
}

TEST_CASE_METHOD(fixture, "an owner that stays away is told within the call's time") {
  world_->session_error = error{errc::stale_epoch, "another node owns the session", {}, {}};
  const auto view = ask("POST", one + "/messages", R"({"content":"Hi"})");
  pass(std::chrono::seconds(16));
  CHECK(status_of(view) == 503);
  CHECK(body_of(view)["error"]["code"] == "stale_epoch");
}

TEST_CASE_METHOD(fixture, "what may have been done is not asked again") {
  const auto lost = GENERATE(errc::peer_lost, errc::stale_epoch);
  world_->session_error = error{lost, "not any more", {}, {}};
  // A cancel without a number might end the next turn.
  CHECK(status_of(ask("POST", one + "/cancel")) == 503);
  CHECK(world_->cancelled_turns.size() == 1);
  // A fork that a lost owner may have made; one that was overtaken has made none.
  const auto fork = ask("POST", one + "/fork");
  CHECK(status_of(fork) == (lost == errc::peer_lost ? 503 : 0));
  world_->session_error.reset();
  pass(std::chrono::seconds(1));
  CHECK(status_of(fork) == (lost == errc::peer_lost ? 503 : 201));
}
