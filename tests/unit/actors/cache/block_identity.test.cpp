#include "actors/cache/block_identity.hpp"

#include <catch2/catch.hpp>
#include <xxhash.h>

#include <cstring>
#include <set>
#include <vector>

using namespace godwit;

namespace {

identity_key key_of(const std::string& seed) {
  return identity_key::derive(std::as_bytes(std::span(seed)));
}

cache_scope scope_of_a_model() {
  cache_scope scope;
  scope.fingerprint = "0123456789abcdef0123456789abcdef";
  scope.shape = {30, 3, 64, kv_type::f16};
  return scope;
}

const std::vector<token_id> sixteen{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

/// The identity of the second block of a tenant's text.
block_identity second(const identity_key& key, const cache_scope& scope,
  const std::string& tenant = "default", const std::string& media = "") {
  const block_hasher hasher(key, scope);
  return hasher.next(hasher.next(hasher.root(tenant), sixteen), sixteen, media);
}

void add_field(std::string& bytes, const void* data, std::uint64_t size) {
  bytes.append(reinterpret_cast<const char*>(&size), sizeof size);
  bytes.append(static_cast<const char*>(data), size);
}

} // namespace

TEST_CASE("equal fields give equal identities") {
  CHECK(second(key_of("k"), scope_of_a_model()) == second(key_of("k"), scope_of_a_model()));
}

TEST_CASE("every field, changed alone, changes the identity") {
  const auto key = key_of("k");
  std::vector<block_identity> all{second(key, scope_of_a_model())};
  const auto with = [&](auto change) {
    auto scope = scope_of_a_model();
    change(scope);
    all.push_back(second(key, scope));
  };
  with([](cache_scope& s) { s.fingerprint[0] = 'f'; });
  with([](cache_scope& s) { s.shape.layers = 31; });
  with([](cache_scope& s) { s.shape.kv_heads = 4; });
  with([](cache_scope& s) { s.shape.head_dim = 32; });
  with([](cache_scope& s) { s.shape.type = kv_type::f32; });
  with([](cache_scope& s) { s.layout_version = 99; });
  with([](cache_scope& s) { s.block_tokens = 32; });
  with([](cache_scope& s) { s.adapter = "lora-a"; });
  with([](cache_scope& s) { s.profile = "lora-a"; });
  all.push_back(second(key_of("l"), scope_of_a_model()));
  all.push_back(second(key, scope_of_a_model(), "lora-a"));
  all.push_back(second(key, scope_of_a_model(), "default", "digest"));
  const block_hasher hasher(key, scope_of_a_model());
  const auto root = hasher.root("default");
  all.push_back(root);
  all.push_back(hasher.next(root, sixteen));
  auto other = sixteen;
  other[15] = 17;
  all.push_back(hasher.next(hasher.next(root, other), sixteen));
  all.push_back(hasher.next(hasher.next(root, sixteen), other));

  std::set<std::pair<std::uint64_t, std::uint64_t>> distinct;
  for (const auto& identity : all)
    distinct.emplace(identity.low, identity.high);
  CHECK(distinct.size() == all.size());
}

TEST_CASE("text that moves from one field to its neighbour changes the identity") {
  auto left = scope_of_a_model();
  auto right = scope_of_a_model();
  left.adapter = "ab";
  left.profile = "c";
  right.adapter = "a";
  right.profile = "bc";
  CHECK_FALSE(second(key_of("k"), left) == second(key_of("k"), right));
}

TEST_CASE("an identity is XXH3-128 under the secret over length-prefixed fields") {
  const auto key = key_of("k");
  const block_hasher hasher(key, scope_of_a_model());
  const auto root = hasher.root("t");
  const auto block = hasher.next(root, sixteen);

  std::string bytes;
  const std::uint64_t kind = 3;
  const std::uint64_t parent[] = {root.low, root.high};
  add_field(bytes, &kind, sizeof kind);
  add_field(bytes, parent, sizeof parent);
  add_field(bytes, sixteen.data(), 64);
  add_field(bytes, nullptr, 0);
  const auto value =
    XXH3_128bits_withSecret(bytes.data(), bytes.size(), key.bytes().data(), key.bytes().size());
  CHECK(block.low == value.low64);
  CHECK(block.high == value.high64);
}

TEST_CASE("two random keys are different") {
  CHECK_FALSE(
    second(identity_key::random(), scope_of_a_model()) == second(identity_key::random(), scope_of_a_model()));
}
