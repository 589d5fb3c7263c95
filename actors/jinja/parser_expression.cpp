#include "actors/jinja/parser.hpp"

#include <algorithm>

namespace godwit::jinja {

template <class Kind>
parser::made parser::make(int line, Kind kind, int height) {
  if (height > most_.nesting)
    return stop(errc::too_large,
      "an expression is nested more than " + std::to_string(most_.nesting) + " levels deep", line);
  return built{std::make_unique<expression>(expression{line, std::move(kind)}), height};
}

parser::made parser::expression_at(bool with_condition) {
  return with_condition ? condition_expression() : or_expression();
}

parser::made parser::condition_expression() {
  const level nested(depth_);
  JINJA_CHECK(check_depth());
  JINJA_TRY(auto node, or_expression());
  while (here().is_name("if")) {
    const int line = here().line;
    next();
    JINJA_TRY(auto condition, or_expression());
    built no{nullptr, 0};
    if (skip_name("else")) {
      JINJA_TRY(no, condition_expression());
    }
    const int height = 1 + std::max({node.height, condition.height, no.height});
    JINJA_TRY(node,
      make(line, conditional{std::move(condition.node), std::move(node.node), std::move(no.node)}, height));
  }
  return node;
}

parser::made parser::or_expression() {
  return logical_expression("or", &parser::and_expression);
}

parser::made parser::and_expression() {
  return logical_expression("and", &parser::not_expression);
}

/// Operands that `word` ("and" or "or") joins, or the only one as it is.
parser::made parser::logical_expression(std::string_view word, made (parser::*operand)()) {
  const int line = here().line;
  JINJA_TRY(auto first, (this->*operand)());
  if (!here().is_name(word))
    return first;
  int height = first.height;
  logical out{.is_and = word == "and", .operands = {}};
  out.operands.push_back(std::move(first.node));
  while (skip_name(word)) {
    JINJA_TRY(auto another, (this->*operand)());
    height = std::max(height, another.height);
    out.operands.push_back(std::move(another.node));
  }
  return make(line, std::move(out), height + 1);
}

parser::made parser::not_expression() {
  const int line = here().line;
  if (!skip_name("not"))
    return compare_expression();
  const level nested(depth_);
  JINJA_CHECK(check_depth());
  JINJA_TRY(auto operand, not_expression());
  return make(line, unary{unary::sort::logical_not, std::move(operand.node)}, operand.height + 1);
}

parser::made parser::compare_expression() {
  const int line = here().line;
  JINJA_TRY(auto first, sum_expression());
  comparison_chain out;
  int height = first.height;
  const auto operator_here = [&]() -> std::optional<comparison> {
    static constexpr std::pair<std::string_view, comparison> symbols[] = {{"==", comparison::equal},
      {"!=", comparison::not_equal}, {"<", comparison::less}, {"<=", comparison::less_equal},
      {">", comparison::greater}, {">=", comparison::greater_equal}};
    for (const auto& [text, meaning] : symbols)
      if (skip(text))
        return meaning;
    if (skip_name("in"))
      return comparison::in;
    if (here().is_name("not") && ahead().is_name("in")) {
      next();
      next();
      return comparison::not_in;
    }
    return std::nullopt;
  };
  while (const auto how = operator_here()) {
    JINJA_TRY(auto operand, sum_expression());
    height = std::max(height, operand.height);
    out.rest.emplace_back(*how, std::move(operand.node));
  }
  if (out.rest.empty())
    return first;
  out.first = std::move(first.node);
  return make(line, std::move(out), height + 1);
}

parser::made parser::sum_expression() {
  const int line = here().line;
  JINJA_TRY(auto first, concat_expression());
  arithmetic out;
  int height = first.height;
  while (here().is("+") || here().is("-")) {
    const auto what = here().is("+") ? operation::add : operation::subtract;
    next();
    JINJA_TRY(auto operand, concat_expression());
    height = std::max(height, operand.height);
    out.rest.emplace_back(what, std::move(operand.node));
  }
  if (out.rest.empty())
    return first;
  out.first = std::move(first.node);
  return make(line, std::move(out), height + 1);
}

parser::made parser::concat_expression() {
  const int line = here().line;
  JINJA_TRY(auto first, product_expression());
  if (!here().is("~"))
    return first;
  int height = first.height;
  concatenation out;
  out.parts.push_back(std::move(first.node));
  while (skip("~")) {
    JINJA_TRY(auto part, product_expression());
    height = std::max(height, part.height);
    out.parts.push_back(std::move(part.node));
  }
  return make(line, std::move(out), height + 1);
}

parser::made parser::product_expression() {
  const int line = here().line;
  JINJA_TRY(auto first, power_expression());
  arithmetic out;
  int height = first.height;
  while (here().is("*") || here().is("/") || here().is("//") || here().is("%")) {
    const auto what = here().is("*")    ? operation::multiply
                      : here().is("/")  ? operation::divide
                      : here().is("//") ? operation::floor_divide
                                        : operation::modulo;
    next();
    JINJA_TRY(auto operand, power_expression());
    height = std::max(height, operand.height);
    out.rest.emplace_back(what, std::move(operand.node));
  }
  if (out.rest.empty())
    return first;
  out.first = std::move(first.node);
  return make(line, std::move(out), height + 1);
}

parser::made parser::power_expression() {
  const int line = here().line;
  JINJA_TRY(auto first, unary_expression());
  // From left to right, as Jinja2 parses it. The base of a power is the unary expression: -2**2 is 4.
  arithmetic out;
  int height = first.height;
  while (skip("**")) {
    JINJA_TRY(auto operand, unary_expression());
    height = std::max(height, operand.height);
    out.rest.emplace_back(operation::power, std::move(operand.node));
  }
  if (out.rest.empty())
    return first;
  out.first = std::move(first.node);
  return make(line, std::move(out), height + 1);
}

parser::made parser::unary_expression(bool with_filter) {
  const level nested(depth_);
  JINJA_CHECK(check_depth());
  const int line = here().line;
  built node;
  if (here().is("-") || here().is("+")) {
    const auto what = here().is("-") ? unary::sort::negate : unary::sort::plus;
    next();
    JINJA_TRY(auto operand, unary_expression(false));
    JINJA_TRY(node, make(line, unary{what, std::move(operand.node)}, operand.height + 1));
  } else {
    JINJA_TRY(node, primary());
  }
  JINJA_TRY(node, postfix(std::move(node)));
  if (!with_filter)
    return node;
  return filters(std::move(node));
}

parser::made parser::primary() {
  const token current = here();
  switch (current.kind) {
  case token_kind::name: {
    next();
    const auto& name = current.text;
    if (name == "true" || name == "True")
      return make(current.line, constant{true}, 1);
    if (name == "false" || name == "False")
      return make(current.line, constant{false}, 1);
    if (name == "none" || name == "None")
      return make(current.line, constant{none{}}, 1);
    const auto id = intern(name);
    ++reads_[id];
    return make(current.line, variable{id}, 1);
  }
  case token_kind::string: {
    std::string bytes;
    for (; here().kind == token_kind::string; next())
      bytes += here().text;
    return make(current.line, constant{std::make_shared<const text>(std::move(bytes), false, nullptr)}, 1);
  }
  case token_kind::integer:
    next();
    return make(current.line, constant{current.integer}, 1);
  case token_kind::floating:
    next();
    return make(current.line, constant{current.floating}, 1);
  default:
    break;
  }
  if (skip("(")) {
    JINJA_TRY(auto inside, tuple_expression(true, true));
    JINJA_CHECK(expect(")"));
    return inside;
  }
  if (here().is("["))
    return list_expression();
  if (here().is("{"))
    return dict_expression();
  return syntax("unexpected " + describe());
}

parser::made parser::tuple_expression(bool with_condition, bool parenthesized, std::string_view end_name) {
  const int line = here().line;
  tuple_literal out;
  built single;
  int height = 0;
  bool is_tuple = false;
  while (true) {
    const bool ends = here().kind == token_kind::variable_end || here().kind == token_kind::block_end
                      || here().is(")") || (!end_name.empty() && here().is_name(end_name));
    if (ends)
      break;
    JINJA_TRY(auto item, expression_at(with_condition));
    height = std::max(height, item.height);
    if (single.node)
      out.items.push_back(std::move(single.node));
    single = std::move(item);
    if (!skip(","))
      break;
    is_tuple = true;
  }
  if (!is_tuple && single.node)
    return single;
  if (!is_tuple && !parenthesized)
    return syntax("expected an expression, got " + describe());
  if (single.node)
    out.items.push_back(std::move(single.node));
  return make(line, std::move(out), height + 1);
}

parser::made parser::list_expression() {
  const int line = here().line;
  JINJA_CHECK(expect("["));
  list_literal out;
  int height = 0;
  while (!here().is("]")) {
    if (!out.items.empty()) {
      JINJA_CHECK(expect(","));
      if (here().is("]"))
        break;
    }
    JINJA_TRY(auto item, expression_at());
    height = std::max(height, item.height);
    out.items.push_back(std::move(item.node));
  }
  JINJA_CHECK(expect("]"));
  return make(line, std::move(out), height + 1);
}

parser::made parser::dict_expression() {
  const int line = here().line;
  JINJA_CHECK(expect("{"));
  dict_literal out;
  int height = 0;
  while (!here().is("}")) {
    if (!out.entries.empty()) {
      JINJA_CHECK(expect(","));
      if (here().is("}"))
        break;
    }
    JINJA_TRY(auto key, expression_at());
    JINJA_CHECK(expect(":"));
    JINJA_TRY(auto what, expression_at());
    height = std::max({height, key.height, what.height});
    out.entries.emplace_back(std::move(key.node), std::move(what.node));
  }
  JINJA_CHECK(expect("}"));
  return make(line, std::move(out), height + 1);
}

parser::made parser::postfix(built node) {
  while (true) {
    if (here().is(".") || here().is("[")) {
      JINJA_TRY(node, subscript(std::move(node)));
    } else if (here().is("(")) {
      JINJA_TRY(node, call_expression(std::move(node)));
    } else {
      return node;
    }
  }
}

parser::made parser::filters(built node) {
  while (true) {
    if (skip("|")) {
      JINJA_TRY(node, filter_expression(std::move(node)));
    } else if (here().is_name("is")) {
      JINJA_TRY(node, test_expression(std::move(node)));
    } else if (here().is("(")) {
      JINJA_TRY(node, call_expression(std::move(node)));
    } else {
      return node;
    }
  }
}

parser::made parser::subscript(built object) {
  const int line = here().line;
  if (here().is("["))
    return bracket_item(std::move(object));
  JINJA_CHECK(expect("."));
  const int height = object.height + 1;
  const token what = here();
  if (what.kind == token_kind::integer) {
    next();
    JINJA_TRY(auto key, make(line, constant{what.integer}, 1));
    return make(line, item_access{std::move(object.node), std::move(key.node), {}}, height);
  }
  JINJA_TRY(auto name, take_name());
  return make(line, attribute_access{std::move(object.node), std::move(name)}, height);
}

parser::made parser::bracket_item(built object) {
  const int line = here().line;
  JINJA_CHECK(expect("["));
  int height = object.height;
  const auto bound = [&]() -> outcome<expression_ptr> {
    if (here().is(":") || here().is("]") || here().is(","))
      return expression_ptr{};
    JINJA_TRY(auto node, expression_at());
    height = std::max(height, node.height);
    return std::move(node.node);
  };
  if (here().is("]"))
    return unsupported("an empty subscript");
  JINJA_TRY(auto first, bound());
  if (here().is(","))
    return unsupported("a subscript with a comma");
  if (!skip(":")) {
    JINJA_CHECK(expect("]"));
    item_access out{std::move(object.node), std::move(first), {}};
    if (const auto* c = std::get_if<constant>(&out.key->kind); c && as_text(c->what))
      out.known = as_text(c->what)->bytes();
    return make(line, std::move(out), height + 1);
  }
  slice_access out{std::move(object.node), std::move(first), nullptr, nullptr};
  JINJA_TRY(out.stop, bound());
  if (skip(":")) {
    JINJA_TRY(out.step, bound());
  }
  JINJA_CHECK(expect("]"));
  return make(line, std::move(out), height + 1);
}

outcome<call_arguments> parser::arguments_of_call(int& height) {
  call_arguments out;
  const auto read = [&]() -> outcome<expression_ptr> {
    JINJA_TRY(auto node, expression_at());
    height = std::max(height, node.height);
    return std::move(node.node);
  };
  JINJA_CHECK(expect("("));
  bool comma = false;
  while (!here().is(")")) {
    if (std::exchange(comma, true)) {
      JINJA_CHECK(expect(","));
      if (here().is(")"))
        break;
    }
    bool in_order = true;
    if (skip("*")) {
      in_order = !out.more_positional && !out.more_named;
      JINJA_TRY(out.more_positional, read());
    } else if (skip("**")) {
      in_order = !out.more_named;
      JINJA_TRY(out.more_named, read());
    } else if (here().kind == token_kind::name && ahead().is("=")) {
      in_order = !out.more_named;
      auto name = here().text;
      next();
      next();
      JINJA_TRY(auto what, read());
      in_order =
        in_order && std::ranges::find(out.named, name, [](auto& n) { return n.first; }) == out.named.end();
      out.named.emplace_back(std::move(name), std::move(what));
    } else {
      in_order = !out.more_positional && !out.more_named && out.named.empty();
      JINJA_TRY(auto what, read());
      out.positional.push_back(std::move(what));
    }
    if (!in_order)
      return syntax("invalid syntax for function call expression");
    if (out.named.size() > most_named_arguments)
      return stop(errc::too_large,
        "a call has more than " + std::to_string(most_named_arguments) + " keyword arguments", here().line);
  }
  JINJA_CHECK(expect(")"));
  return out;
}

parser::made parser::call_expression(built callee) {
  const int line = here().line;
  if (const auto* name = std::get_if<variable>(&callee.node->kind))
    for (const std::string_view global : {"cycler", "joiner", "lipsum"})
      if (*names_[name->id] == global)
        return unsupported("the function '" + std::string(global) + "'");
  int height = callee.height;
  JINJA_TRY(auto given, arguments_of_call(height));
  return make(line, call{std::move(callee.node), std::move(given)}, height + 1);
}

outcome<std::string> parser::dotted_name() {
  JINJA_TRY(auto name, take_name());
  while (skip(".")) {
    JINJA_TRY(const auto more, take_name());
    name += "." + more;
  }
  return name;
}

parser::made parser::filter_expression(built input) {
  const int line = here().line;
  JINJA_TRY(const auto name, dotted_name());
  const auto code = find_filter(name);
  if (!code)
    return stop(errc::unsupported, "the filter '" + name + "' is not known", line);
  int height = input.height;
  filter_use out{std::move(input.node), code, {}};
  if (here().is("(")) {
    JINJA_TRY(out.given, arguments_of_call(height));
  }
  return make(line, std::move(out), height + 1);
}

parser::made parser::test_expression(built input) {
  const int line = here().line;
  JINJA_CHECK(expect_name("is"));
  const bool negated = skip_name("not");
  JINJA_TRY(const auto name, dotted_name());
  const auto code = find_test(name);
  if (!code)
    return stop(errc::unsupported, "the test '" + name + "' is not known", line);
  int height = input.height;
  test_use out{std::move(input.node), code, {}, negated};
  const auto kind = here().kind;
  const bool has_argument = kind == token_kind::name || kind == token_kind::string
                            || kind == token_kind::integer || kind == token_kind::floating || here().is("[")
                            || here().is("{");
  if (here().is("(")) {
    JINJA_TRY(out.given, arguments_of_call(height));
  } else if (has_argument && !here().is_name("else") && !here().is_name("or") && !here().is_name("and")) {
    if (here().is_name("is"))
      return syntax("You cannot chain multiple tests with is");
    JINJA_TRY(auto argument, primary());
    JINJA_TRY(argument, postfix(std::move(argument)));
    height = std::max(height, argument.height);
    out.given.positional.push_back(std::move(argument.node));
  }
  return make(line, std::move(out), height + 1);
}

} // namespace godwit::jinja
