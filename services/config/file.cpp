#include "services/config/file.hpp"

#include "services/files/small_file.hpp"
#include "services/toml/toml.hpp"

#include <fmt/format.h>

namespace godwit::detail {

namespace {

std::string place(const std::filesystem::path& path, std::uint32_t line) {
  return "configuration file " + path.string() + ", line " + std::to_string(line) + ": ";
}

result<file_value> convert(
  const std::filesystem::path& path, const std::string& name, const toml_value& value) {
  const auto line = value.line;
  if (const auto* text = value.as<std::string>())
    return file_value{name, *text, setting_kind::text, line};
  if (const auto* number = value.as<std::int64_t>())
    return file_value{name, std::to_string(*number), setting_kind::number, line};
  if (const auto* number = value.as<double>())
    return file_value{name, fmt::format("{}", *number), setting_kind::real, line};
  if (const auto* list = value.as<toml_value::list>()) {
    std::string joined;
    for (const auto& element : *list) {
      const auto* text = element.as<std::string>();
      if (text == nullptr)
        return fail(errc::invalid_argument,
          place(path, line) + "\"" + name + "\" holds something else than text", name);
      joined += (joined.empty() ? "" : ",") + *text;
    }
    return file_value{name, joined, setting_kind::list, line};
  }
  return fail(errc::invalid_argument,
    place(path, line) + "\"" + name + "\" is neither text, a number nor a list of texts", name);
}

} // namespace

result<std::vector<file_value>> read_config_file(const std::filesystem::path& path) {
  const auto content = read_small_file(path, "configuration file");
  if (!content)
    return fail(content);
  const auto all = parse_toml(*content);
  if (!all)
    return fail(errc::invalid_argument, place(path, all.error().line) + all.error().what);
  std::vector<file_value> values;
  for (const auto& [name, node] : *all->as<toml_value::table>()) {
    auto value = convert(path, name, node);
    if (!value)
      return fail(value);
    values.push_back(std::move(*value));
  }
  return values;
}

} // namespace godwit::detail
