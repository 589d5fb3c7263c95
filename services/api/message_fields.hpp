#pragma once

#include "services/api/field_reader.hpp"

#include <nlohmann/json_fwd.hpp>

#include <optional>
#include <string>
#include <vector>

namespace godwit {

/// One message of a conversation, as chat templates take it.
struct client_message {
  std::string role; ///< system, user or assistant; the API's developer is system
  std::string content;
  std::string name; ///< of the participant, empty if not given

  bool operator==(const client_message&) const = default;
};

/// The text of a field that is a string or a list of `{"type":"text","text":…}`, whose texts are joined as
/// they are. Parts of other types are unsupported. @returns nothing if absent or faulty
std::optional<std::string> read_content(field_reader& fields, std::string_view name, problem& found);

/// Reads the field `messages`: at least one.
std::vector<client_message> read_messages(field_reader& fields, problem& found);

} // namespace godwit
