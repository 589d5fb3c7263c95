// The reader against the model that the project ships with. The values were read from the file with the
// Python package `gguf`.
#include "kernels/gguf/file.hpp"
#include "tests/support/test_model.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <chrono>
#include <vector>

using namespace godwit;
using namespace godwit::gguf;

TEST_CASE("the shipped model opens with its known contents") {
  const auto made = file::open(test_model_path());
  REQUIRE(made.has_value());
  const auto& model = **made;
  CHECK(model.version() == 3);
  CHECK(model.size_bytes() == 98'362'432);
  CHECK(model.metadata().size() == 33);
  CHECK(model.tensors().size() == 272);

  CHECK(model.string_value("general.architecture") == "llama");
  CHECK(model.unsigned_value("llama.block_count") == 30U);
  CHECK(model.unsigned_value("llama.context_length") == 8192U);
  CHECK(model.unsigned_value("llama.attention.head_count_kv") == 3U);
  CHECK(model.float_value("llama.rope.freq_base") == 100'000.0);
  CHECK(model.float_value("llama.attention.layer_norm_rms_epsilon") == static_cast<double>(1e-5F));
  CHECK(model.bool_value("tokenizer.ggml.add_bos_token") == false);

  const auto tokens = model.strings("tokenizer.ggml.tokens").value();
  CHECK(tokens.size() == 49'152);
  CHECK(tokens[1] == "<|im_start|>");
  CHECK(model.integers("tokenizer.ggml.token_type")->at(17) == 1);
  const auto merges = model.strings("tokenizer.ggml.merges").value();
  CHECK(merges[2] == "i n");
}

TEST_CASE("the shipped model's tensors have their known types, shapes and places") {
  const auto model = file::open(test_model_path()).value();
  const auto count = [&](tensor_type type) {
    return std::ranges::count(model->tensors(), type, &tensor::type);
  };
  CHECK(count(tensor_type::q4_1) == 210);
  CHECK(count(tensor_type::f32) == 61);
  CHECK(count(tensor_type::q8_0) == 1);

  const auto* embedding = model->find_tensor("token_embd.weight");
  REQUIRE(embedding != nullptr);
  CHECK(embedding->type == tensor_type::q8_0);
  CHECK(embedding->shape == std::vector<std::uint64_t>{576, 49'152});
  CHECK(embedding->data.size() == 30'081'024);
  const auto* down = model->find_tensor("blk.0.ffn_down.weight");
  REQUIRE(down != nullptr);
  CHECK(down->columns() == 1536);
  CHECK(down->rows() == 576);
  CHECK(down->data.size() == 552'960);
  CHECK(down->data.data() - embedding->data.data() == 31'868'992 - 1'785'664);
}

TEST_CASE("the shipped model truncated at any of 200 places is refused") {
  // In place of 200 copies of 98 MB: a view of the mapped file, cut short.
  const auto model = file::open(test_model_path()).value();
  const auto* first = model->find_tensor("token_embd.weight");
  const std::span<const std::byte> bytes(first->data.data() - 1'785'664, model->size_bytes());
  REQUIRE(file::parse(bytes).has_value());
  for (std::size_t i = 0; i < 200; ++i) {
    // The first half of the places in the metadata and the tensor table, the others anywhere.
    const auto size = i < 100 ? 1'785'664 * i / 100 : bytes.size() - 1 - (200 - i - 1) * 973'141;
    INFO("cut at " << size);
    const auto cut = file::parse(bytes.first(size));
    REQUIRE_FALSE(cut.has_value());
    CHECK(cut.error().code == errc::corrupt);
  }
}
