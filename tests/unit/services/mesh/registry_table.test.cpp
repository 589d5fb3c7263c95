#include "services/mesh/registry_table.hpp"

#include "services/link/keys.hpp"

#include <catch2/catch.hpp>

#include <array>

using namespace godwit;
using namespace std::chrono_literals;

namespace {

const node_record& record() {
  static const auto made = [] {
    node_record out;
    out.name = node_name("alpha");
    out.incarnation = 1'700'000'000'000;
    out.endpoints = {"tcp://10.0.0.7:7401", "tcp://[fd00::7]:7402", "tcp://alpha.example:7403"};
    out.key = link::make_keys(out.name)->open;
    out.roles = {"prefill", "decode", "cache"};
    out.models = {{"m", "f"}, {"n", ""}};
    out.capacity = 64;
    return out;
  }();
  return made;
}

/// The bytes of a row, as claim() writes them.
struct stored {
  std::array<std::string, registry_table::columns> columns;

  explicit stored(const node_record& of, std::int64_t age = 250) {
    const auto written = registry_table::claim(of, "me", 5s).parameters;
    // name, holder, incarnation, limit, letters, bulk, events, key, roles, models, fingerprints, capacity
    constexpr std::array<std::size_t, 10> from{0, 2, 4, 5, 6, 7, 8, 9, 10, 11};
    for (std::size_t i = 0; i < from.size(); ++i)
      columns[i] = written[from[i]].bytes;
    columns[10] = postgres::value(age).bytes;
  }

  result<tabled_node> read(bool plain = false) const {
    std::array<postgres::field, registry_table::columns> row;
    for (std::size_t i = 0; i < row.size(); ++i)
      row[i] = columns[i];
    return registry_table::node_of(row, plain);
  }

  bool refused(std::size_t column, const std::string& bytes) const {
    auto other = *this;
    other.columns[column] = bytes;
    const auto made = other.read();
    return !made && made.error().code == errc::corrupt;
  }
};

} // namespace

TEST_CASE("a node's record is read from the table as it was written") {
  const auto made = stored(record()).read();
  REQUIRE(made);
  CHECK(made->record == record());
  CHECK(made->age == 250ms);
}

TEST_CASE("a beat of the future is one of now") {
  CHECK(stored(record(), -7).read()->age == 0ms);
}

TEST_CASE("on plain sockets records have no key and are on loopback") {
  auto plain = record();
  CHECK_FALSE(stored(plain).read(true));
  plain.key.reset();
  CHECK_FALSE(stored(plain).read(true));
  plain.endpoints = {"tcp://127.0.0.1:1", "tcp://127.0.0.1:2", "tcp://[::1]:3"};
  CHECK(stored(plain).read(true));
  CHECK_FALSE(stored(plain).read(false));
}

TEST_CASE("what somebody else may have written into the table is checked") {
  const stored good(record());
  REQUIRE(good.read());
  for (const auto* name : {"", "a b", "a/b"})
    CHECK(good.refused(0, name));
  CHECK(good.refused(1, "7"));
  CHECK(good.refused(1, postgres::value(std::int64_t{-1}).bytes));
  for (const std::size_t endpoint : {2, 3, 4})
    for (const auto* bad : {"", "ipc:///tmp/x", "tcp://*:7401", "tcp://10.0.0.7", "tcp://10.0.0.7:0",
           "tcp://10.0.0.7:70000", "tcp://10.0.0.7:7x", "tcp://[10.0.0.7]:1", "tcp://a b:1"})
      CHECK(good.refused(endpoint, bad));
  CHECK(good.refused(5, ""));
  CHECK(good.refused(5, std::string(40, ' ')));
  CHECK(good.refused(6, "x"));
  CHECK(good.refused(6, postgres::text_array(std::vector<std::string>(33, "r")).bytes));
  CHECK(good.refused(7, postgres::text_array(std::vector<std::string>{"m"}).bytes));
  CHECK(good.refused(8, postgres::text_array(std::vector<std::string>{"f", std::string(256, 'x')}).bytes));
  CHECK(good.refused(9, postgres::value(std::int64_t{1} << 32).bytes));
  CHECK(good.refused(10, ""));
}

TEST_CASE("statements name the schema") {
  for (const auto& [name, text] : registry_table::statements("mesh_1")) {
    CHECK(text.find('@') == std::string::npos);
    CHECK(text.find("mesh_1.nodes") != std::string::npos);
  }
  CHECK(registry_table::listen("mesh_1").text == "LISTEN mesh_1_nodes");
}
