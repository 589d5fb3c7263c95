#include "services/api/field_reader.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace godwit {

namespace {

bool is_key_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-'
         || c == '.' || c == '$';
}

/// The whole number that a JSON number stands for, if it is one of 64 bits.
std::optional<std::int64_t> whole_number(const nlohmann::json& value) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<std::uint64_t>();
    if (number > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      return std::nullopt;
    return static_cast<std::int64_t>(number);
  }
  if (value.is_number_integer())
    return value.get<std::int64_t>();
  if (value.is_number_float()) {
    // Doubles are exact on whole numbers up to 2^53 only.
    const auto number = value.get<double>();
    if (std::abs(number) <= 9007199254740992.0 && std::trunc(number) == number)
      return static_cast<std::int64_t>(number);
  }
  return std::nullopt;
}

std::string joined(std::initializer_list<std::string_view> words) {
  std::string out;
  for (const auto word : words)
    out += fmt::format("{}\"{}\"", out.empty() ? "" : ", ", word);
  return out;
}

} // namespace

std::string shown_key(std::string_view key) {
  if (key.empty() || key.size() > 64 || !std::all_of(key.begin(), key.end(), is_key_character))
    return "(unnamed)";
  return std::string(key);
}

void problem::note(errc code, std::string message, std::string param, std::string reason) {
  if (!first_)
    first_ = error{code, std::move(message), std::move(param), std::move(reason)};
}

field_reader::field_reader(const nlohmann::json& object, std::string path, problem& found)
  : object_(object), path_(std::move(path)), found_(found) {
  if (!object.is_object())
    found_.note(errc::invalid_argument, (path_.empty() ? "the body" : path_) + " must be an object", path_,
      "invalid_type");
}

std::string field_reader::path(std::string_view name) const {
  return path_.empty() ? std::string(name) : fmt::format("{}.{}", path_, name);
}

const nlohmann::json* field_reader::value(std::string_view name) {
  known_.emplace(name);
  if (!object_.is_object())
    return nullptr;
  const auto it = object_.find(std::string(name));
  return it == object_.end() || it->is_null() ? nullptr : &*it;
}

void field_reader::invalid(std::string_view name, std::string_view what, std::string_view reason) {
  found_.note(
    errc::invalid_argument, fmt::format("{} {}", path(name), what), path(name), std::string(reason));
}

std::optional<bool> field_reader::boolean(std::string_view name) {
  const auto* field = value(name);
  if (field == nullptr)
    return std::nullopt;
  if (!field->is_boolean()) {
    invalid(name, "must be true or false", "invalid_type");
    return std::nullopt;
  }
  return field->get<bool>();
}

std::optional<double> field_reader::number(std::string_view name, number_range range) {
  const auto* field = value(name);
  if (field == nullptr)
    return std::nullopt;
  if (!field->is_number()) {
    invalid(name, "must be a number", "invalid_type");
    return std::nullopt;
  }
  const auto number = field->get<double>();
  if (!(number >= range.low && number <= range.high) || (range.above && number == range.low)) {
    invalid(name,
      fmt::format("must be {} {} and at most {}", range.above ? "above" : "at least", range.low, range.high));
    return std::nullopt;
  }
  return number;
}

std::optional<std::int64_t> field_reader::integer(
  std::string_view name, std::int64_t low, std::int64_t high) {
  const auto* field = value(name);
  if (field == nullptr)
    return std::nullopt;
  if (!field->is_number()) {
    invalid(name, "must be a whole number", "invalid_type");
    return std::nullopt;
  }
  const auto number = whole_number(*field);
  if (!number || *number < low || *number > high) {
    invalid(name, fmt::format("must be a whole number of at least {} and at most {}", low, high));
    return std::nullopt;
  }
  return number;
}

std::optional<std::string> field_reader::text(std::string_view name, std::size_t max_bytes) {
  const auto* field = value(name);
  if (field == nullptr)
    return std::nullopt;
  if (!field->is_string()) {
    invalid(name, "must be a string", "invalid_type");
    return std::nullopt;
  }
  auto text = field->get<std::string>();
  if (text.size() > max_bytes) {
    invalid(name, fmt::format("must have at most {} bytes", max_bytes));
    return std::nullopt;
  }
  return text;
}

std::optional<std::string> field_reader::word(std::string_view name,
  std::initializer_list<std::string_view> words, std::initializer_list<std::string_view> not_yet) {
  auto word = text(name, std::numeric_limits<std::size_t>::max());
  if (!word || std::find(words.begin(), words.end(), *word) != words.end())
    return word;
  if (std::find(not_yet.begin(), not_yet.end(), *word) != not_yet.end())
    found_.note(errc::unsupported,
      fmt::format("{} \"{}\" is not supported; it may be {}", path(name), *word, joined(words)), path(name),
      "unsupported_value");
  else
    invalid(name, fmt::format("must be one of {}", joined(words)));
  return std::nullopt;
}

const nlohmann::json* field_reader::list(std::string_view name, std::size_t max_size) {
  const auto* field = value(name);
  if (field == nullptr)
    return nullptr;
  if (!field->is_array()) {
    invalid(name, "must be a list", "invalid_type");
    return nullptr;
  }
  if (field->size() > max_size) {
    invalid(name, fmt::format("must have at most {} entries", max_size));
    return nullptr;
  }
  return field;
}

const nlohmann::json* field_reader::object(std::string_view name) {
  const auto* field = value(name);
  if (field == nullptr)
    return nullptr;
  if (!field->is_object()) {
    invalid(name, "must be an object", "invalid_type");
    return nullptr;
  }
  return field;
}

void field_reader::require(std::string_view name) {
  if (object_.is_object() && value(name) == nullptr)
    invalid(name, "is missing", "missing_required_parameter");
}

void field_reader::accept(std::string_view name) {
  known_.emplace(name);
}

void field_reader::unsupported(std::string_view name) {
  if (value(name) != nullptr)
    found_.note(errc::unsupported, path(name) + " is not supported", path(name), "unsupported_parameter");
}

void field_reader::finish() {
  if (!object_.is_object())
    return;
  for (const auto& [key, field] : object_.items())
    if (!known_.contains(key)) {
      const auto name = path(shown_key(key));
      found_.note(errc::invalid_argument, name + " is not a known parameter", name, "unknown_parameter");
    }
}

} // namespace godwit
