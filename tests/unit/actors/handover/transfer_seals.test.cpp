#include "actors/handover/transfer_seals.hpp"

#include <catch2/catch.hpp>

using namespace godwit;

namespace {

cache_scope scope(const std::string& fingerprint = "f") {
  cache_scope out;
  out.fingerprint = fingerprint;
  out.shape = {2, 2, 8, kv_type::f16};
  return out;
}

std::vector<token_id> text(token_id first = 1) {
  std::vector<token_id> tokens(3 * page_tokens + 1);
  for (auto& token : tokens)
    token = first++;
  return tokens;
}

std::vector<std::byte> pages(int fill = 7) {
  return std::vector<std::byte>(512, static_cast<std::byte>(fill));
}

const transfer_seals& giver() {
  static const transfer_seals made(10, 20, scope(), "t", text());
  return made;
}

} // namespace

TEST_CASE("two nodes make the same seals of a transfer by themselves") {
  const transfer_seals taker(10, 20, scope(), "t", text());
  REQUIRE(taker.blocks() == 3);
  for (std::uint32_t block = 0; block < 3; ++block)
    CHECK(taker.checks(block, giver().seal(block, pages()), pages()));
}

TEST_CASE("a block of anything else does not check") {
  const auto said = giver().seal(1, pages());
  const auto refused = [&](const transfer_seals& by) { return !by.checks(1, said, pages()); };
  CHECK(refused({11, 20, scope(), "t", text()}));
  CHECK(refused({10, 21, scope(), "t", text()}));
  CHECK(refused({10, 20, scope("g"), "t", text()}));
  CHECK(refused({10, 20, scope(), "u", text()}));
  CHECK(refused({10, 20, scope(), "t", text(2)}));
  auto other_shape = scope();
  other_shape.shape.type = kv_type::f32;
  CHECK(refused({10, 20, other_shape, "t", text()}));
  auto other_layout = scope();
  ++other_layout.layout_version;
  CHECK(refused({10, 20, other_layout, "t", text()}));
  // Text before the block counts, text behind it does not.
  auto changed = text();
  changed[0] = 99;
  CHECK(refused({10, 20, scope(), "t", changed}));
  changed = text();
  changed.back() = 99;
  CHECK_FALSE(refused({10, 20, scope(), "t", changed}));
}

TEST_CASE("damaged, cut and misplaced pages do not check") {
  const auto said = giver().seal(1, pages());
  auto damaged = pages();
  for (const std::size_t at : {std::size_t{0}, std::size_t{255}, std::size_t{511}}) {
    damaged = pages();
    damaged[at] ^= std::byte{1};
    CHECK_FALSE(giver().checks(1, said, damaged));
  }
  CHECK_FALSE(giver().checks(1, said, std::span(damaged).first(511)));
  CHECK_FALSE(giver().checks(0, said, pages()));
  CHECK_FALSE(giver().checks(3, said, pages()));
  // The name alone, or the sum alone, is not enough.
  auto mixed = said;
  mixed.name = giver().seal(2, pages()).name;
  CHECK_FALSE(giver().checks(1, mixed, pages()));
  mixed = said;
  ++mixed.check_high;
  CHECK_FALSE(giver().checks(1, mixed, pages()));
}
