#pragma once

#include "actors/jinja/value.hpp"

#include <initializer_list>

namespace godwit::jinja {

/// What a call passes.
struct arguments {
  std::vector<value> positional;
  std::vector<std::pair<std::string, value>> named;
};

/// The arguments of a built-in function in the order of its parameters.
class parameters {
 public:
  /// Matches arguments with parameter names as Python does. A name that begins with '/' is positional only.
  /// @param required how many parameters have no default
  static outcome<parameters> bind(std::string_view function, const arguments& given,
    std::initializer_list<std::string_view> names, std::size_t required = 0);

  /// The argument of a parameter, or nullptr where the default holds.
  const value* operator[](std::size_t i) const { return given_[i] ? &*given_[i] : nullptr; }

  /// Typed access with defaults; a fault names the function and the parameter.
  outcome<std::int64_t> integer(std::size_t i, std::int64_t otherwise) const;
  /// The bytes of a string argument; None and an absent one give nothing.
  outcome<std::optional<std::string_view>> string(std::size_t i) const;
  bool flag(std::size_t i, bool otherwise) const;

 private:
  std::string_view function_;
  std::vector<std::string_view> names_;
  std::vector<std::optional<value>> given_;
};

} // namespace godwit::jinja
