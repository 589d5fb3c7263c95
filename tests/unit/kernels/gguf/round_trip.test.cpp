// What the writer was given, the reader gives back: over random files.
#include "kernels/gguf/file.hpp"
#include "kernels/gguf/writer.hpp"

#include <catch2/catch.hpp>

#include <map>
#include <random>
#include <string>
#include <vector>

using namespace godwit;
using namespace godwit::gguf;

namespace {

class source {
 public:
  explicit source(std::uint32_t seed) : random_(seed) {}

  std::uint64_t below(std::uint64_t limit) { return random_() % limit; }
  std::string text(std::uint64_t most) {
    std::string made(below(most + 1), ' ');
    for (auto& c : made)
      c = static_cast<char>(below(256));
    return made;
  }
  std::string name(std::size_t i) { return std::string(1 + below(40), 'a') + std::to_string(i); }
  std::vector<std::byte> bytes(std::size_t count) {
    std::vector<std::byte> made(count);
    for (auto& b : made)
      b = static_cast<std::byte>(below(256));
    return made;
  }

 private:
  std::mt19937_64 random_;
};

} // namespace

TEST_CASE("random files come back as they were written") {
  constexpr tensor_type types[]{tensor_type::f32, tensor_type::f16, tensor_type::bf16, tensor_type::q4_0,
    tensor_type::q4_1, tensor_type::q5_0, tensor_type::q5_1, tensor_type::q8_0, tensor_type::q4_k,
    tensor_type::q5_k, tensor_type::q6_k};
  for (std::uint32_t seed = 0; seed < 100; ++seed) {
    INFO("seed " << seed);
    source random(seed);
    writer made(random.below(2) == 0 ? 2 : 3, 8U << random.below(7));
    std::map<std::string, std::uint64_t> numbers;
    std::map<std::string, std::string> texts;
    std::map<std::string, std::vector<std::string>> lists;
    std::map<std::string, std::pair<std::vector<std::uint64_t>, std::vector<std::byte>>> tensors;

    for (std::size_t i = random.below(20); i > 0; --i) {
      const auto key = random.name(i);
      if (const auto kind = random.below(3); kind == 0) {
        numbers[key] = random.below(~std::uint64_t{0});
        made.add(key, numbers[key]);
      } else if (kind == 1) {
        texts[key] = random.text(50);
        made.add(key, texts[key]);
      } else {
        for (auto items = random.below(10); items > 0; --items)
          lists[key].push_back(random.text(5));
        made.add_array(key, lists[key]);
      }
    }
    for (std::size_t i = random.below(12); i > 0; --i) {
      const auto type = types[random.below(std::size(types))];
      const auto blocks = 1 + random.below(3);
      std::vector<std::uint64_t> shape{blocks * block_elements(type)};
      std::uint64_t rows = 1;
      for (auto more = random.below(4); more > 0; --more) {
        shape.push_back(1 + random.below(3));
        rows *= shape.back();
      }
      const auto name = random.name(i);
      tensors[name] = {shape, random.bytes(rows * blocks * block_bytes(type))};
      made.add_tensor(name, type, shape, tensors[name].second);
    }

    const auto bytes = made.finish();
    const auto model = file::parse(bytes);
    REQUIRE(model.has_value());
    for (const auto& [key, number] : numbers)
      REQUIRE((*model)->unsigned_value(key) == number);
    for (const auto& [key, text] : texts)
      REQUIRE((*model)->string_value(key) == text);
    for (const auto& [key, list] : lists) {
      const auto found = (*model)->strings(key);
      REQUIRE(found.has_value());
      REQUIRE(std::vector<std::string>(found->begin(), found->end()) == list);
    }
    REQUIRE((*model)->tensors().size() == tensors.size());
    for (const auto& [name, expected] : tensors) {
      const auto* found = (*model)->find_tensor(name);
      REQUIRE(found != nullptr);
      REQUIRE(found->shape == expected.first);
      REQUIRE(std::vector<std::byte>(found->data.begin(), found->data.end()) == expected.second);
    }
  }
}
