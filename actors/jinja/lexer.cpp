#include "actors/jinja/lexer.hpp"

#include "actors/jinja/literals.hpp"
#include "actors/text/letters.hpp"
#include "actors/text/utf8.hpp"

#include <algorithm>
#include <array>

namespace godwit::jinja {

namespace {

constexpr auto npos = std::string_view::npos;

/// "\r\n" and "\r" become "\n"; one newline at the very end is dropped.
std::string normalize(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r')
      out.push_back(source[i]);
    else if (i + 1 == source.size() || source[i + 1] != '\n')
      out.push_back('\n');
  }
  if (out.ends_with('\n'))
    out.pop_back();
  return out;
}

bool starts_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/// How a tag's mark was signed: "{%-", "{%+", "{%".
enum class sign { none, minus, plus };

class lexer {
 public:
  explicit lexer(std::string_view source) : source_(source) {}

  outcome<std::vector<token>> run() {
    while (at_ < source_.size()) {
      JINJA_CHECK(text_and_tag());
    }
    push(token_kind::end, {});
    return std::move(tokens_);
  }

 private:
  std::string_view rest() const { return source_.substr(at_); }
  bool sees(std::string_view what) const { return rest().starts_with(what); }

  tl::unexpected<fault> syntax(std::string message) const {
    return stop(errc::invalid_argument, std::move(message), line_);
  }

  /// Moves on and counts lines.
  void advance(std::size_t bytes) {
    line_ += static_cast<int>(std::ranges::count(source_.substr(at_, bytes), '\n'));
    at_ += bytes;
  }

  void skip_space() {
    while (at_ < source_.size() && letters::is_space(utf8::first(rest()).code))
      advance(utf8::first(rest()).size);
  }

  /// The offset behind white space at `from`.
  std::size_t behind_space(std::size_t from) const {
    while (from < source_.size() && letters::is_space(utf8::first(source_.substr(from)).code))
      from += utf8::first(source_.substr(from)).size;
    return from;
  }

  token& push(token_kind kind, std::string text) {
    tokens_.push_back({.kind = kind, .line = line_, .text = std::move(text)});
    return tokens_.back();
  }

  sign take_sign() {
    const auto seen = sees("-") ? sign::minus : sees("+") ? sign::plus : sign::none;
    advance(seen == sign::none ? 0 : 1);
    return seen;
  }

  /// Takes the end of a tag at this place: "%}", "-%}", and for blocks and comments "+%}"; eats the white
  /// space that goes with it. @returns whether it stood there
  bool take_end(std::string_view mark, bool is_block) {
    const bool minus = sees("-") && rest().substr(1).starts_with(mark);
    const bool plus = is_block && sees("+") && rest().substr(1).starts_with(mark);
    if (!minus && !plus && !sees(mark))
      return false;
    advance(mark.size() + (minus || plus ? 1 : 0));
    if (minus)
      skip_space();
    else if (is_block && !plus && sees("\n"))
      advance(1); // trim_blocks
    return true;
  }

  /// What stays of the text before a tag. `line_starts` says whether the text begins a line.
  static std::string_view before_tag(
    std::string_view text, sign signed_with, bool strips_line, bool line_starts) {
    if (signed_with == sign::minus) {
      while (!text.empty()) {
        auto start = text.size() - 1;
        while (start > 0 && (static_cast<unsigned char>(text[start]) & 0xC0) == 0x80)
          --start;
        if (!letters::is_space(utf8::first(text.substr(start)).code))
          break;
        text = text.substr(0, start);
      }
    } else if (signed_with == sign::none && strips_line) {
      // lstrip_blocks: only white space between the start of the line and the tag
      const auto newline = text.rfind('\n');
      const auto start = newline == npos ? 0 : newline + 1;
      if (start > 0 || line_starts) {
        auto tail = text.substr(start);
        while (!tail.empty() && letters::is_space(utf8::first(tail).code))
          tail.remove_prefix(utf8::first(tail).size);
        if (tail.empty())
          text = text.substr(0, start);
      }
    }
    return text;
  }

  bool at_line_start() const { return at_ == 0 || source_[at_ - 1] == '\n'; }

  void push_data(std::string_view text) {
    if (!text.empty())
      push(token_kind::data, std::string(text));
  }

  /// Text up to the next tag, and the tag.
  outcome<void> text_and_tag() {
    auto open = source_.find('{', at_);
    while (
      open != npos && (open + 1 >= source_.size() || std::string_view("{%#").find(source_[open + 1]) == npos))
      open = source_.find('{', open + 1);
    if (open == npos) {
      push_data(rest());
      advance(rest().size());
      return {};
    }
    const auto text = source_.substr(at_, open - at_);
    const bool line_starts = at_line_start();
    const char kind = source_[open + 1];
    const int text_line = line_;
    advance(text.size() + 2);
    const int tag_line = line_;
    const auto signed_with = take_sign();
    const auto kept = before_tag(text, signed_with, kind != '{', line_starts);
    line_ = text_line;
    push_data(kept);
    line_ = tag_line;
    if (kind == '#')
      return comment();
    if (kind == '{') {
      push(token_kind::variable_begin, {});
      return tag("}}", token_kind::variable_end, false);
    }
    if (is_raw_tag())
      return raw();
    push(token_kind::block_begin, {});
    return tag("%}", token_kind::block_end, true);
  }

  outcome<void> comment() {
    const auto close = source_.find("#}", at_);
    if (close == npos)
      return syntax("Missing end of comment tag");
    const bool is_signed = close > at_ && (source_[close - 1] == '-' || source_[close - 1] == '+');
    advance(close - at_ - (is_signed ? 1 : 0));
    take_end("#}", true);
    return {};
  }

  bool is_raw_tag() const {
    auto next = behind_space(at_);
    if (!source_.substr(next).starts_with("raw"))
      return false;
    next = behind_space(next + 3);
    const auto tail = source_.substr(next);
    return tail.starts_with("%}") || tail.starts_with("-%}");
  }

  /// Text up to `{% endraw %}`, as it is.
  outcome<void> raw() {
    skip_space();
    advance(3);
    skip_space();
    take_end("%}", false); // a raw tag does not eat the newline after it
    const bool line_starts = at_line_start();
    for (auto open = source_.find("{%", at_); open != npos; open = source_.find("{%", open + 1)) {
      const auto marked = open + 2;
      const char c = marked < source_.size() ? source_[marked] : 0;
      const auto signed_with = c == '-' ? sign::minus : c == '+' ? sign::plus : sign::none;
      const auto word = behind_space(marked + (signed_with == sign::none ? 0 : 1));
      if (!source_.substr(word).starts_with("endraw"))
        continue;
      const auto close = behind_space(word + 6);
      const auto tail = source_.substr(close);
      if (!tail.starts_with("%}") && !tail.starts_with("-%}") && !tail.starts_with("+%}"))
        continue;
      push_data(before_tag(source_.substr(at_, open - at_), signed_with, true, line_starts));
      advance(close - at_);
      take_end("%}", true);
      return {};
    }
    return syntax("Missing end of raw directive");
  }

  /// The tokens of a tag up to its end.
  outcome<void> tag(std::string_view mark, token_kind end, bool is_block) {
    std::string brackets; // the closing ones that are awaited
    while (true) {
      if (brackets.empty()) {
        const int line = line_;
        if (take_end(mark, is_block)) {
          push(end, {}).line = line;
          return {};
        }
      }
      if (at_ >= source_.size())
        return syntax("unexpected end of template within a tag");
      const auto before = at_;
      skip_space();
      if (at_ != before)
        continue;
      JINJA_CHECK(one_token(brackets));
    }
  }

  outcome<void> one_token(std::string& brackets) {
    const char c = source_[at_];
    if (is_digit(c))
      return number();
    if (starts_name(c)) {
      auto size = std::size_t{1};
      while (size < rest().size() && (starts_name(rest()[size]) || is_digit(rest()[size])))
        ++size;
      push(token_kind::name, std::string(rest().substr(0, size)));
      advance(size);
      return {};
    }
    if (c == '\'' || c == '"')
      return string(c);
    if (static_cast<unsigned char>(c) >= 0x80)
      return stop(errc::unsupported, "names with letters outside of ASCII are not supported", line_);
    return symbol(brackets);
  }

  outcome<void> number() {
    const bool after_dot = at_ > 0 && source_[at_ - 1] == '.';
    JINJA_TRY(const auto read, read_number(rest(), after_dot));
    auto& made = push(read.is_float ? token_kind::floating : token_kind::integer, {});
    made.integer = read.integer;
    made.floating = read.floating;
    advance(read.size);
    return {};
  }

  outcome<void> string(char quote) {
    std::size_t size = 1;
    while (size < rest().size() && rest()[size] != quote)
      size += rest()[size] == '\\' ? 2 : 1;
    if (size >= rest().size())
      return syntax("a string has no end");
    auto bytes = unescape(rest().substr(1, size - 1));
    if (!bytes)
      return stop(bytes.error().code, bytes.error().message, line_);
    push(token_kind::string, std::move(*bytes));
    advance(size + 1);
    return {};
  }

  outcome<void> symbol(std::string& brackets) {
    static constexpr auto symbols = std::to_array<std::string_view>({"//", "**", "==", "!=", ">=", "<=", "+",
      "-", "/", "*", "%", "~", "[", "]", "(", ")", "{", "}", ">", "<", "=", ".", ":", "|", ",", ";"});
    const auto found = std::ranges::find_if(symbols, [&](std::string_view s) { return sees(s); });
    if (found == symbols.end())
      return syntax("unexpected character in a tag");
    if (const auto opens = std::string_view("[({").find(*found); opens != npos) {
      brackets.push_back("])}"[opens]);
    } else if (std::string_view("])}").find(*found) != npos) {
      if (brackets.empty() || brackets.back() != found->front())
        return syntax("unexpected '" + std::string(*found) + "'");
      brackets.pop_back();
    }
    push(token_kind::symbol, std::string(*found));
    advance(found->size());
    return {};
  }

  std::string_view source_;
  std::size_t at_ = 0;
  int line_ = 1;
  std::vector<token> tokens_;
};

} // namespace

outcome<std::vector<token>> tokenize(std::string_view source, const limits& most) {
  if (source.size() > most.source)
    return stop(errc::too_large, "the template is longer than " + std::to_string(most.source) + " bytes");
  if (!utf8::valid(source))
    return stop("the template is not UTF-8");
  const auto text = normalize(source);
  return lexer(text).run();
}

} // namespace godwit::jinja
