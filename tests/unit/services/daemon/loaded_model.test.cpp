#include "services/daemon/loaded_model.hpp"

#include "tests/support/test_model.hpp"

#include <catch2/catch.hpp>

#include <fstream>

using namespace godwit;

TEST_CASE("a model that is missing or damaged is refused in words that name the file") {
  const auto missing = load_model("/nowhere/none.gguf", 1);
  REQUIRE_FALSE(missing);
  CHECK(missing.error().message.find("/nowhere/none.gguf") != std::string::npos);

  const auto path = std::filesystem::temp_directory_path() / "godwit-damaged-model.gguf";
  std::ofstream(path) << "GGUF, or so it says";
  const auto damaged = load_model(path, 1);
  std::filesystem::remove(path);
  REQUIRE_FALSE(damaged);
  CHECK(damaged.error().message.find(path.string()) != std::string::npos);
}

TEST_CASE("the card tells what the model is") {
  const auto path = test_model_path();
  const auto loaded = load_model(path, 1);
  REQUIRE(loaded);
  CHECK(loaded->card.id == path.stem());
  CHECK(loaded->card.context == 8192);
  CHECK(loaded->card.fingerprint.size() == 32);
  CHECK(loaded->card.fingerprint != loaded->model->fingerprint());
  CHECK(loaded->card.created > 1'700'000'000);
  REQUIRE(loaded->card.text);
  CHECK(loaded->card.text->size() == 49152);

  const auto without = load_model(path, 1, false, {}, false);
  REQUIRE(without);
  CHECK_FALSE(without->model);
  CHECK(without->card.fingerprint == loaded->card.fingerprint);
  CHECK(without->card.context == loaded->card.context);
  CHECK(without->card.text->size() == 49152);
  CHECK(without->tokenizer->digest() == loaded->tokenizer->digest());
}
