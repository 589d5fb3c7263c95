#pragma once

#include "actors/jinja/fault.hpp"
#include "actors/jinja/limits.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace godwit::jinja {

enum class token_kind : std::uint8_t {
  data,
  variable_begin,
  variable_end,
  block_begin,
  block_end,
  name,
  string,
  integer,
  floating,
  symbol, ///< an operator or a bracket; `text` is it
  end,
};

struct token {
  token_kind kind = token_kind::end;
  int line = 0;
  std::string text; ///< of data and strings: the bytes meant, escapes resolved
  std::int64_t integer = 0;
  double floating = 0;

  bool is(std::string_view symbol) const { return kind == token_kind::symbol && text == symbol; }
  bool is_name(std::string_view name) const { return kind == token_kind::name && text == name; }
};

/// Cuts a template into tokens, ending with one of kind `end`. White space around tags is handled here, with
/// trim_blocks and lstrip_blocks on and without a last newline, as transformers sets them.
outcome<std::vector<token>> tokenize(std::string_view source, const limits& most);

} // namespace godwit::jinja
