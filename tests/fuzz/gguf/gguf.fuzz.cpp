// Bytes from outside as a model file: opened or refused, never harmful; what is opened reads within its
// bytes.
#include "kernels/gguf/file.hpp"
#include "messages/check.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace godwit::gguf;
  const auto made = file::parse(std::as_bytes(std::span(data, size)));
  if (!made) {
    GODWIT_CHECK(!made.error().message.empty() && made.error().message.size() < 300);
    return 0;
  }
  const auto& model = **made;
  for (const auto& [key, item] : model.metadata()) {
    GODWIT_CHECK(model.find(key) == &item);
    (void)model.unsigned_value(key);
    (void)model.float_value(key);
    (void)model.bool_value(key);
    (void)model.integers(key);
    (void)model.floats(key);
    std::size_t bytes = 0;
    if (const auto text = model.string_value(key))
      bytes = text->size();
    if (const auto texts = model.strings(key))
      for (const auto text : *texts)
        bytes += text.size();
    GODWIT_CHECK(bytes <= size);
  }
  for (const auto& each : model.tensors()) {
    GODWIT_CHECK(model.find_tensor(each.name) == &each);
    GODWIT_CHECK(each.data.size() == each.rows() * each.row_bytes());
    // Touches the first and the last byte: the sanitizer sees whether they are ours.
    GODWIT_CHECK(
      (std::to_integer<unsigned>(each.data.front()) + std::to_integer<unsigned>(each.data.back())) < 511);
  }
  return 0;
}
