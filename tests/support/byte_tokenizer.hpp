#pragma once

#include "actors/tokenizer/tokenizer.hpp"

#include <array>
#include <memory>
#include <string>

namespace godwit {

/// A tokenizer for tests whose tokens are the bytes, token 256 "<end>" that ends, and token 257 "<mark>",
/// which steers.
class byte_tokenizer : public tokenizer {
 public:
  std::vector<token_id> encode(std::string_view bytes, bool special) const override {
    std::vector<token_id> out;
    while (!bytes.empty()) {
      token_id id = static_cast<unsigned char>(bytes[0]);
      for (token_id control = 256; special && control < words_->size(); ++control)
        if (bytes.starts_with(words_->bytes(control)))
          id = control;
      out.push_back(id);
      bytes.remove_prefix(words_->bytes(id).size());
    }
    return out;
  }

  std::string decode(std::span<const token_id> ids, bool special) const override {
    std::string out;
    for (const auto id : ids)
      if (special || !words_->is_control(id))
        out += words_->bytes(id);
    return out;
  }

  std::shared_ptr<const token_text> text() const override { return words_; }
  std::optional<token_id> begin_token() const override { return std::nullopt; }
  const std::string& digest() const override { return digest_; }

 private:
  class words : public token_text {
   public:
    words() {
      for (std::size_t i = 0; i < 256; ++i)
        names_[i] = static_cast<char>(i);
      names_[256] = "<end>";
      names_[257] = "<mark>";
    }
    token_id size() const override { return 258; }
    std::string_view bytes(token_id id) const override { return names_[id]; }
    bool is_control(token_id id) const override { return id >= 256; }
    bool is_end(token_id id) const override { return id == 256; }

   private:
    std::array<std::string, 258> names_;
  };

  std::shared_ptr<const words> words_ = std::make_shared<words>();
  std::string digest_ = "00000000000000000000000000000000";
};

} // namespace godwit
