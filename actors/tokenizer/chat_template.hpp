#pragma once

#include "actors/jinja/program.hpp"
#include "kernels/gguf/file.hpp"
#include "messages/result.hpp"

#include <nlohmann/json_fwd.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace godwit {

/// Says what time it is.
using template_clock = std::function<std::chrono::system_clock::time_point()>;

/// How a model wants a conversation written: the template of its file, in the language of Jinja2. Immutable;
/// any thread may use it.
class chat_template {
 public:
  /// The template in `tokenizer.chat_template`, with the names of the tokens in `tokenizer.ggml.bos_token_id`
  /// and the like as `bos_token`, `eos_token`, `unk_token` and `pad_token`. A model without a template loads,
  /// and refuses to render.
  /// @param now what `strftime_now` shows
  /// @returns `unsupported` or `invalid_argument` with the line of a construct that we do not have; `corrupt`
  static result<std::shared_ptr<const chat_template>> load(
    const gguf::file& file, template_clock now = std::chrono::system_clock::now);

  /// Writes a conversation as a prompt. As in transformers, `tools` and `documents` are none unless given.
  /// @param messages a JSON array of objects, commonly with `role` and `content`
  /// @param add_generation_prompt end with what begins an answer
  /// @param extra a JSON object of more variables, which go before those above
  /// @returns `unsupported` if the model has no template; `invalid_argument` on `messages` if the template
  /// refuses them; `too_large`
  result<std::string> render(const nlohmann::ordered_json& messages, bool add_generation_prompt,
    const nlohmann::ordered_json& extra) const;
  result<std::string> render(const nlohmann::ordered_json& messages, bool add_generation_prompt) const;
  result<std::string> render(const nlohmann::json& messages, bool add_generation_prompt) const;

  bool exists() const { return program_ != nullptr; }
  /// The template as the file has it; empty if there is none.
  const std::string& source() const { return source_; }
  /// 128 bits over the template and the token names, as 32 hexadecimal digits: part of a session's
  /// fingerprint.
  const std::string& digest() const { return digest_; }

 private:
  struct token_name {
    std::string variable; ///< such as "bos_token"
    std::string text;
  };

  chat_template() = default;

  std::string source_;
  std::vector<token_name> names_;
  std::shared_ptr<const jinja::program> program_; ///< nullptr if the model has no template
  template_clock now_;
  std::string digest_;
};

} // namespace godwit
