#include "services/config/file.hpp"

#include <fmt/format.h>

#include <fstream>
#include <sstream>
#include <system_error>

// The only translation unit that sees toml++.
#include <toml++/toml.h>

namespace godwit::detail {

namespace {

constexpr std::uintmax_t max_file_bytes = std::uintmax_t{1} << 20;

std::string place(const std::filesystem::path& path, std::uint32_t line) {
  return "configuration file " + path.string() + ", line " + std::to_string(line) + ": ";
}

result<file_value> convert(const std::filesystem::path& path, const toml::key& key, const toml::node& node) {
  const std::string name(key.str());
  const auto line = static_cast<std::uint32_t>(node.source().begin.line);
  if (const auto* text = node.as_string())
    return file_value{name, text->get(), setting_kind::text, line};
  if (const auto* number = node.as_integer())
    return file_value{name, std::to_string(number->get()), setting_kind::number, line};
  if (const auto* number = node.as_floating_point())
    return file_value{name, fmt::format("{}", number->get()), setting_kind::real, line};
  if (const auto* array = node.as_array()) {
    std::string joined;
    for (const auto& element : *array) {
      const auto* text = element.as_string();
      if (text == nullptr)
        return fail(errc::invalid_argument,
          place(path, line) + "\"" + name + "\" holds something else than text", name);
      joined += (joined.empty() ? "" : ",") + text->get();
    }
    return file_value{name, joined, setting_kind::list, line};
  }
  return fail(errc::invalid_argument,
    place(path, line) + "\"" + name + "\" is neither text, a number nor a list of texts", name);
}

} // namespace

result<std::vector<file_value>> read_config_file(const std::filesystem::path& path) {
  std::error_code code;
  const auto size = std::filesystem::file_size(path, code);
  if (code)
    return fail(errc::io, "cannot read configuration file " + path.string() + ": " + code.message());
  if (size > max_file_bytes)
    return fail(errc::invalid_argument, "configuration file " + path.string() + " is over 1 MiB long");
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  if (size > 0 && !(content << file.rdbuf()))
    return fail(errc::io, "cannot read configuration file " + path.string());
  try {
    const auto table = toml::parse(content.str());
    std::vector<file_value> values;
    for (const auto& [key, node] : table) {
      auto value = convert(path, key, node);
      if (!value)
        return fail(value);
      values.push_back(std::move(*value));
    }
    return values;
  } catch (const toml::parse_error& failure) {
    return fail(errc::invalid_argument, place(path, static_cast<std::uint32_t>(failure.source().begin.line))
                                          + std::string(failure.description()));
  }
}

} // namespace godwit::detail
