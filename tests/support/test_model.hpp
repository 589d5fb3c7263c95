#pragma once

#include <cstdlib>
#include <filesystem>
#include <stdexcept>

namespace godwit {

/// The model that tests run on: GODWIT_TEST_MODEL if set, else the one that tools/fetch-model puts into
/// models/.
/// @throws std::runtime_error saying what to do if it is not there, so that a test fails in place of passing
inline std::filesystem::path test_model_path() {
  const char* named = std::getenv("GODWIT_TEST_MODEL");
  const std::filesystem::path path =
    named != nullptr && *named != '\0'
      ? std::filesystem::path(named)
      : std::filesystem::path(GODWIT_SOURCE_DIR) / "models/SmolLM2-135M-Instruct.Q4_1.gguf";
  if (!std::filesystem::exists(path))
    throw std::runtime_error(
      "the test model is missing: run tools/fetch-model, or name a file in GODWIT_TEST_MODEL");
  return path;
}

} // namespace godwit
