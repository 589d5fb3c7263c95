#pragma once

#include "messages/ids.hpp"
#include "messages/result.hpp"

#include <array>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace godwit::link {

/// A public key of CURVE (Curve25519). Printable in Z85, ZeroMQ's form of base 85 (rfc.zeromq.org/spec/32):
/// 40 characters.
struct public_key {
  std::array<std::byte, 32> bytes{};

  auto operator<=>(const public_key&) const = default;
};

/// A secret key. Its memory is wiped when it goes.
class secret_key {
 public:
  secret_key() = default;
  explicit secret_key(const std::array<std::byte, 32>& bytes) : bytes_(bytes) {}
  secret_key(const secret_key&) = default;
  secret_key& operator=(const secret_key&) = default;
  ~secret_key();

  const std::array<std::byte, 32>& bytes() const { return bytes_; }

 private:
  std::array<std::byte, 32> bytes_{};
};

/// What a node is known by on the wire.
struct node_keys {
  node_name node;
  public_key open;
  secret_key secret;
};

/// A node and its public key: one line of an allow-list, and all that other nodes need.
struct known_key {
  node_name node;
  public_key key;

  bool operator==(const known_key&) const = default;
};

/// A fresh pair. @returns `invalid_argument` for a name that is none
result<node_keys> make_keys(const node_name& node);

std::string to_z85(const public_key& key);
/// @returns `invalid_argument`
result<public_key> from_z85(std::string_view text);

/// The line `godwit-public-1 NODE KEY`, without its end.
std::string to_line(const known_key& known);
/// @returns `corrupt`
result<known_key> from_line(std::string_view line);

/// Where a node's keys lie in a folder.
std::filesystem::path secret_file(const std::filesystem::path& folder, const node_name& node);
std::filesystem::path public_file(const std::filesystem::path& folder, const node_name& node);

/// Writes NODE.secret, which its owner alone may read, and NODE.public. Makes the folder if need be.
/// @returns `conflict` if there are keys of that node already, `io`, `permission`
result<void> save_keys(const node_keys& keys, const std::filesystem::path& folder);

/// Reads a secret file, and refuses one that others could read or have written.
/// @returns `not_found`, `permission`, `corrupt`, `io`; messages are for the operator and name the file
result<node_keys> load_keys(const std::filesystem::path& file);

/// Reads lines of public keys; empty ones and those that begin with # are skipped.
/// @returns `not_found`, `corrupt` with the line's number, `io`
result<std::vector<known_key>> load_known_keys(const std::filesystem::path& file);

/// The keys that may connect, and whose they are.
class allow_list {
 public:
  /// A node's key from now on, in place of an earlier one.
  /// @returns `conflict` if another node has that key
  result<void> allow(const known_key& known);
  /// @returns whether it was there
  bool forget(const node_name& node);

  /// Whose key it is.
  const node_name* find(const public_key& key) const;
  std::size_t size() const { return keys_.size(); }

 private:
  struct hash {
    std::size_t operator()(const public_key& key) const noexcept;
  };

  std::unordered_map<public_key, node_name, hash> nodes_;
  std::unordered_map<node_name, public_key> keys_;
};

} // namespace godwit::link
