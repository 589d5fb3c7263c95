#pragma once

#include "actors/jinja/filters.hpp"
#include "actors/jinja/operators.hpp"
#include "actors/jinja/value.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace godwit::jinja {

// The syntax tree of a template. It is immutable once parsed and shared by all renderings.

/// A name of a variable, numbered within one template.
using symbol = std::uint32_t;

struct expression;
using expression_ptr = std::unique_ptr<const expression>;

struct constant {
  value what; ///< never a container
};
struct variable {
  symbol id = 0;
};
struct tuple_literal {
  std::vector<expression_ptr> items;
};
struct list_literal {
  std::vector<expression_ptr> items;
};
struct dict_literal {
  std::vector<std::pair<expression_ptr, expression_ptr>> entries;
};
struct attribute_access {
  expression_ptr object;
  std::string name;
};
struct item_access {
  expression_ptr object;
  expression_ptr key;
  std::string known; ///< the key if it is a constant string
};
struct slice_access {
  expression_ptr object;
  expression_ptr start; ///< this and the next two: nullptr where left out
  expression_ptr stop;
  expression_ptr step;
};
struct call_arguments {
  std::vector<expression_ptr> positional;
  std::vector<std::pair<std::string, expression_ptr>> named;
  expression_ptr more_positional; ///< *args
  expression_ptr more_named;      ///< **kwargs
};
struct call {
  expression_ptr callee;
  call_arguments given;
};
struct filter_use {
  expression_ptr input; ///< nullptr at the start of a filter block: the text of the block
  filter_code code;
  call_arguments given;
};
struct test_use {
  expression_ptr input;
  test_code code;
  call_arguments given;
  bool negated;
};
struct unary {
  enum class sort : std::uint8_t { negate, plus, logical_not } what;
  expression_ptr operand;
};
/// Operators of one precedence from left to right: a + b - c.
struct arithmetic {
  expression_ptr first;
  std::vector<std::pair<operation, expression_ptr>> rest;
};
/// a ~ b ~ c
struct concatenation {
  std::vector<expression_ptr> parts;
};
/// a < b <= c
struct comparison_chain {
  expression_ptr first;
  std::vector<std::pair<comparison, expression_ptr>> rest;
};
/// a and b and c, or the same with or.
struct logical {
  bool is_and;
  std::vector<expression_ptr> operands;
};
/// a if c else b
struct conditional {
  expression_ptr condition;
  expression_ptr yes;
  expression_ptr no; ///< nullptr: undefined
};

struct expression {
  using kinds = std::variant<constant, variable, tuple_literal, list_literal, dict_literal, attribute_access,
    item_access, slice_access, call, filter_use, test_use, unary, arithmetic, concatenation, comparison_chain,
    logical, conditional>;

  int line;
  kinds kind;
};

/// Where values are assigned: one name, or names in a tuple.
struct target {
  symbol id = 0;
  std::vector<target> parts;
  bool is_tuple = false;
};

struct statement;
using block = std::vector<statement>;

struct data {
  std::string bytes;
};
struct output {
  expression_ptr what;
};
struct for_loop {
  target each;
  expression_ptr items;
  expression_ptr condition; ///< nullptr if none
  block body;
  block otherwise;
  bool uses_loop; ///< the body reads `loop`
};
struct if_chain {
  std::vector<std::pair<expression_ptr, block>> branches;
  block otherwise;
};
struct assignment {
  target to;
  expression_ptr what;
};
struct attribute_assignment {
  symbol object;
  std::string attribute;
  expression_ptr what;
};
/// {% set x %}…{% endset %}, perhaps through filters.
struct block_assignment {
  target to;                                               ///< of a name
  std::optional<std::pair<symbol, std::string>> attribute; ///< or of an attribute
  expression_ptr filter;                                   ///< nullptr if none
  block body;
};
struct macro_definition {
  std::string name;
  symbol id = 0;
  std::vector<std::pair<symbol, std::string>> parameters;
  std::vector<expression_ptr> defaults; ///< of the last parameters
  block body;
  bool uses_caller = false;
  bool uses_varargs = false;
  bool uses_kwargs = false;
};
struct macro_statement {
  std::unique_ptr<macro_definition> macro;
};
/// {% call(x) f() %}…{% endcall %}
struct call_block {
  std::unique_ptr<macro_definition> body;
  expression_ptr what; ///< a call
};
struct filter_block {
  expression_ptr filter;
  block body;
};
struct with_block {
  std::vector<std::pair<target, expression_ptr>> values;
  block body;
};
/// {% generation %}: marks what an assistant said; rendered as if it were not there, in a scope of its own.
struct generation_block {
  block body;
};
struct break_statement {};
struct continue_statement {};

struct statement {
  using kinds = std::variant<data, output, for_loop, if_chain, assignment, attribute_assignment,
    block_assignment, macro_statement, call_block, filter_block, with_block, generation_block,
    break_statement, continue_statement>;

  int line;
  kinds kind;
};

/// The names that mean something to the interpreter, numbered first in every template.
namespace known {
inline constexpr symbol loop = 0;
inline constexpr symbol caller = 1;
inline constexpr symbol varargs = 2;
inline constexpr symbol kwargs = 3;
} // namespace known

/// What a call or a macro may have; finding a parameter takes time in proportion.
inline constexpr std::size_t most_named_arguments = 256;

struct syntax_tree {
  block body;
  std::vector<std::unique_ptr<const std::string>> names; ///< by symbol
};

/// Parses a template.
/// @returns `unsupported` for what Jinja2 has and this interpreter does not, `invalid_argument` for what is
/// no template, `too_large` beyond the limits
outcome<syntax_tree> parse(std::string_view source, const limits& most);

} // namespace godwit::jinja
