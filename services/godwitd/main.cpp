// godwitd: one node of the mesh.

#include "services/config/config.hpp"
#include "services/config/roles.hpp"
#include "services/daemon/daemon.hpp"
#include "services/daemon/termination.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

namespace {

constexpr int bad_usage = 2;

/// The flags, as keys and texts: what they may be is decided where file and environment are read too.
godwit::key_values read_flags(CLI::App& app, int argc, char** argv) {
  godwit::key_values flags;
  const auto add = [&](std::string key, const std::string& help) {
    std::string flag = "--" + key;
    std::replace(flag.begin(), flag.end(), '_', '-');
    app
      .add_option_function<std::string>(
        flag, [&flags, key](const std::string& text) { flags.emplace_back(key, text); }, help)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  };
  add("config", "TOML file with settings");
  for (const auto& one : godwit::settings())
    add(std::string(one.key), std::string(one.help));
  app.parse(argc, argv);
  return flags;
}

int complain(const std::string& sentence, int code) {
  std::fprintf(stderr, "godwitd: %s\n", sentence.c_str());
  return code;
}

int run(int argc, char** argv) {
  CLI::App app("One node of the Godwit inference mesh.", "godwitd");
  app.set_version_flag("--version", "godwitd " GODWIT_VERSION);
  app.footer("Each setting can stand in the file by its name with underscores, and in the environment as "
             "GODWIT_NAME.\nFlags beat the environment, which beats the file.");
  godwit::key_values flags;
  try {
    flags = read_flags(app, argc, argv);
  } catch (const CLI::Success& asked) {
    return app.exit(asked); // --help, --version
  } catch (const CLI::ParseError& wrong) {
    return complain(std::string(wrong.what()) + "; see --help", bad_usage);
  }
  const auto settings = godwit::load_config(flags, godwit::process_environment());
  if (!settings)
    return complain(
      settings.error().message, settings.error().code == godwit::errc::invalid_argument ? bad_usage : 1);
  if (settings->model.empty())
    return complain("no model is named; give --model FILE.gguf", bad_usage);
  if (const auto roles = godwit::roles_of(*settings); !roles)
    return complain(roles.error().message, bad_usage);
  // A second signal does not wait for anything: what was acknowledged is on the disk.
  godwit::termination stop([] { std::_Exit(1); });
  return godwit::run_node(*settings, stop, stdout, stderr);
}

} // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& unexpected) {
    return complain(unexpected.what(), 1);
  }
}
