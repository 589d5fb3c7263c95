#include "actors/tokenizer/chat_template.hpp"
#include "actors/tokenizer/tokenizer.hpp"
#include "kernels/gguf/writer.hpp"
#include "tests/support/test_model.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <fstream>

using namespace godwit;
using json = nlohmann::ordered_json;

namespace {

/// A model file that holds a template and the names of two tokens.
std::vector<std::byte> small_model(const std::optional<std::string>& source, std::uint32_t eos = 1) {
  gguf::writer made;
  const std::vector<std::string> tokens{"<s>", "</s>"};
  made.add_array("tokenizer.ggml.tokens", std::span<const std::string>(tokens));
  made.add("tokenizer.ggml.bos_token_id", std::uint32_t{0}).add("tokenizer.ggml.eos_token_id", eos);
  if (source)
    made.add("tokenizer.chat_template", *source);
  return made.finish();
}

std::shared_ptr<const chat_template> loaded(const std::optional<std::string>& source) {
  const auto bytes = small_model(source);
  const auto file = gguf::file::parse(bytes);
  REQUIRE(file);
  auto made = chat_template::load(**file, [] { return std::chrono::system_clock::time_point(); });
  REQUIRE(made);
  return *made;
}

const json hello = {{{"role", "user"}, {"content", "Hi"}}};

} // namespace

TEST_CASE("the chats of the shipped model are rendered and encoded as transformers does it") {
  const auto file = gguf::file::open(test_model_path());
  REQUIRE(file);
  const auto chat = chat_template::load(**file);
  REQUIRE(chat);
  std::ifstream in(std::string(GODWIT_SOURCE_DIR) + "/tests/golden/smollm2.json");
  const auto golden = json::parse(in);
  REQUIRE(golden["chat"].size() == 7);
  const auto words = tokenizer::load(**file);
  REQUIRE(words);
  for (const auto& one : golden["chat"]) {
    const auto text = (*chat)->render(one["messages"], true);
    CHECK(text == one["text"].get<std::string>());
    CHECK((*words)->encode(text.value_or(""), true) == one["ids"].get<std::vector<token_id>>());
  }
}

TEST_CASE("a template sees its tokens, no tools, and what else it is given") {
  const auto chat = loaded("{{ bos_token }}{{ messages[0].content }}{{ eos_token }}{{ unk_token is defined }}"
                           "{{ tools is none }}{{ documents is none }}{{ add_generation_prompt }}{{ mood }}");
  CHECK(chat->render(hello, false) == "<s>Hi</s>FalseTrueTrueFalse");
  CHECK(chat->render(hello, true, {{"mood", "calm"}, {"tools", json::array()}})
        == "<s>Hi</s>FalseFalseTrueTruecalm");
}

TEST_CASE("tools keep the order of their keys") {
  const auto chat = loaded("{{ tools|tojson }}");
  const auto tools =
    json::parse(R"([{"type":"function","function":{"name":"f","arguments":{"z":1,"a":2}}}])");
  CHECK(chat->render(hello, true, {{"tools", tools}})
        == R"([{"type": "function", "function": {"name": "f", "arguments": {"z": 1, "a": 2}}}])");
}

TEST_CASE("a model without a template refuses to chat") {
  const auto chat = loaded(std::nullopt);
  CHECK_FALSE(chat->exists());
  const auto out = chat->render(hello, true);
  REQUIRE_FALSE(out);
  CHECK(out.error().code == errc::unsupported);
  CHECK(out.error().message.find("tokenizer.chat_template") != std::string::npos);
}

TEST_CASE("a template that cannot be used is refused when it is loaded, with the construct and its line") {
  const auto bytes = small_model("a\n{% include 'x' %}");
  const auto made = chat_template::load(**gguf::file::parse(bytes));
  REQUIRE_FALSE(made);
  CHECK(made.error().code == errc::unsupported);
  CHECK(made.error().message
        == "the model's chat template cannot be used: line 2 of the template: the tag 'include' is not "
           "supported");
}

TEST_CASE("a token name outside of the vocabulary is corrupt") {
  const auto bytes = small_model("x", 2);
  const auto made = chat_template::load(**gguf::file::parse(bytes));
  REQUIRE_FALSE(made);
  CHECK(made.error().code == errc::corrupt);
  CHECK(made.error().message.find("tokenizer.ggml.eos_token_id") != std::string::npos);
}

TEST_CASE("what the template raises is an error on messages") {
  const auto chat = loaded("{{ raise_exception('Roles must alternate') }}");
  const auto out = chat->render(hello, true);
  REQUIRE_FALSE(out);
  CHECK(out.error().code == errc::invalid_argument);
  CHECK(out.error().param == "messages");
  CHECK(
    out.error().message == "the model's chat template refuses: line 1 of the template: Roles must alternate");
  CHECK(chat->render(json::object(), true).error().param == "messages");
}

TEST_CASE("the digest tells templates and token names apart") {
  const auto a = loaded("x")->digest();
  CHECK(a == loaded("x")->digest());
  CHECK(a != loaded("y")->digest());
  CHECK(a != loaded(std::nullopt)->digest());
  CHECK(a.size() == 32);
  CHECK(a.find_first_not_of("0123456789abcdef") == std::string::npos);
}
