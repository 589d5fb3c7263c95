#include "actors/tokenizer/piece_tokenizer.hpp"

#include "actors/tokenizer/digest.hpp"
#include "actors/tokenizer/piece_merger.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace godwit {

namespace {

/// The score of each token.
result<std::vector<float>> read_scores(const gguf::file& file, std::size_t tokens) {
  auto scores = file.floats("tokenizer.ggml.scores");
  if (!scores)
    return fail(scores);
  if (scores->size() != tokens)
    return fail(errc::corrupt, "the model file has " + std::to_string(scores->size())
                                 + " entries in \"tokenizer.ggml.scores\", but " + std::to_string(tokens)
                                 + " in \"tokenizer.ggml.tokens\"");
  if (std::ranges::any_of(*scores, [](float score) { return std::isnan(score); }))
    return fail(errc::corrupt, "the model file's \"tokenizer.ggml.scores\" has one that is no number");
  return scores;
}

/// Text would be changed before it is cut into pieces.
result<void> refuse_normalising(const gguf::file& file) {
  constexpr auto* whitespace = "tokenizer.ggml.remove_extra_whitespaces";
  const auto removes = find_flag(file, whitespace, false);
  if (!removes)
    return fail(removes);
  for (const auto* key : {whitespace, "tokenizer.ggml.precompiled_charsmap"})
    if (file.find(key) != nullptr && (key != whitespace || *removes))
      return fail(errc::unsupported, "the model file's \"" + std::string(key) + "\" is not supported");
  return {};
}

} // namespace

result<std::shared_ptr<const piece_tokenizer>> piece_tokenizer::load(const gguf::file& file) {
  if (const auto known = refuse_normalising(file); !known)
    return fail(known);
  auto tokens = token_table::load_pieces(file);
  if (!tokens)
    return fail(tokens);
  auto scores = read_scores(file, (*tokens)->size());
  if (!scores)
    return fail(scores);
  auto frame = text_frame::load(file, *tokens, true, true);
  if (!frame)
    return fail(frame);

  const std::shared_ptr<piece_tokenizer> made(new piece_tokenizer(std::move(*tokens), std::move(*frame)));
  made->scores_ = std::move(*scores);
  made->digest_ = piece_tokenizer_digest(file);
  return made;
}

std::vector<token_id> piece_tokenizer::encode(std::string_view text, bool special) const {
  const auto& names = special ? frame_.where_asked : frame_.everywhere;
  piece_merger merger(*tokens_, scores_);
  std::vector<token_id> ids;
  const auto add_section = [&](std::string_view section) {
    if (frame_.space_prefix && !section.empty())
      merger.append(std::string(" ").append(section), ids);
    else
      merger.append(section, ids);
  };
  std::size_t done = 0;
  while (const auto name = names.find(text, done)) {
    add_section(text.substr(done, name->from - done));
    ids.push_back(name->id);
    done = name->from + name->size;
  }
  add_section(text.substr(done));
  return ids;
}

std::string piece_tokenizer::decode(std::span<const token_id> ids, bool special) const {
  std::string out;
  bool starts = true; // a section
  for (const auto id : ids) {
    const auto kind = tokens_->kind(id);
    const bool merged = kind == token_kind::text || kind == token_kind::byte;
    auto bytes = tokens_->bytes(id);
    if (merged && starts && frame_.space_prefix && bytes.starts_with(' '))
      bytes.remove_prefix(1);
    if (special || !tokens_->is_control(id))
      out += bytes;
    starts = !merged;
  }
  return out;
}

} // namespace godwit
