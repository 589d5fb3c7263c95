#pragma once

#include <caf/fwd.hpp>

#include <cstddef>
#include <string>

namespace godwit {

/// What a message is, without what it says.
struct message_kind {
  std::string types;     ///< of its elements: letters by their schema, atoms by their text, `handle`, `text`
  std::size_t bytes = 0; ///< of its letters' words and attachments
};

/// Knows the letters of every interface in messages/catalogue.hpp, and so every one that is added there.
message_kind kind_of(const caf::type_erased_tuple& content);

} // namespace godwit
