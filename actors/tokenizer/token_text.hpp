#pragma once

#include "messages/ids.hpp"

#include <string_view>

namespace godwit {

/// What the tokens of one vocabulary stand for. Immutable; any thread may use it.
class token_text {
 public:
  virtual ~token_text() = default;

  /// Number of tokens; ids are below it.
  virtual token_id size() const = 0;
  /// The bytes a token stands for, not necessarily whole UTF-8 characters. A control token's are its name,
  /// such as
  /// "<|im_end|>".
  virtual std::string_view bytes(token_id id) const = 0;
  /// True for tokens that steer and are not part of an answer's text.
  virtual bool is_control(token_id id) const = 0;
  /// True for tokens that end an answer.
  virtual bool is_end(token_id id) const = 0;
};

} // namespace godwit
