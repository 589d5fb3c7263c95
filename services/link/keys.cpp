#include "services/link/keys.hpp"

#include "messages/check.hpp"
#include "services/link/hello.hpp"

#include <zmq.h>

#include <cstdint>
#include <cstring>

namespace godwit::link {

namespace {

constexpr std::string_view public_word = "godwit-public-1";
constexpr std::size_t z85_length = 40;

bool z85_character(char c) {
  constexpr std::string_view others = ".-:+=^!/*?&<>()[]{}@%$#";
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')
         || others.find(c) != std::string_view::npos;
}

} // namespace

secret_key::~secret_key() {
  ::explicit_bzero(bytes_.data(), bytes_.size());
}

result<node_keys> make_keys(const node_name& node) {
  if (!valid_node_name(node.value))
    return fail(errc::invalid_argument,
      "a node's name has 1 to 63 letters, digits, dots, hyphens or underscores", "name");
  std::array<char, z85_length + 1> open{};
  std::array<char, z85_length + 1> secret{};
  // Fails only where libzmq was built without CURVE.
  if (zmq_curve_keypair(open.data(), secret.data()) != 0)
    return fail(errc::unsupported, "this machine's libzmq has no CURVE");
  std::array<std::byte, 32> raw{};
  const auto* read = zmq_z85_decode(reinterpret_cast<std::uint8_t*>(raw.data()), secret.data());
  ::explicit_bzero(secret.data(), secret.size());
  GODWIT_CHECK(read != nullptr);
  auto key = from_z85({open.data(), z85_length});
  GODWIT_CHECK(key.has_value());
  node_keys made{node, *key, secret_key(raw)};
  ::explicit_bzero(raw.data(), raw.size());
  return made;
}

std::string to_z85(const public_key& key) {
  std::array<char, z85_length + 1> text{};
  zmq_z85_encode(text.data(), reinterpret_cast<const std::uint8_t*>(key.bytes.data()), key.bytes.size());
  return {text.data(), z85_length};
}

result<public_key> from_z85(std::string_view text) {
  if (text.size() != z85_length)
    return fail(errc::invalid_argument, "a public key has 40 characters", "key");
  for (const char c : text)
    if (!z85_character(c))
      return fail(errc::invalid_argument, "a public key has a character that Z85 does not have", "key");
  public_key key;
  const std::string ended(text);
  if (zmq_z85_decode(reinterpret_cast<std::uint8_t*>(key.bytes.data()), ended.c_str()) == nullptr)
    return fail(errc::invalid_argument, "a public key is not Z85", "key");
  // libzmq does not look for groups over 2^32: only one text stands for a key.
  if (to_z85(key) != text)
    return fail(errc::invalid_argument, "a public key is not Z85", "key");
  return key;
}

std::string to_line(const known_key& known) {
  return std::string(public_word) + " " + known.node.value + " " + to_z85(known.key);
}

result<known_key> from_line(std::string_view line) {
  const auto first = line.find(' ');
  const auto second = first == std::string_view::npos ? first : line.find(' ', first + 1);
  if (second == std::string_view::npos || line.substr(0, first) != public_word)
    return fail(errc::corrupt, "a public key's line is not: " + std::string(public_word) + " NODE KEY");
  const auto name = line.substr(first + 1, second - first - 1);
  if (!valid_node_name(name))
    return fail(errc::corrupt, "a public key's line has a name that is none");
  const auto key = from_z85(line.substr(second + 1));
  if (!key)
    return fail(errc::corrupt, key.error().message);
  return known_key{node_name(std::string(name)), *key};
}

std::size_t allow_list::hash::operator()(const public_key& key) const noexcept {
  // Keys are as good as random already.
  std::size_t out = 0;
  std::memcpy(&out, key.bytes.data(), sizeof out);
  return out;
}

result<void> allow_list::allow(const known_key& known) {
  const auto owner = nodes_.find(known.key);
  if (owner != nodes_.end() && owner->second != known.node)
    return fail(errc::conflict, "the nodes " + owner->second.value + " and " + known.node.value
                                  + " have the same key; each needs one of its own");
  forget(known.node);
  nodes_.emplace(known.key, known.node);
  keys_.emplace(known.node, known.key);
  return {};
}

bool allow_list::forget(const node_name& node) {
  const auto found = keys_.find(node);
  if (found == keys_.end())
    return false;
  nodes_.erase(found->second);
  keys_.erase(found);
  return true;
}

const node_name* allow_list::find(const public_key& key) const {
  const auto found = nodes_.find(key);
  return found == nodes_.end() ? nullptr : &found->second;
}

} // namespace godwit::link
