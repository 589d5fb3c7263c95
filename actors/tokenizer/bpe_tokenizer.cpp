#include "actors/tokenizer/bpe_tokenizer.hpp"

#include "actors/text/utf8.hpp"
#include "actors/tokenizer/digest.hpp"
#include "actors/tokenizer/word_merger.hpp"

#include <utility>

namespace godwit {

/// One text on its way to tokens.
class bpe_tokenizer::encoding {
 public:
  explicit encoding(const bpe_tokenizer& owner) : owner_(owner), merger_(*owner.tokens_, owner.merges_) {}

  void add_special(token_id id) { ids_.push_back(id); }

  /// Text between special tokens.
  void add_section(std::string_view text) {
    if (owner_.frame_.space_prefix && !text.empty() && text[0] != ' ')
      add_text(std::string(" ").append(text));
    else
      add_text(text);
  }

  std::vector<token_id> take() { return std::move(ids_); }

 private:
  /// Bytes that are not UTF-8 become their own tokens; what stands before and behind them is encoded as if
  /// the text ended there.
  void add_text(std::string_view text) {
    std::size_t good = 0;
    while (good < text.size()) {
      const auto next = utf8::first(text.substr(good));
      if (next.valid) {
        good += next.size;
        continue;
      }
      add_words(text.substr(0, good));
      for (const char byte : text.substr(good, next.size))
        if (const auto id = owner_.tokens_->of_byte(static_cast<std::uint8_t>(byte)))
          ids_.push_back(*id);
      text.remove_prefix(good + next.size);
      good = 0;
    }
    add_words(text);
  }

  void add_words(std::string_view text) {
    for (const auto word : owner_.words_.split(text)) {
      const auto whole = owner_.whole_words_ ? owner_.tokens_->find(word) : std::nullopt;
      if (whole)
        ids_.push_back(*whole);
      else
        merger_.append(word, ids_);
    }
  }

  const bpe_tokenizer& owner_;
  word_merger merger_;
  std::vector<token_id> ids_;
};

bpe_tokenizer::bpe_tokenizer(std::shared_ptr<const token_table> tokens, merge_table merges, text_frame frame,
  const pre_tokenizer_rules& rules)
  : tokens_(std::move(tokens)), merges_(std::move(merges)), frame_(std::move(frame)), words_(rules),
    whole_words_(rules.whole_words) {}

result<std::shared_ptr<const bpe_tokenizer>> bpe_tokenizer::load(const gguf::file& file) {
  const auto pre = file.string_value("tokenizer.ggml.pre");
  if (!pre)
    return fail(pre);
  const auto* rules = find_pre_tokenizer(*pre);
  if (rules == nullptr)
    return fail(errc::unsupported, "the model file's \"tokenizer.ggml.pre\" is \""
                                     + std::string(pre->substr(0, 64)) + "\", which is not supported");
  auto tokens = token_table::load(file);
  if (!tokens)
    return fail(tokens);
  auto merges = merge_table::load(file, **tokens);
  if (!merges)
    return fail(merges);
  auto frame = text_frame::load(file, *tokens, rules->begins, false);
  if (!frame)
    return fail(frame);

  const std::shared_ptr<bpe_tokenizer> made(
    new bpe_tokenizer(std::move(*tokens), std::move(*merges), std::move(*frame), *rules));
  made->digest_ = tokenizer_digest(file, *rules);
  return made;
}

std::vector<token_id> bpe_tokenizer::encode(std::string_view text, bool special) const {
  const auto& names = special ? frame_.where_asked : frame_.everywhere;
  encoding made(*this);
  std::size_t done = 0;
  while (const auto name = names.find(text, done)) {
    made.add_section(text.substr(done, name->from - done));
    made.add_special(name->id);
    done = name->from + name->size;
  }
  made.add_section(text.substr(done));
  return made.take();
}

std::string bpe_tokenizer::decode(std::span<const token_id> ids, bool special) const {
  std::string out;
  for (const auto id : ids)
    if (special || !tokens_->is_control(id))
      out += tokens_->bytes(id);
  return out;
}

} // namespace godwit
