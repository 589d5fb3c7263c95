#include "actors/tokenizer/pre_tokenizer.hpp"

#include <nlohmann/json.hpp>

#include <catch2/catch.hpp>

#include <fstream>
#include <map>
#include <string>
#include <vector>

using namespace godwit;

TEST_CASE("texts are cut into the words that the Python package cuts them into") {
  std::ifstream stream(GODWIT_SOURCE_DIR "/tests/golden/pre_tokenizer/splits.json");
  std::map<std::string, std::unique_ptr<const pre_tokenizer>> made;
  std::size_t cases = 0;
  for (const auto& item : nlohmann::json::parse(stream)) {
    const auto name = item.at("pre").get<std::string>();
    auto& words = made[name];
    if (!words)
      words = std::make_unique<const pre_tokenizer>(*find_pre_tokenizer(name));
    const auto text = item.at("text").get<std::string>();
    INFO(name << ": " << item.at("text").dump());
    const auto split = words->split(text);
    CHECK(std::vector<std::string>(split.begin(), split.end())
          == item.at("words").get<std::vector<std::string>>());
    ++cases;
  }
  CHECK(cases == 5 * 198);
}

TEST_CASE("a megabyte of one kind of character is cut without running into a limit") {
  for (const auto* name : {"default", "gpt-2", "smollm", "llama-bpe", "qwen2"}) {
    INFO(name);
    const pre_tokenizer words(*find_pre_tokenizer(name));
    constexpr std::size_t size = 1 << 20;
    CHECK(words.split(std::string(size, 'a')).size() == 1);
    CHECK(words.split(std::string(size, ' ')).size() == 1);
    CHECK(words.split(std::string(size, ' ') + "x").size() == 2);
    CHECK(words.split(std::string(size, '!')).size() == 1);
    std::size_t total = 0;
    std::string mixed;
    while (mixed.size() < size)
      mixed += "\n \t'";
    for (const auto word : words.split(mixed))
      total += word.size();
    CHECK(total == mixed.size());
  }
}

TEST_CASE("names of the same rules are known, others are not") {
  CHECK(find_pre_tokenizer("llama3")->patterns.data() == find_pre_tokenizer("llama-bpe")->patterns.data());
  CHECK(find_pre_tokenizer("llama-v3")->whole_words);
  CHECK(
    find_pre_tokenizer("deepseek-r1-qwen")->patterns.data() == find_pre_tokenizer("qwen2")->patterns.data());
  CHECK(find_pre_tokenizer("tekken") == nullptr);
  CHECK(find_pre_tokenizer("") == nullptr);
}
