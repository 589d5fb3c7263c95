#pragma once

#include "actors/model_card.hpp"
#include "actors/tokenizer/chat_template.hpp"
#include "actors/tokenizer/tokenizer.hpp"
#include "kernels/gguf/file.hpp"
#include "kernels/models/model.hpp"
#include "messages/result.hpp"

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace godwit {

/// A model file, ready to be served.
struct loaded_model {
  std::shared_ptr<const gguf::file> file;
  model_options options;
  std::unique_ptr<godwit::model> model; ///< null where others compute it
  std::shared_ptr<const godwit::tokenizer> tokenizer;
  std::shared_ptr<const godwit::chat_template> chat_template;
  model_card card;
};

/// Opens a GGUF file and loads what is in it; weights and vocabulary at the same time, since both take long.
/// The card's id is the file's name without ".gguf", its fingerprint covers weights, kernels, tokenizer and
/// template.
/// @param threads for compute; 0 is one a core
/// @param keep    keep packed weights beside the model, in a file of its name and ".packed"
/// @param weights whether this node computes: without, the card is the same, and no memory is taken for them
/// @param notice  told when that file could not be used or written
/// @param kv      what keys and values are kept in; nothing: what the ops take by themselves
/// @returns the loaders' errors with the path in front: for the operator
result<loaded_model> load_model(const std::filesystem::path& path, unsigned threads, bool keep = false,
  std::function<void(const std::string&)> notice = {}, bool weights = true,
  std::optional<kv_type> kv = std::nullopt);

} // namespace godwit
