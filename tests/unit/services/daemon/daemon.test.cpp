// A whole daemon, as a process runs it, one of whose parts cannot be kept running.

#include "services/daemon/daemon.hpp"

#include "tests/unit/services/daemon/tiny_mesh.hpp"
#include "tests/unit/services/daemon/tiny_node.hpp"

#include <future>

using namespace godwit;
using namespace godwit::test;

namespace {

/// What a program has written to a file so far.
std::string written(std::FILE* to) {
  std::string out(1 << 18, '\0');
  const auto got = ::pread(::fileno(to), out.data(), out.size(), 0);
  out.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return out;
}

class running_daemon {
 public:
  explicit running_daemon(config settings) {
    settings.model = folder_.path() / "tiny.gguf";
    settings.data = folder_.path() / "data";
    settings.threads = 1;
    settings.listen = {"127.0.0.1", 0};
    settings.drain_deadline = std::chrono::seconds(600); // longer than a slow machine takes for anything here
    write_tiny_model(settings.model);
    std::setvbuf(words_.get(), nullptr, _IONBF, 0);
    code_ = std::async(
      std::launch::async, [this, settings] { return run_node(settings, stop_, out_.get(), words_.get()); });
    tiny_node::until([&] { return ended() || written(out_.get()).find("ready on") != std::string::npos; });
    INFO(words());
    const auto line = written(out_.get());
    REQUIRE(line.find("127.0.0.1:") != std::string::npos);
    port_ = static_cast<std::uint16_t>(std::stoi(line.substr(line.find("127.0.0.1:") + 10)));
  }
  ~running_daemon() { stop_.request(); }

  std::uint16_t port() const { return port_; }
  std::string words() const { return written(words_.get()); }
  bool ended() const { return code_.wait_for(std::chrono::seconds(0)) == std::future_status::ready; }
  int code() { return code_.get(); }

  std::string ask(const std::string& request) const {
    http::test::raw_client client(port_);
    client.send(request);
    return client.read_all();
  }

 private:
  using file = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

  temporary_folder folder_;
  termination stop_{[] {}};
  file out_{std::tmpfile(), std::fclose};
  file words_{std::tmpfile(), std::fclose};
  std::uint16_t port_ = 0;
  std::future<int> code_; ///< last: it uses all of the above, and waits for its end
};

std::string get(const std::string& path) {
  return "GET " + path + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
}

} // namespace

TEST_CASE("a daemon whose tokenizer crashes again and again lets its streams end, and tells its peers, "
          "before it does") {
  const tiny_mesh mesh{"front", "work"};
  running_daemon front(mesh.settings("front", front_roles));
  tiny_node work(mesh.settings("work", worker_roles));
  tiny_node::until([&] { return front.ask(get("/readyz")).starts_with("HTTP/1.1 200 "); });
  const auto expected = text_of_stream(tiny_node::whole_stream(front.port()));
  REQUIRE_FALSE(expected.empty());

  // A stream that waits in the middle.
  work.faults->hold_in = 30;
  http::test::raw_client stream(front.port());
  stream.send(completion_request());
  tiny_node::until([&] { return work.faults->held.load(); });

  // Only its supervisor may stop a part: whoever else does it, it is a fault.
  const auto tokenizer = work.actors().others()->at<tokenizer_actor>(node_name("front"), "tokenizer");
  tiny_node::until([&] {
    caf::anon_send(tokenizer, stop_atom::value);
    return front.words().find("tokenizer cannot be kept running") != std::string::npos;
  });
  // Others know, nobody begins anything here, and the stream is still there.
  const auto seen_by_peer = [&] {
    const auto nodes = tiny_node::body_of(work.ask("GET", "/v1/nodes"));
    for (const auto& each : nodes["data"])
      if (each["name"] == "front")
        return each["state"].get<std::string>();
    return std::string();
  };
  tiny_node::until([&] { return seen_by_peer() == "draining"; });
  const auto readiness = front.ask(get("/readyz"));
  CHECK(readiness.starts_with("HTTP/1.1 503 "));
  CHECK(readiness.find("draining") != std::string::npos);
  CHECK(front.ask(completion_request()).starts_with("HTTP/1.1 503 "));
  CHECK_FALSE(front.ended());

  work.faults->held = false;
  CHECK(text_of_stream(tiny_node::whole_stream(stream)) == expected);
  CHECK(front.code() == 1);
}
