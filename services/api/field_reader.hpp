#pragma once

#include "messages/result.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace godwit {

/// A key as an error may show it: identifier-like and short, anything else masked, since a key comes from the
/// client.
std::string shown_key(std::string_view key);

/// The first thing found wrong with a body. Reading goes on after it, so that readers need no branches; the
/// one who asked looks once at the end.
class problem {
 public:
  void note(errc code, std::string message, std::string param, std::string reason);
  explicit operator bool() const { return first_.has_value(); }
  /// The failure side of a result. @pre something was noted
  tl::unexpected<error> failure() const { return tl::unexpected<error>(*first_); }

 private:
  std::optional<error> first_;
};

/// An interval of numbers; `above` leaves the lower end out.
struct number_range {
  double low;
  double high;
  bool above = false;
};

/// Reads the fields of one JSON object by name. A field that is null counts as absent. What is of the wrong
/// type, out of range, unsupported or unknown is noted as a problem whose `param` is the field's path as it
/// stands in the body, such as `messages[2].role`.
class field_reader {
 public:
  /// @param object anything; what is not an object is a problem
  /// @param path   of the object, empty for the body itself
  /// Both `object` and `found` outlive the reader.
  field_reader(const nlohmann::json& object, std::string path, problem& found);

  /// The path of a field.
  std::string path(std::string_view name) const;
  /// The value of a field, whatever its type; nothing if absent.
  const nlohmann::json* value(std::string_view name);

  std::optional<bool> boolean(std::string_view name);
  std::optional<double> number(std::string_view name, number_range range);
  /// A whole number; 16.0 is one.
  std::optional<std::int64_t> integer(std::string_view name, std::int64_t low, std::int64_t high);
  std::optional<std::string> text(std::string_view name, std::size_t max_bytes);
  /// One of a few words. Another word of `not_yet` is `unsupported` rather than invalid.
  std::optional<std::string> word(std::string_view name, std::initializer_list<std::string_view> words,
    std::initializer_list<std::string_view> not_yet = {});
  const nlohmann::json* list(std::string_view name, std::size_t max_size);
  const nlohmann::json* object(std::string_view name);

  /// Notes that a field must be there.
  void require(std::string_view name);
  /// Accepts a field that changes nothing about the answer.
  void accept(std::string_view name);
  /// Refuses a field that is known but not built.
  void unsupported(std::string_view name);
  void invalid(std::string_view name, std::string_view what, std::string_view reason = "invalid_value");

  /// Notes the first field that nobody asked for.
  void finish();

 private:
  const nlohmann::json& object_;
  std::string path_;
  problem& found_;
  std::set<std::string, std::less<>> known_;
};

} // namespace godwit
