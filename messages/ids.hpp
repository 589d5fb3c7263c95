#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <string>

namespace godwit {

/// Index of a token in a model's vocabulary.
using token_id = std::uint32_t;

/// Place of a token in a sequence, from 0. Always the true position, whatever the KV cache keeps.
using position_t = std::uint32_t;

/// A string that names one kind of thing, so that a session is never passed where a node is meant.
/// @tparam Tag an incomplete type that tells the kinds apart
template <class Tag>
struct name_of {
  std::string value;

  name_of() = default;
  explicit name_of(std::string text) : value(std::move(text)) {}
  bool empty() const { return value.empty(); }
  auto operator<=>(const name_of&) const = default;
};

/// A session: "ses_" and 32 hexadecimal digits.
using session_id = name_of<struct session_tag>;
/// A node of the mesh, as its operator called it.
using node_name = name_of<struct node_tag>;
/// Who may see a session and share its cache; "default" without a header.
using tenant_id = name_of<struct tenant_tag>;

/// Place of a record in a session's journal; the first record has 1.
using sequence_number = std::uint64_t;
/// Counts the owners of a session; a writer with a lower epoch than the journal's is refused.
using epoch_t = std::uint64_t;
/// Counts the turns of a session, from 1.
using turn_number = std::uint32_t;
/// One generation in flight on a node; unique for the life of the process.
using request_id = std::uint64_t;

} // namespace godwit

template <class Tag>
struct std::hash<godwit::name_of<Tag>> {
  std::size_t operator()(const godwit::name_of<Tag>& name) const noexcept {
    return std::hash<std::string>{}(name.value);
  }
};
