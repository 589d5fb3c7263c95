#include "kernels/models/fingerprint.hpp"

#include "kernels/memory/kv_layout.hpp"

#include <xxhash.h>

#include <algorithm>
#include <vector>

namespace godwit {

namespace {

/// Bytes that one thread hashes at a time.
constexpr std::size_t piece = std::size_t{1} << 20;

struct work {
  const gguf::tensor* tensor;
  std::size_t offset;
};

/// XXH3 of a text, as hexadecimal digits.
std::string digest_of(std::string_view text) {
  XXH128_canonical_t digest;
  XXH128_canonicalFromHash(&digest, XXH3_128bits(text.data(), text.size()));
  std::string hexadecimal;
  for (const unsigned char byte : digest.digest) {
    constexpr std::string_view digits = "0123456789abcdef";
    hexadecimal += digits[byte >> 4U];
    hexadecimal += digits[byte & 15U];
  }
  return hexadecimal;
}

} // namespace

std::string fingerprint_of(
  const gguf::file& file, std::string_view contract, std::string_view numbers, team& threads) {
  // The tensors' bytes in parallel, piece by piece; then one hash over the pieces' hashes and the rest.
  std::vector<work> pieces;
  for (const auto& tensor : file.tensors()) {
    for (std::size_t offset = 0; offset < tensor.data.size(); offset += piece) {
      pieces.push_back({&tensor, offset});
    }
  }
  std::vector<XXH128_canonical_t> hashes(pieces.size());
  threads.run([&](worker& self) {
    for (std::size_t i = self.take(); i < pieces.size(); i = self.take()) {
      const auto all = pieces[i].tensor->data;
      const auto part = all.subspan(pieces[i].offset, std::min(piece, all.size() - pieces[i].offset));
      XXH128_canonicalFromHash(&hashes[i], XXH3_128bits(part.data(), part.size()));
    }
  });

  std::string text;
  const auto add = [&](std::string_view part) {
    text += std::to_string(part.size()) + ':';
    text += part;
  };
  add(contract);
  add(numbers);
  add("kv " + std::to_string(kv_layout_version) + ' ' + std::to_string(page_tokens));
  for (const auto& tensor : file.tensors()) {
    add(tensor.name);
    add(std::to_string(static_cast<std::uint32_t>(tensor.type)));
    for (const auto extent : tensor.shape) {
      add(std::to_string(extent));
    }
  }
  add({reinterpret_cast<const char*>(hashes.data()), hashes.size() * sizeof(XXH128_canonical_t)});
  return digest_of(text);
}

std::string fingerprint_with_pages(std::string_view fingerprint, kv_type type) {
  return digest_of(std::string(fingerprint) + " kv " + std::string(to_string(type)));
}

} // namespace godwit
