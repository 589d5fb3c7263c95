#pragma once

#include "actors/jinja/value.hpp"

namespace godwit::jinja {

/// A string that grows within the budget; what does not fit is dropped, and the budget then is used up.
class text_builder {
 public:
  explicit text_builder(budget& costs) : costs_(costs) {}
  ~text_builder() { costs_.give_back(bytes_.size()); }
  text_builder(const text_builder&) = delete;
  text_builder& operator=(const text_builder&) = delete;

  void append(std::string_view bytes) {
    if (!costs_.has_room(bytes.size()) || !costs_.spend_bytes(bytes.size()))
      return;
    costs_.take(bytes.size());
    bytes_ += bytes;
  }
  void append(std::size_t count, char c) {
    if (!costs_.has_room(count) || !costs_.spend_bytes(count))
      return;
    costs_.take(count);
    bytes_.append(count, c);
  }
  void append(std::size_t count, std::string_view piece) {
    if (piece.empty() || count == 0)
      return;
    const auto most = costs_.most().memory;
    const auto size = count > most / piece.size() ? most + 1 : count * piece.size();
    if (!costs_.has_room(size) || !costs_.spend_bytes(size))
      return;
    costs_.take(size);
    for (std::size_t i = 0; i < count; ++i)
      bytes_ += piece;
  }

  budget& costs() { return costs_; }
  const std::string& bytes() const { return bytes_; }
  /// The string; the builder is empty afterwards.
  std::string finish() {
    costs_.give_back(bytes_.size());
    return std::exchange(bytes_, {});
  }

 private:
  budget& costs_;
  std::string bytes_;
};

/// Python's str(): what `{{ }}` prints.
void print(text_builder& out, const value& v);
/// Python's repr(): how a value is shown within a list.
void print_repr(text_builder& out, const value& v);

/// print() as a string; a text's own bytes are returned without a copy through `scratch`.
std::string_view printed(budget& costs, const value& v, std::string& scratch);

/// repr() of a float: the fewest digits that read back as the same number.
std::string float_repr(double number);

} // namespace godwit::jinja
