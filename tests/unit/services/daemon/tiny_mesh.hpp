#pragma once

#include "services/config/config.hpp"
#include "tests/support/temporary_folder.hpp"

#include <catch2/catch.hpp>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <string>

namespace godwit::test {

/// A list of nodes on loopback, without keys. Each process has an address of its own, so that tests that run
/// side by side do not meet.
class tiny_mesh {
 public:
  explicit tiny_mesh(std::initializer_list<const char*> names) {
    static unsigned next = 0;
    const auto process = static_cast<unsigned>(::getpid());
    std::ofstream list(list_);
    for (const auto* name : names) {
      ++next;
      list << "[[node]]\nname = \"" << name << "\"\nhost = \"127." << 1 + process / 250 % 250 << '.'
           << 1 + process % 250 << '.' << next << "\"\nport = 7401\n";
    }
  }

  config settings(const std::string& node, const std::string& roles) const {
    auto made = load_config(
      {{"node", node}, {"roles", roles}, {"mesh-nodes", list_.string()}, {"mesh-plain", "1"}}, {});
    REQUIRE(made);
    return *made;
  }

 private:
  temporary_folder folder_;
  std::filesystem::path list_ = folder_.path() / "mesh.toml";
};

inline constexpr auto front_roles = "gateway,session,router,tokenizer";
inline constexpr auto worker_roles = "prefill,decode,cache";

} // namespace godwit::test
