#pragma once

#include "actors/jinja/lexer.hpp"
#include "actors/jinja/syntax.hpp"

#include <unordered_map>

namespace godwit::jinja {

/// Reads the tokens of one template by recursive descent; the grammar and its precedences are those of
/// Jinja2's parser.py. Expressions are in parser_expression.cpp, tags in parser_statement.cpp.
class parser {
 public:
  parser(std::vector<token> tokens, const limits& most);

  outcome<syntax_tree> run();

 private:
  /// An expression on the way, with how deep it is.
  struct built {
    std::unique_ptr<expression> node;
    int height = 1;
  };
  using made = outcome<built>;

  // Tokens
  const token& here() const { return tokens_[at_]; }
  const token& ahead() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  void next() { at_ += at_ + 1 < tokens_.size() ? 1 : 0; }
  bool skip(std::string_view text);
  bool skip_name(std::string_view name);
  outcome<void> expect(std::string_view text);
  outcome<void> expect_name(std::string_view name);
  outcome<void> expect(token_kind kind);
  outcome<std::string> take_name();
  tl::unexpected<fault> syntax(std::string message) const;
  tl::unexpected<fault> unsupported(std::string what) const;
  std::string describe() const;

  // Building
  template <class Kind>
  made make(int line, Kind kind, int height);
  symbol intern(const std::string& name);

  // Expressions, from the loosest binding to the tightest
  made expression_at(bool with_condition = true);
  made condition_expression();
  made or_expression();
  made and_expression();
  made logical_expression(std::string_view word, made (parser::*operand)());
  made not_expression();
  made compare_expression();
  made sum_expression();
  made concat_expression();
  made product_expression();
  made power_expression();
  made unary_expression(bool with_filter = true);
  made primary();
  made postfix(built node);
  made filters(built node);
  made subscript(built node);
  made bracket_item(built object);
  made call_expression(built callee);
  made filter_expression(built input);
  made test_expression(built input);
  made list_expression();
  made dict_expression();
  /// Expressions with commas between them; a single one without a comma is no tuple.
  made tuple_expression(bool with_condition, bool parenthesized, std::string_view end_name = {});
  outcome<call_arguments> arguments_of_call(int& height);
  outcome<std::string> dotted_name();

  // Tags
  outcome<block> statements(std::initializer_list<std::string_view> ends);
  /// statements() behind the end of a tag, and the name that ended them.
  outcome<block> body(std::initializer_list<std::string_view> ends, std::string* ended_by = nullptr);
  outcome<statement> tag();
  outcome<statement> for_tag();
  outcome<statement> if_tag();
  outcome<statement> set_tag();
  outcome<statement> macro_tag();
  outcome<statement> call_tag();
  outcome<statement> filter_tag();
  outcome<statement> with_tag();
  outcome<target> assign_target(std::string_view end_name = {});
  outcome<target> assign_one();
  outcome<void> signature(macro_definition& macro);
  outcome<void> macro_body(macro_definition& macro, std::string_view end);

  /// Counts nesting while it lives.
  struct level {
    explicit level(int& depth) : depth_(depth) { ++depth_; }
    ~level() { --depth_; }
    level(const level&) = delete;
    level& operator=(const level&) = delete;
    int& depth_;
  };
  outcome<void> check_depth() const;

  std::vector<token> tokens_;
  std::size_t at_ = 0;
  limits most_;
  int depth_ = 0;
  int loops_ = 0; ///< around the place, within the same macro
  std::unordered_map<std::string, symbol> symbols_;
  std::vector<std::unique_ptr<const std::string>> names_;
  std::vector<std::size_t> reads_; ///< by symbol: how often it was read so far
};

} // namespace godwit::jinja
