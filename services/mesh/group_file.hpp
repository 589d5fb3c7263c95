#pragma once

#include "messages/result.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace godwit {

/// What a RoleBasedGroup of Kubernetes (github.com/sgl-project/rbg, pkg/discovery/config_builder.go) writes
/// into the file that its pods see as /etc/rbg/config.yaml:
///
///     group:
///       name: demo
///       roles:
///       - prefill
///       size: 1
///     roles:
///       prefill:
///         instances:
///         - address: demo-prefill-0.s-demo-prefill
///           ports:
///             mesh: 7401
///         size: 1
struct group_file {
  struct instance {
    std::string address;
    std::map<std::string, std::uint16_t> ports; ///< by name, lower case, with _ for -
  };
  std::string name;
  std::map<std::string, std::vector<instance>> roles; ///< in the order of their indices
};

/// Reads the file's text. Fields that are not named above are skipped. Of YAML it takes what such files are
/// written in: blocks of maps and lists, plain and quoted scalars, [] and {}, comments; anything else is
/// refused.
/// @returns `corrupt` with the line
result<group_file> parse_group_file(std::string_view text);

} // namespace godwit
