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

void add(std::string& bytes, const void* data, std::size_t size) {
  bytes.append(static_cast<const char*>(data), size);
}

void add_field(std::string& bytes, const void* data, std::uint64_t size) {
  add(bytes, &size, sizeof size);
  add(bytes, data, size);
}

block_identity hash_of(const identity_key& key, const std::string& bytes) {
  const auto value =
    XXH3_128bits_withSecret(bytes.data(), bytes.size(), key.bytes().data(), key.bytes().size());
  return {value.low64, value.high64};
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

TEST_CASE("an identity is XXH3-128 under the secret over fields and their lengths") {
  const auto key = key_of("k");
  const block_hasher hasher(key, scope_of_a_model());
  const auto root = hasher.root("t");
  // Text: the parent, the tokens, then 3 for a block, no media, and the number of tokens.
  const std::uint64_t parent[] = {root.low, root.high};
  const std::uint64_t plain = (3ULL << 56U) + 16;
  std::string bytes;
  add(bytes, parent, sizeof parent);
  add(bytes, sixteen.data(), 64);
  add(bytes, &plain, sizeof plain);
  CHECK(hasher.next(root, sixteen) == hash_of(key, bytes));
  // The same with a digest, and with fewer tokens.
  const std::uint64_t with_media = (3ULL << 56U) + (6ULL << 24U) + 16;
  bytes.clear();
  add(bytes, parent, sizeof parent);
  add(bytes, sixteen.data(), 64);
  add(bytes, "digest", 6);
  add(bytes, &with_media, sizeof with_media);
  CHECK(hasher.next(root, sixteen, "digest") == hash_of(key, bytes));
  const std::uint64_t short_one = (3ULL << 56U) + 5;
  bytes.clear();
  add(bytes, parent, sizeof parent);
  add(bytes, sixteen.data(), 20);
  add(bytes, &short_one, sizeof short_one);
  CHECK(hasher.next(root, std::span(sixteen).first(5)) == hash_of(key, bytes));
}

TEST_CASE("a root is XXH3-128 over scope and tenant, each behind its length") {
  // The scope's own hash is what the root of a scope covers: found by its fields.
  const auto key = key_of("k");
  const auto scope = scope_of_a_model();
  const auto field = [](std::string& bytes, std::uint32_t number) {
    add_field(bytes, &number, sizeof number);
  };
  std::string bytes;
  field(bytes, 2); // layout of what is hashed
  add_field(bytes, scope.fingerprint.data(), scope.fingerprint.size());
  for (const std::uint32_t number : {30U, 3U, 64U, 0U, kv_layout_version, page_tokens})
    field(bytes, number);
  add_field(bytes, nullptr, 0);
  add_field(bytes, nullptr, 0);
  const std::uint64_t is_scope = 1ULL << 56U;
  add(bytes, &is_scope, sizeof is_scope);
  const auto hashed = hash_of(key, bytes);
  const std::uint64_t words[] = {hashed.low, hashed.high};
  bytes.clear();
  add_field(bytes, words, sizeof words);
  add_field(bytes, "t", 1);
  const std::uint64_t is_root = 2ULL << 56U;
  add(bytes, &is_root, sizeof is_root);
  CHECK(block_hasher(key, scope).root("t") == hash_of(key, bytes));
}

TEST_CASE("two random keys are different") {
  CHECK_FALSE(
    second(identity_key::random(), scope_of_a_model()) == second(identity_key::random(), scope_of_a_model()));
}
