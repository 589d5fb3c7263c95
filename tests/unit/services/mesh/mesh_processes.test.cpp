// Nodes in processes of their own, so that they can be killed and stopped.

#include "services/mesh/static_registry.hpp"
#include "tests/support/other_process.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/unit/services/mesh/free_ports.hpp"
#include "tests/unit/services/mesh/mesh_nodes.hpp"

#include <catch2/catch.hpp>

#include <csignal>
#include <cstdlib>
#include <fstream>

using namespace godwit;
using namespace std::chrono_literals;

namespace {

/// The node beta of a list, in a process of its own.
struct beta_process : other_process {
  explicit beta_process(const std::filesystem::path& list)
    : other_process("the other process of a mesh", "GODWIT_TEST_MESH", list.string()) {}
};

struct fixture {
  temporary_folder folder;
  std::filesystem::path list = folder.path() / "nodes.toml";
  std::unique_ptr<test_node> alpha;
  tokenizer_actor tokenizer;

  fixture() {
    const auto ports = free_ports(6);
    {
      std::ofstream out(list);
      for (std::size_t i = 0; i < 2; ++i)
        out << "[[node]]\nname = \"" << (i == 0 ? "alpha" : "beta")
            << "\"\nhost = \"127.0.0.1\"\nletters_port = " << ports[3 * i]
            << "\nbulk_port = " << ports[3 * i + 1] << "\nevents_port = " << ports[3 * i + 2] << "\n";
    }
    alpha = std::make_unique<test_node>("alpha", *static_registry::load({list, node_name("alpha"), true}),
      std::vector<std::string>{"gateway"}, test_node::change{}, false);
    alpha->serve();
    tokenizer = alpha->of().role<tokenizer_actor>("tokenizer");
  }
};

} // namespace

TEST_CASE("the other process of a mesh", "[.]") {
  const char* const list = std::getenv("GODWIT_TEST_MESH");
  if (list == nullptr)
    return; // not started by the tests below
  test_node beta("beta", *static_registry::load({list, node_name("beta"), true}), {"tokenizer"}, {}, false);
  beta.serve();
  other_process::wait_for_end();
}

TEST_CASE_METHOD(fixture, "a node that is killed is out of use soon, and in use again after its next start") {
  for (int i = 0; i < 2; ++i) {
    beta_process beta(list);
    REQUIRE(eventually([&] { return alpha->asked(tokenizer) == "beta"; }));
    beta.signal(SIGKILL);
    REQUIRE(eventually([&] { return alpha->targets("tokenizer", 0); }));
    CHECK(alpha->asked(tokenizer) == "unavailable");
    CHECK(alpha->list()["beta"].link == "away");
  }
}

TEST_CASE_METHOD(fixture, "a node that was stopped for a while is used again, as another incarnation") {
  const beta_process beta(list);
  REQUIRE(eventually([&] { return alpha->asked(tokenizer) == "beta"; }));
  const auto incarnation = [&] {
    const auto peers = alpha->of().figures().peers;
    return peers.empty() ? 0 : peers[0].incarnation;
  };
  REQUIRE(eventually([&] { return incarnation() != 0; }));
  const auto before = incarnation();
  CHECK(alpha->list()["beta"].incarnation == std::to_string(before));
  beta.signal(SIGSTOP);
  REQUIRE(eventually([&] { return alpha->targets("tokenizer", 0); }));
  std::this_thread::sleep_for(2s); // until it will know itself that it was stopped
  beta.signal(SIGCONT);
  REQUIRE(eventually([&] { return alpha->targets("tokenizer", 1); }));
  CHECK(alpha->asked(tokenizer) == "beta");
  CHECK(eventually([&] { return incarnation() > before; }));
  // It calls itself by the same one.
  CHECK(eventually([&] { return alpha->list()["beta"].incarnation == std::to_string(incarnation()); }));
}
