#include "actors/jinja/arguments.hpp"

#include "actors/jinja/operators.hpp"

#include <algorithm>

namespace godwit::jinja {

outcome<parameters> parameters::bind(std::string_view function, const arguments& given,
  std::initializer_list<std::string_view> names, std::size_t required) {
  parameters out;
  out.function_ = function;
  out.names_ = names;
  out.given_.resize(names.size());
  const std::string who(function);
  if (given.positional.size() > names.size())
    return stop(who + "() takes at most " + std::to_string(names.size()) + " arguments");
  std::ranges::copy(given.positional, out.given_.begin());
  for (const auto& [name, what] : given.named) {
    const auto found = std::ranges::find(out.names_, std::string_view(name));
    if (found == out.names_.end())
      return stop(who + "() takes no keyword argument '" + name + "'");
    auto& place = out.given_[static_cast<std::size_t>(found - out.names_.begin())];
    if (place)
      return stop(who + "() got two values for '" + name + "'");
    place = what;
  }
  for (std::size_t i = 0; i < required; ++i)
    if (!out.given_[i])
      return stop(who + "() needs its argument " + std::to_string(i + 1));
  return out;
}

outcome<std::int64_t> parameters::integer(std::size_t i, std::int64_t otherwise) const {
  if (!given_[i])
    return otherwise;
  if (const auto n = as_integer(*given_[i]))
    return *n;
  if (is_undefined(*given_[i]))
    return undefined_fault(*given_[i]);
  return stop(
    std::string(function_) + "() needs an integer, not '" + std::string(type_name(*given_[i])) + "'");
}

outcome<std::optional<std::string_view>> parameters::string(std::size_t i) const {
  if (!given_[i] || is_none(*given_[i]))
    return std::optional<std::string_view>{};
  if (const auto* t = as_text(*given_[i]))
    return std::optional(t->bytes());
  if (is_undefined(*given_[i]))
    return undefined_fault(*given_[i]);
  return stop(std::string(function_) + "() needs a string, not '" + std::string(type_name(*given_[i])) + "'");
}

bool parameters::flag(std::size_t i, bool otherwise) const {
  return given_[i] ? truth(*given_[i]) : otherwise;
}

} // namespace godwit::jinja
