#pragma once

#include "messages/ids.hpp"
#include "messages/letter.hpp"
#include "services/link/frame.hpp"
#include "services/link/link.capnp.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace godwit::link {

/// What a node says of itself when it begins to talk to another.
///
/// A *conversation* has a number for each direction, which its sender chooses. Whoever loses a peer begins a
/// new one; frames of an earlier one are dropped. So no letter that waited in a queue while a peer was away
/// reaches it later, and no answer reaches a request that has failed.
struct hello {
  std::uint16_t major = protocol_major;
  std::uint16_t minor = protocol_minor;
  node_name node;
  std::uint64_t incarnation = 0; ///< rises with each start of the node
  std::uint64_t session = 0;     ///< the sender's number of this conversation; never 0
  std::uint64_t seen = 0;        ///< the receiver's number as the sender knows it; 0 is none
  std::string software;
  std::string hash_mode;                     ///< how blocks of the KV cache are named
  std::map<std::string, std::string> models; ///< fingerprints by the model's name

  bool operator==(const hello&) const = default;
};

/// Longest name of a node.
inline constexpr std::size_t max_node_name = 63;

/// Whether a text can be a node's name: letters, digits, '.', '-' and '_', at most 63.
bool valid_node_name(std::string_view name);

letter<schema::Hello> to_letter(const hello& what);

/// Checks what a letter cannot: a valid name, numbers that are not 0, at most 64 models, texts of at most 255
/// bytes.
/// @returns `corrupt`
result<hello> from_letter(const letter<schema::Hello>& mail);

/// Why two nodes cannot work together, as a sentence for the operator of either; nothing if they can. Nodes
/// work together if their major versions are equal and their minor ones at most one apart, if they name
/// blocks in the same way, and if no model that both have differs in its fingerprint. Is symmetric.
std::optional<std::string> incompatibility(const hello& one, const hello& other);

/// An error as a frame's body carries it; its code stands in the header.
letter<schema::Failure> to_letter(const error& failure);
/// @param code of the header; an unknown one is `internal`
error from_letter(const letter<schema::Failure>& mail, std::uint8_t code);

} // namespace godwit::link
