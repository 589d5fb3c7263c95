#include "tools/godwit/model_info.hpp"

#include "tests/support/test_model.hpp"
#include "tests/support/tiny_vocabulary.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <span>

using namespace godwit;
using namespace godwit::cli;

TEST_CASE("the shipped model is described by its published numbers") {
  const auto info = model_info(*gguf::file::open(test_model_path()).value());
  CHECK(info.at("architecture") == "llama");
  CHECK(info.at("parameters") == 134'515'008);
  CHECK(info.at("context") == 8192);
  CHECK(info.at("vocabulary") == 49'152);
  CHECK(info.at("embedding") == 576);
  CHECK(info.at("layers") == 30);
  CHECK(info.at("heads") == 9);
  CHECK(info.at("kv_heads") == 3);
  CHECK(info.at("graph").at("positions") == "base 100000");
  CHECK(info.at("graph").at("parts") == "SiLU gate");
  CHECK(info.at("tensors").at("Q4_1").at("count") == 210);
  CHECK(info.at("tensors").at("Q8_0").at("bytes") == 30'081'024);
  CHECK(info.at("tokenizer").at("pre") == "smollm");
  CHECK(info.at("tokenizer").at("digest").get<std::string>().size() == 32);
  CHECK(info.at("chat_template").at("exists") == true);
  CHECK(std::ranges::any_of(info.at("ops"), [](const auto& line) { return line.at("name") == "reference"; }));
}

TEST_CASE("what a file does not say is null, and what cannot be used says why") {
  gguf::writer writer;
  const std::array<float, 6> weights{};
  writer.add("general.architecture", "strange").add("tokenizer.ggml.model", "runes");
  writer.add_array("strange.attention.head_count", std::array<std::int32_t, 2>{4, 8});
  writer.add_tensor("a", gguf::tensor_type::f32, {3, 2}, std::as_bytes(std::span(weights)));
  const made_file file(writer.finish());
  const auto info = model_info(*file);
  CHECK(info.at("architecture") == "strange");
  CHECK(info.at("name").is_null());
  CHECK(info.at("context").is_null());
  CHECK(info.at("heads") == nlohmann::ordered_json{4, 8});
  CHECK(info.at("parameters") == 6);
  CHECK(info.at("tensors").at("F32").at("bytes") == 24);
  CHECK_THAT(info.at("tokenizer").at("error").get<std::string>(), Catch::Contains("\"runes\""));
  CHECK_THAT(info.at("graph").at("error").get<std::string>(), Catch::Contains("\"strange\""));
  CHECK(info.at("chat_template").at("exists") == false);
}
