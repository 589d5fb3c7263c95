#pragma once

#include "messages/result.hpp"

#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace godwit::postgres {

/// One server of a connection string, as keywords and values for libpq.
struct server_address {
  std::vector<std::pair<std::string, std::string>> words;
  std::string name; ///< host and port, for the operator
};

/// A connection string, understood.
struct address {
  std::vector<server_address> servers; ///< in the order in which they are tried; at least one
  std::chrono::milliseconds connect_time{2000};
  std::string password; ///< to keep it out of messages; empty if it comes from elsewhere
};

/// Reads a URL (`postgresql://user@host1,host2/database?…`) or a string of keywords, as libpq does. Each
/// server is asked for one that takes writes; keepalives and time-outs are short unless the string says
/// otherwise.
/// @returns `invalid_argument`, without a part of the text: it may be a secret
result<address> parse_address(std::string_view text);

/// The text with every occurrence of the password replaced.
std::string without_password(std::string text, const address& of);

} // namespace godwit::postgres
