#pragma once

#include <string_view>

namespace godwit {

/// The route that a path belongs to, with its variable parts named, such as "/v1/sessions/{id}/events". Paths
/// of no route are "other", so that clients cannot make labels.
std::string_view route_label(std::string_view path);

/// The method, or "other".
std::string_view method_label(std::string_view method);

} // namespace godwit
