#include "services/link/hello.hpp"

#include <catch2/catch.hpp>

using namespace godwit;
using namespace godwit::link;

namespace {

hello some(const char* name = "alpha") {
  return {.node = node_name(name),
    .incarnation = 3,
    .session = 4,
    .seen = 5,
    .software = "0.1.0",
    .hash_mode = "kv-1",
    .models = {{"small", "f00d"}}};
}

} // namespace

TEST_CASE("a hello survives its letter") {
  const auto back = from_letter(to_letter(some()));
  REQUIRE(back);
  CHECK(*back == some());
}

TEST_CASE("a hello without numbers or with a name that is none is refused") {
  const auto refused = [](auto change) {
    auto what = some();
    change(what);
    const auto out = from_letter(to_letter(what));
    return !out && out.error().code == errc::corrupt;
  };
  CHECK(refused([](hello& h) { h.session = 0; }));
  CHECK(refused([](hello& h) { h.incarnation = 0; }));
  CHECK(refused([](hello& h) { h.node = node_name(""); }));
  CHECK(refused([](hello& h) { h.node = node_name("a b"); }));
  CHECK(refused([](hello& h) { h.node = node_name("../x"); }));
  CHECK(refused([](hello& h) { h.node = node_name(std::string(64, 'a')); }));
  CHECK(refused([](hello& h) { h.software = std::string(256, 'a'); }));
  CHECK(refused([](hello& h) {
    for (int i = 0; i < 65; ++i)
      h.models.emplace(std::to_string(i), "");
  }));
}

TEST_CASE("nodes one minor version apart work together, others do not") {
  const auto versions = [](std::uint16_t major, std::uint16_t minor, std::uint16_t other_major,
                          std::uint16_t other_minor) {
    auto one = some("alpha");
    auto other = some("beta");
    one.major = major;
    one.minor = minor;
    other.major = other_major;
    other.minor = other_minor;
    CHECK(incompatibility(one, other) == incompatibility(other, one));
    return !incompatibility(one, other);
  };
  CHECK(versions(1, 0, 1, 0));
  CHECK(versions(1, 0, 1, 1));
  CHECK(versions(1, 4, 1, 3));
  CHECK_FALSE(versions(1, 0, 1, 2));
  CHECK_FALSE(versions(1, 0, 2, 0));
  CHECK_FALSE(versions(1, 65535, 1, 0));
}

TEST_CASE("a refusal names both nodes and what differs") {
  auto one = some("alpha");
  auto other = some("beta");
  other.minor = 7;
  const auto why = incompatibility(one, other);
  REQUIRE(why);
  CHECK(why->find("alpha has 1.0") != std::string::npos);
  CHECK(why->find("beta has 1.7") != std::string::npos);

  other = some("beta");
  other.hash_mode = "kv-2";
  CHECK(incompatibility(one, other)->find("beta has kv-2") != std::string::npos);

  other = some("beta");
  other.models["small"] = "beef";
  CHECK(incompatibility(one, other)->find("beta has beef") != std::string::npos);
}

TEST_CASE("nodes with different models work together") {
  auto other = some("beta");
  other.models = {{"large", "beef"}};
  CHECK_FALSE(incompatibility(some(), other));
}

TEST_CASE("an error survives its letter") {
  const error failure{errc::conflict, "a turn is running", "turn", "turn_running"};
  CHECK(from_letter(to_letter(failure), static_cast<std::uint8_t>(failure.code)) == failure);
  CHECK(from_letter(to_letter(failure), 0).code == errc::internal);
  CHECK(from_letter(to_letter(failure), 200).code == errc::internal);
}

TEST_CASE("causes and codes say the same") {
  for (std::uint8_t i = 1; i < end_causes; ++i) {
    const auto cause = static_cast<end_cause>(i);
    CHECK(cause_of(error_of(cause)) == cause);
    CHECK(to_string(cause) == to_string(error_of(cause)));
  }
  CHECK(cause_of(errc::invalid_argument) == end_cause::none);
}
