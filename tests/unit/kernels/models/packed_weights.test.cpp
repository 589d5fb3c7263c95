// Packed weights beside a model: the same bits from them, and from the file when they cannot be used.
#include "tests/support/temporary_folder.hpp"
#include "tests/support/tiny_llama.hpp"
#include "tests/unit/kernels/models/running.hpp"

#include <catch2/catch.hpp>

#include <fstream>

using namespace godwit;
using gguf::tensor_type;

namespace {

struct loaded {
  std::vector<float> logits;
  std::vector<std::string> notices;
};

loaded run(const memory_model& made, const std::filesystem::path& packed, const std::string& ops = "cpu") {
  loaded out;
  auto runs = model::load(made.file(),
    {.implementation = ops, .threads = 2, .packed = packed, .notice = [&](const std::string& what) {
       out.notices.push_back(what);
     }});
  REQUIRE(runs);
  const auto pool = page_pool::create((*runs)->shape().kv, 8).value();
  sequence target{*pool};
  out.logits = append(**runs, target, random_tokens(40, 1, 99), 7);
  return out;
}

} // namespace

TEST_CASE("weights that were packed before give the same bits, on every target") {
  const temporary_folder folder;
  const auto path = folder.path() / "tiny.gguf.packed";
  const memory_model made{tiny_llama{.embedding = 256, .feed_forward = 256, .type = tensor_type::q5_k}};
  const auto expected = run(made, {});
  CHECK(run(made, path).logits == expected.logits);
  REQUIRE(std::filesystem::exists(path));
  const auto written = std::filesystem::last_write_time(path);
  for (const std::string ops : {"cpu", "cpu:scalar", "cpu"}) {
    const auto again = run(made, path, ops);
    CHECK(again.logits == expected.logits);
    CHECK(again.notices.empty());
  }
  CHECK(std::filesystem::last_write_time(path) == written);
}

TEST_CASE("a damaged or foreign file of packed weights is named once, made anew, and changes no bit") {
  const temporary_folder folder;
  const auto path = folder.path() / "tiny.gguf.packed";
  const memory_model made{tiny_llama{}};
  const auto expected = run(made, path);
  {
    std::fstream file{path, std::ios::binary | std::ios::in | std::ios::out};
    file.seekp(-100, std::ios::end);
    file.write("damaged", 7);
  }
  const auto damaged = run(made, path);
  CHECK(damaged.logits == expected.logits);
  REQUIRE(damaged.notices.size() == 1);
  CHECK(damaged.notices[0].find("damaged") != std::string::npos);
  CHECK(run(made, path).notices.empty());

  const memory_model other{tiny_llama{.seed = 2}};
  const auto foreign = run(other, path);
  CHECK(foreign.logits == run(other, {}).logits);
  REQUIRE(foreign.notices.size() == 1);
  CHECK(foreign.notices[0].find("another model") != std::string::npos);
}

TEST_CASE("a place where nothing can be written is told, and the model runs") {
  const memory_model made{tiny_llama{}};
  const auto out = run(made, "/proc/none/tiny.packed");
  CHECK(out.logits == run(made, {}).logits);
  REQUIRE(out.notices.size() == 1);
}
