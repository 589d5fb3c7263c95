#pragma once

#include "kernels/gguf/tensor_type.hpp"

#include <cstddef>
#include <cstring>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace godwit {

/// A line of tests/golden/quant/vectors.txt.
struct quant_vector {
  std::string kind; ///< "quantize" or "dequantize"
  gguf::tensor_type type = gguf::tensor_type::f32;
  std::vector<float> floats;
  std::vector<std::byte> blocks;
};

inline std::vector<std::byte> bytes_of_hex(const std::string& hex) {
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes.push_back(static_cast<std::byte>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return bytes;
}

/// All lines of one kind.
/// @throws std::runtime_error if the file is not there or holds another type
inline std::vector<quant_vector> quant_vectors(const std::string& kind) {
  std::ifstream file(GODWIT_SOURCE_DIR "/tests/golden/quant/vectors.txt");
  if (!file)
    throw std::runtime_error("tests/golden/quant/vectors.txt is missing");
  std::vector<quant_vector> all;
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string name, from, to;
    quant_vector each;
    words >> each.kind >> name >> from >> to;
    if (each.kind != kind)
      continue;
    for (std::uint32_t number = 0; number < 64; ++number)
      if (const auto type = gguf::to_tensor_type(number); type && gguf::to_string(*type) == name)
        each.type = *type;
    if (gguf::to_string(each.type) != name)
      throw std::runtime_error("tests/golden/quant/vectors.txt has the unknown type " + name);
    each.blocks = bytes_of_hex(kind == "quantize" ? to : from);
    const auto raw = bytes_of_hex(kind == "quantize" ? from : to);
    each.floats.resize(raw.size() / sizeof(float));
    std::memcpy(each.floats.data(), raw.data(), raw.size());
    all.push_back(std::move(each));
  }
  return all;
}

} // namespace godwit
