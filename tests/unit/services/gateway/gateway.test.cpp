#include "services/gateway/gateway.hpp"

#include "tests/unit/services/gateway/fixture.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

using namespace godwit;
using namespace godwit::test;
using nlohmann::json;

namespace {

int status_of(const std::shared_ptr<client_view>& view) {
  return view->answer ? view->answer->status : 0;
}

json body_of(const std::shared_ptr<client_view>& view) {
  return view->answer ? json::parse(view->answer->body) : json();
}

} // namespace

TEST_CASE_METHOD(fixture, "an unknown route is not found, and a known one names its methods") {
  CHECK(status_of(ask("GET", "/v1/nothing")) == 404);
  const auto refused = ask("DELETE", "/v1/chat/completions");
  CHECK(status_of(refused) == 405);
  CHECK(refused->answer->fields.back() == std::pair<std::string, std::string>{"Allow", "POST"});
}

TEST_CASE_METHOD(fixture, "a body that is not said to be JSON is refused before it is read") {
  const auto type =
    GENERATE(as<std::string>{}, "text/plain", "application/x-www-form-urlencoded", "application/xml");
  const auto path = GENERATE_COPY(as<std::string>{}, "/v1/chat/completions", "/v1/sessions",
    "/v1/sessions/" + session_id + "/messages", "/v1/sessions/" + session_id + "/cancel");
  CHECK(status_of(ask("POST", path, "{}", {{"Content-Type", type}})) == 415);
  CHECK(world_->created.empty());
}

TEST_CASE_METHOD(fixture, "a body with a content coding is refused by the name of the header") {
  const auto path = GENERATE_COPY(as<std::string>{}, "/v1/chat/completions", "/v1/sessions",
    "/v1/sessions/" + session_id + "/messages", "/v1/sessions/" + session_id + "/cancel");
  const auto coding = GENERATE(as<std::string>{}, "gzip", "identity, br", "x");
  const std::pair<std::string, std::string> json{"Content-Type", "application/json"};
  const auto refused = ask("POST", path, "{}", {json, {"content-encoding", coding}});
  CHECK(status_of(refused) == 415);
  CHECK(body_of(refused)["error"]["code"] == "unsupported_content_encoding");
  CHECK(
    body_of(refused)["error"]["message"].get<std::string>().find("Content-Encoding") != std::string::npos);
  CHECK(
    status_of(ask("POST", path, "{}", {json, {"Content-Encoding", "identity"}, {"Content-Encoding", "gzip"}}))
    == 415);
  CHECK(world_->created.empty());
  CHECK(world_->posted.empty());
}

TEST_CASE_METHOD(fixture, "the coding identity changes nothing") {
  const auto coding = GENERATE(as<std::string>{}, "identity", " Identity ", "");
  CHECK(status_of(ask(
          "POST", "/v1/sessions", "{}", {{"Content-Type", "application/json"}, {"Content-Encoding", coding}}))
        == 201);
}

TEST_CASE_METHOD(fixture, "malformed bodies are refused with 400 on every call that reads one") {
  const auto path = GENERATE_COPY(as<std::string>{}, "/v1/chat/completions", "/v1/sessions",
    "/v1/sessions/" + session_id + "/messages", "/v1/sessions/" + session_id + "/cancel",
    "/v1/sessions/" + session_id + "/fork");
  const auto body = GENERATE(as<std::string>{}, "{", "[]", "nonsense", "{\"a\":\"\xff\"}");
  CHECK(status_of(ask("POST", path, body)) == 400);
  CHECK(status_of(ask("POST", path, std::string(1000, '['))) == 400);
  CHECK(status_of(ask("POST", path, std::string(50'000, '['))) == 400);
}

TEST_CASE_METHOD(fixture, "a body over the limit is too large on every call that reads one") {
  const auto path = GENERATE_COPY(
    as<std::string>{}, "/v1/chat/completions", "/v1/sessions", "/v1/sessions/" + session_id + "/messages");
  CHECK(status_of(ask("POST", path, std::string(33'000'000, ' '))) == 413);
}

TEST_CASE_METHOD(fixture, "unknown query parameters are refused by name") {
  const auto refused = ask("GET", "/v1/models?page=1");
  CHECK(status_of(refused) == 400);
  CHECK(body_of(refused)["error"]["param"] == "page");
}

TEST_CASE_METHOD(fixture, "a malformed tenant is refused on every call") {
  const auto path = GENERATE(as<std::string>{}, "/v1/sessions", "/v1/models");
  CHECK(status_of(ask("GET", path, {}, {{"X-Tenant-ID", "a b"}})) == 400);
}

TEST_CASE_METHOD(fixture, "health, metrics and models are answered at once") {
  CHECK(status_of(ask("GET", "/healthz")) == 200);
  const auto metrics = ask("GET", "/metrics");
  CHECK(metrics->answer->body == "up 1\n");
  CHECK(body_of(ask("GET", "/v1/models"))["data"][0]["id"] == "m");
  CHECK(body_of(ask("GET", "/v1/models/m"))["id"] == "m");
  const auto unknown = ask("GET", "/v1/models/other");
  CHECK(status_of(unknown) == 404);
  CHECK(body_of(unknown)["error"]["code"] == "model_not_found");
}

TEST_CASE_METHOD(fixture, "readiness follows the node") {
  CHECK(status_of(ask("GET", "/readyz")) == 200);
  world_->node_state = "starting";
  const auto waiting = ask("GET", "/readyz");
  CHECK(status_of(waiting) == 503);
  CHECK(body_of(waiting)["reasons"][0]["state"] == "starting");
  CHECK(body_of(ask("GET", "/v1/nodes"))["data"][0]["name"] == "n1");
  CHECK(body_of(ask("GET", "/v1/actors"))["data"].empty());
}

namespace {

/// A gateway of a node that has not this role.
struct no_gateway : fixture {
  no_gateway() : fixture(false) {}
};

struct one_of_many : fixture {
  one_of_many() : fixture(true, true) {
    world_->all_nodes = letter<schema::NodeList>::make([](schema::NodeList::Builder b) {
      auto nodes = b.initNodes(2);
      nodes[0].setName("n1");
      nodes[0].setLink("self");
      nodes[1].setName("n2");
      nodes[1].setLink("up");
      auto actors = nodes[1].initActors(1);
      actors[0].setName("prefill");
      actors[0].setState("ready");
    });
  }
};

} // namespace

TEST_CASE_METHOD(one_of_many, "all nodes are shown, and the actors of all or of one") {
  CHECK(body_of(ask("GET", "/v1/nodes"))["data"].size() == 2);
  CHECK(body_of(ask("GET", "/v1/actors"))["data"][0]["node"] == "n2");
  CHECK(body_of(ask("GET", "/v1/actors?node=n1"))["data"].empty());
  CHECK(body_of(ask("GET", "/v1/actors?node=n2"))["data"].size() == 1);
  const auto unknown = ask("GET", "/v1/actors?node=n3");
  CHECK(status_of(unknown) == 404);
  CHECK(body_of(unknown)["error"]["code"] == "node_not_found");
  CHECK(status_of(ask("GET", "/v1/actors?name=n1")) == 400);
}

TEST_CASE_METHOD(fixture, "a node that is told to drain says so at once") {
  const auto told = ask("POST", "/v1/nodes/n1/drain");
  CHECK(status_of(told) == 202);
  CHECK(told->answer->body == R"({"name":"n1","state":"draining"})");
  CHECK(world_->leaves == 1);
  CHECK(status_of(ask("POST", "/v1/nodes/n2/drain")) == 404);
  CHECK(status_of(ask("POST", "/v1/nodes/n1/drain", R"({"now":true})")) == 400);
  CHECK(world_->leaves == 1);
}

TEST_CASE_METHOD(
  fixture, "the letters of an actor are traced within limits, and what is out of them is refused") {
  const auto traced = ask("POST", "/v1/actors/router/trace?node=n1", R"({"letters":5,"seconds":2})");
  CHECK(status_of(traced) == 200);
  CHECK(body_of(traced)["actor"] == "router");
  CHECK(body_of(traced)["letters"][0]
        == json::parse(R"({"at_s":0.0015,"kind":"letter","types":"TokenBatch","bytes":64,"from":"decode"})"));
  CHECK(
    body_of(traced)["letters"][1]
    == json::parse(R"({"at_s":0.002,"kind":"request","types":"CacheLookup","bytes":8,"to":"cache on n2"})"));
  REQUIRE(world_->traces.size() == 1);
  CHECK(world_->traces[0].read().getActor() == "router");
  CHECK(world_->traces[0].read().getLetters() == 5);
  CHECK(world_->traces[0].read().getMilliseconds() == 2'000);
  CHECK(status_of(ask("POST", "/v1/actors/router/trace")) == 200);
  CHECK(world_->traces.back().read().getLetters() == 100);
  CHECK(status_of(ask("POST", "/v1/actors/router/trace?node=n2")) == 404);
  CHECK(status_of(ask("POST", "/v1/actors/router/trace?name=n1")) == 400);
  for (const auto* body :
    {R"({"letters":0})", R"({"letters":1001})", R"({"seconds":61})", R"({"content":true})"})
    CHECK(status_of(ask("POST", "/v1/actors/router/trace", body)) == 400);
  CHECK(world_->traces.size() == 2);
}

TEST_CASE_METHOD(fixture, "a node whose roles elsewhere are away is not ready, and names them") {
  world_->absent = {{"tokenizer", "no node with it is there"}};
  const auto refused = ask("GET", "/readyz");
  CHECK(status_of(refused) == 503);
  CHECK(body_of(refused)["reasons"][0]["role"] == "tokenizer");
  CHECK(body_of(refused)["reasons"][0]["state"] == "away");
}

TEST_CASE_METHOD(no_gateway, "a node without the role gateway answers its operators and nobody else") {
  CHECK(status_of(ask("GET", "/healthz")) == 200);
  CHECK(status_of(ask("GET", "/readyz")) == 200);
  CHECK(status_of(ask("GET", "/metrics")) == 200);
  CHECK(status_of(ask("GET", "/v1/nodes")) == 200);
  CHECK(status_of(ask("GET", "/v1/actors")) == 200);
  CHECK(status_of(ask("POST", "/v1/nodes/n1/drain")) == 202);
  for (const auto& refused : {ask("POST", "/v1/sessions"), ask("GET", "/v1/sessions"),
         ask("GET", "/v1/models"), ask("POST", "/v1/chat/completions", chat_body)}) {
    CHECK(status_of(refused) == 404);
    CHECK(body_of(refused)["error"]["code"] == "no_gateway");
  }
  CHECK(world_->created.empty());
}

TEST_CASE_METHOD(fixture, "a node whose journal cannot be written is not ready") {
  world_->journal_trouble = "the disk refuses";
  const auto refused = ask("GET", "/readyz");
  CHECK(status_of(refused) == 503);
  CHECK(body_of(refused)["reasons"][0]["actor"] == "journal");
  CHECK(body_of(refused)["reasons"][0]["reason"] == "the disk refuses");
  world_->journal_trouble.clear();
  CHECK(status_of(ask("GET", "/readyz")) == 200);
}

TEST_CASE_METHOD(fixture, "a draining gateway takes no new work but still shows what there is") {
  gateway_->drain();
  const auto refused = ask("POST", "/v1/chat/completions", chat_body);
  CHECK(status_of(refused) == 503);
  CHECK(refused->answer->fields.back().first == "Retry-After");
  CHECK(status_of(ask("POST", "/v1/sessions")) == 503);
  CHECK(status_of(ask("POST", "/v1/sessions/" + session_id + "/messages", R"({"content":"x"})")) == 503);
  CHECK(status_of(ask("GET", "/readyz")) == 503);
  CHECK(status_of(ask("GET", "/healthz")) == 200);
  CHECK(status_of(ask("GET", "/v1/sessions/" + session_id)) == 200);
}

TEST_CASE_METHOD(fixture, "what is not built yet says so") {
  const std::string call = "migrate";
  const auto refused = ask("POST", "/v1/sessions/" + session_id + "/" + call, "{}");
  CHECK(status_of(refused) == 400);
  CHECK(body_of(refused)["error"]["code"] == "unsupported_call");
  CHECK_FALSE(body_of(refused)["error"].contains("param"));
}
