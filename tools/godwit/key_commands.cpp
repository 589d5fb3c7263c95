#include "tools/godwit/key_commands.hpp"

#include "services/link/keys.hpp"

#include <fmt/core.h>

namespace godwit::cli {

using nlohmann::ordered_json;

namespace {

ordered_json key_json(const link::known_key& known) {
  return {{"node", known.node.value}, {"public_key", link::to_z85(known.key)}};
}

} // namespace

int keys_new(const settings& how, const std::string& name, const std::filesystem::path& folder) {
  const auto keys = link::make_keys(node_name(name));
  if (!keys)
    return report(keys.error(), how.json);
  if (const auto saved = link::save_keys(*keys, folder); !saved)
    return report(saved.error(), how.json);
  const auto secret = link::secret_file(folder, keys->node).string();
  const auto open = link::public_file(folder, keys->node).string();
  const link::known_key known{keys->node, keys->open};
  if (how.json) {
    auto out = key_json(known);
    out["secret_file"] = secret;
    out["public_file"] = open;
    print_json(out);
  } else {
    fmt::print("{} for the node alone, {} for all others:\n{}\n", secret, open, link::to_line(known));
  }
  return exit_ok;
}

int keys_show(const settings& how, const std::filesystem::path& file) {
  std::vector<link::known_key> all;
  if (file.extension() == ".secret") {
    const auto keys = link::load_keys(file);
    if (!keys)
      return report(keys.error(), how.json);
    all.push_back({keys->node, keys->open});
  } else {
    auto known = link::load_known_keys(file);
    if (!known)
      return report(known.error(), how.json);
    all = std::move(*known);
  }
  auto out = ordered_json::array();
  for (const auto& each : all) {
    out.push_back(key_json(each));
    if (!how.json)
      fmt::print("{}\n", link::to_line(each));
  }
  if (how.json)
    print_json(out);
  return exit_ok;
}

} // namespace godwit::cli
