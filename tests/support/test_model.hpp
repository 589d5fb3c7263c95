#pragma once

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

namespace godwit {

/// A model that tests run on: the file that an environment variable names if it is set, else one in models/.
/// @throws std::runtime_error saying what to do if it is not there, so that a test fails in place of passing
inline std::filesystem::path found_model(
  const char* variable, const std::string& name, const std::string& command) {
  const char* named = std::getenv(variable);
  const std::filesystem::path path = named != nullptr && *named != '\0'
                                       ? std::filesystem::path(named)
                                       : std::filesystem::path(GODWIT_SOURCE_DIR) / "models" / name;
  if (!std::filesystem::exists(path))
    throw std::runtime_error(
      "the model " + name + " is missing: run " + command + ", or name a file in " + variable);
  return path;
}

/// SmolLM2 135M Instruct, which most tests run on.
inline std::filesystem::path test_model_path() {
  return found_model("GODWIT_TEST_MODEL", "SmolLM2-135M-Instruct.Q4_1.gguf", "tools/fetch-model");
}

/// Gemma 3 270M: other types of weights, windows, and a vocabulary of pieces.
inline std::filesystem::path gemma_model_path() {
  return found_model("GODWIT_TEST_GEMMA", "gemma-3-270m-q4_k_m.gguf", "tools/fetch-model --gemma");
}

} // namespace godwit
