#include "kernels/models/metadata.hpp"

#include <cmath>
#include <type_traits>

namespace godwit {

namespace {

/// Zero or false.
bool is_off(const gguf::value& item) {
  return std::visit(
    [](const auto& v) {
      if constexpr (std::is_arithmetic_v<std::decay_t<decltype(v)>>) {
        return v == std::decay_t<decltype(v)>{};
      } else {
        return false;
      }
    },
    item);
}

} // namespace

std::string short_text(double number) {
  std::string text = std::to_string(number);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) {
    text.pop_back();
  }
  return text;
}

std::uint32_t metadata::number(std::string_view name, std::uint32_t least, std::uint32_t most) {
  const std::string full = key(name);
  asked_.emplace(full);
  const auto found = file_.unsigned_value(full);
  if (!found) {
    refuse(found.error().code, found.error().message);
    return least;
  }
  if (*found < least || *found > most) {
    refuse(errc::corrupt, "the metadata " + full + " is " + std::to_string(*found) + ", outside of "
                            + std::to_string(least) + " to " + std::to_string(most));
    return least;
  }
  return static_cast<std::uint32_t>(*found);
}

std::uint32_t metadata::number_or(
  std::string_view name, std::uint32_t least, std::uint32_t most, std::uint32_t otherwise) {
  return has(name) ? number(name, least, most) : otherwise;
}

double metadata::real(std::string_view name, double least, double most) {
  const std::string full = key(name);
  asked_.emplace(full);
  const auto found = file_.float_value(full);
  if (!found) {
    refuse(found.error().code, found.error().message);
    return least;
  }
  if (!std::isfinite(*found) || *found < least || *found > most) {
    refuse(errc::corrupt, "the metadata " + full + " is "
                            + (std::isfinite(*found) ? short_text(*found) : "no number") + ", outside of "
                            + short_text(least) + " to " + short_text(most));
    return least;
  }
  return *found;
}

double metadata::real_or(std::string_view name, double least, double most, double otherwise) {
  return has(name) ? real(name, least, most) : otherwise;
}

std::string metadata::text_or(std::string_view name, std::string_view otherwise) {
  if (!has(name)) {
    return std::string{otherwise};
  }
  asked_.emplace(key(name));
  const auto found = file_.string_value(key(name));
  if (!found) {
    refuse(found.error().code, found.error().message);
    return std::string{otherwise};
  }
  return std::string{found->substr(0, 64)};
}

void metadata::refuse(errc code, std::string message) {
  if (!failure_) {
    failure_ = error{code, std::move(message), {}, {}};
  }
}

result<void> metadata::check() const {
  if (failure_) {
    return tl::unexpected<error>(*failure_);
  }
  for (const auto& [name, item] : file_.metadata()) {
    if (name.starts_with(prefix_) && !asked_.contains(name) && !is_off(item)) {
      return fail(errc::unsupported, "the feature " + std::string{name.substr(0, 128)});
    }
  }
  return {};
}

} // namespace godwit
