#pragma once

#include "actors/jinja/limits.hpp"
#include "messages/result.hpp"

#include <nlohmann/json_fwd.hpp>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

namespace godwit::jinja {

struct syntax_tree;

/// A template of the Jinja2 language, parsed: the subset that chat templates use, in the environment that
/// Hugging Face's transformers gives them (trim_blocks, lstrip_blocks, loop controls, `generation` tags, its
/// `tojson`, `raise_exception` and `strftime_now`), with bytes equal to Jinja2's. Integers have 64 bits.
/// Immutable; any thread may render.
class program {
 public:
  /// @returns `unsupported` naming a construct that Jinja2 has and this interpreter has not,
  /// `invalid_argument` for what is no template, `too_large`; every message names the line
  static result<std::shared_ptr<const program>> parse(std::string_view source, const limits& most = {});

  ~program();
  program(const program&) = delete;
  program& operator=(const program&) = delete;

  /// Renders with the members of `context`, an object, as variables. The JSON type decides whether mappings
  /// keep the order of their keys; templates that print tools want the ordered one.
  /// @param now what `strftime_now` shows, in UTC, so that every node renders the same
  /// @returns `invalid_argument` where Jinja2 raises, or `too_large` beyond a limit; no message holds text of
  /// the context
  result<std::string> render(
    const nlohmann::ordered_json& context, std::chrono::system_clock::time_point now) const;
  result<std::string> render(const nlohmann::json& context, std::chrono::system_clock::time_point now) const;

 private:
  program(std::unique_ptr<const syntax_tree> tree, const limits& most);

  std::unique_ptr<const syntax_tree> tree_;
  limits most_;
};

} // namespace godwit::jinja
