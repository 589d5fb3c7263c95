#include "services/config/config.hpp"
#include "services/config/file.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>

extern "C" char** environ; // NOLINT: POSIX gives no header for it

namespace godwit {

namespace {

constexpr std::string_view prefix = "GODWIT_";

/// Read by other programs of the tree, not by a node.
constexpr std::array<std::string_view, 5> foreign_variables{
  "GODWIT_URL", "GODWIT_TEST_MODEL", "GODWIT_SOURCE_DIR", "GODWIT_OPS", "GODWIT_CONFIG"};

const setting* find(std::string_view key) {
  const auto& all = settings();
  const auto place = std::find_if(all.begin(), all.end(), [&](const setting& one) { return one.key == key; });
  return place == all.end() ? nullptr : &*place;
}

std::string lower_snake(std::string_view name) {
  std::string key(name);
  for (char& c : key)
    c = c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return key;
}

/// What the file should have held.
std::string_view expected(setting_kind kind) {
  switch (kind) {
  case setting_kind::number:
    return " must be a whole number";
  case setting_kind::real:
    return " must be a number";
  default:
    return " must be text";
  }
}

result<void> apply(config& target, const setting& what, std::string_view text, const std::string& where) {
  if (auto done = what.apply(target, text); !done)
    return fail(done.error().code, where + " " + done.error().message, std::string(what.key));
  return {};
}

result<void> apply_file(config& target, const std::filesystem::path& path) {
  const auto values = detail::read_config_file(path);
  if (!values)
    return fail(values);
  for (const auto& value : *values) {
    const auto where = "configuration file " + path.string() + ", line " + std::to_string(value.line) + ": \""
                       + value.key + "\"";
    const auto* what = find(value.key);
    if (what == nullptr)
      return fail(errc::invalid_argument, where + " is not a setting", value.key);
    // One role may stand there without brackets, and a number without a point.
    const bool lenient = (what->kind == setting_kind::list && value.kind == setting_kind::text)
                         || (what->kind == setting_kind::real && value.kind == setting_kind::number);
    if (value.kind != what->kind && !lenient)
      return fail(errc::invalid_argument, where + std::string(expected(what->kind)), value.key);
    if (auto done = apply(target, *what, value.text, where); !done)
      return done;
  }
  return {};
}

result<void> apply_environment(config& target, const key_values& environment) {
  for (const auto& [name, value] : environment) {
    if (!name.starts_with(prefix))
      continue;
    const auto* what = find(lower_snake(std::string_view(name).substr(prefix.size())));
    if (what != nullptr) {
      if (auto done = apply(target, *what, value, "variable " + name); !done)
        return done;
    } else if (std::find(foreign_variables.begin(), foreign_variables.end(), name)
               == foreign_variables.end()) {
      target.unknown_variables.push_back(name);
    }
  }
  return {};
}

result<void> apply_flags(config& target, const key_values& flags) {
  for (const auto& [name, value] : flags) {
    const auto key = lower_snake(name);
    if (key == "config")
      continue;
    const auto* what = find(key);
    if (what == nullptr)
      return fail(errc::invalid_argument, "--" + name + " is not a flag", name);
    if (auto done = apply(target, *what, value, "--" + name); !done)
      return done;
  }
  return {};
}

/// The last value of a key; nothing if it is not there.
const std::string* last(const key_values& values, std::string_view key) {
  const auto place =
    std::find_if(values.rbegin(), values.rend(), [&](const auto& pair) { return pair.first == key; });
  return place == values.rend() ? nullptr : &place->second;
}

/// What only the settings together can be wrong about.
result<void> check_journal(const config& target) {
  const bool url = !target.journal_url.empty();
  const bool file = !target.journal_url_file.empty();
  if (target.journal == journal_kind::rocksdb && (url || file))
    return fail(
      errc::invalid_argument, "the address of a database is set, but journal is \"rocksdb\"", "journal");
  if (target.journal == journal_kind::postgres && url == file)
    return fail(errc::invalid_argument, "journal = \"postgres\" needs either journal_url or journal_url_file",
      "journal_url");
  return {};
}

void name_by_host(config& target) {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) == 0)
    static_cast<void>(find("node")->apply(target, host.data()));
  if (target.node.empty())
    target.node = "node";
}

} // namespace

result<config> load_config(const key_values& flags, const key_values& environment) {
  config target;
  const auto* path = last(flags, "config");
  if (path == nullptr)
    path = last(environment, "GODWIT_CONFIG");
  if (path != nullptr)
    if (auto done = apply_file(target, *path); !done)
      return fail(done);
  if (auto done = apply_environment(target, environment); !done)
    return fail(done);
  if (auto done = apply_flags(target, flags); !done)
    return fail(done);
  if (auto done = check_journal(target); !done)
    return fail(done);
  if (target.node.empty())
    name_by_host(target);
  return target;
}

key_values process_environment() {
  key_values all;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    const std::string_view text(*variable);
    if (const auto equals = text.find('='); equals != std::string_view::npos)
      all.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  return all;
}

} // namespace godwit
