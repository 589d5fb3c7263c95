#include "actors/jinja/parser.hpp"

#include <algorithm>

namespace godwit::jinja {

outcome<block> parser::statements(std::initializer_list<std::string_view> ends) {
  block out;
  while (here().kind != token_kind::end) {
    const int line = here().line;
    if (here().kind == token_kind::data) {
      out.push_back({line, data{here().text}});
      next();
    } else if (here().kind == token_kind::variable_begin) {
      next();
      JINJA_TRY(auto what, tuple_expression(true, false));
      if (here().kind != token_kind::variable_end)
        return syntax("expected '}}', got " + describe());
      next();
      out.push_back({line, output{std::move(what.node)}});
    } else {
      next(); // a block begins
      const bool is_end =
        std::ranges::any_of(ends, [&](std::string_view name) { return here().is_name(name); });
      if (is_end)
        return out;
      JINJA_TRY(auto one, tag());
      out.push_back(std::move(one));
      JINJA_CHECK(expect(token_kind::block_end));
    }
  }
  if (ends.size() > 0)
    return syntax("the template ends before '" + std::string(*(ends.end() - 1)) + "'");
  return out;
}

outcome<block> parser::body(std::initializer_list<std::string_view> ends, std::string* ended_by) {
  skip(":");
  JINJA_CHECK(expect(token_kind::block_end));
  JINJA_TRY(auto out, statements(ends));
  if (ended_by)
    *ended_by = here().text;
  next();
  return out;
}

outcome<statement> parser::tag() {
  const level nested(depth_);
  JINJA_CHECK(check_depth());
  const int line = here().line;
  if (here().kind != token_kind::name)
    return syntax("tag name expected, got " + describe());
  const auto name = here().text;
  for (const std::string_view other :
    {"autoescape", "block", "do", "extends", "from", "import", "include", "print", "trans", "debug"})
    if (name == other)
      return unsupported("the tag '" + name + "'");
  next();
  if (name == "for")
    return for_tag();
  if (name == "if")
    return if_tag();
  if (name == "set")
    return set_tag();
  if (name == "macro")
    return macro_tag();
  if (name == "call")
    return call_tag();
  if (name == "filter")
    return filter_tag();
  if (name == "with")
    return with_tag();
  if (name == "generation") {
    const int outer = std::exchange(loops_, 0);
    JINJA_TRY(auto inside, body({"endgeneration"}));
    loops_ = outer;
    return statement{line, generation_block{std::move(inside)}};
  }
  if (name == "break" || name == "continue") {
    if (loops_ == 0)
      return stop(errc::invalid_argument, "'" + name + "' stands outside of a loop", line);
    if (name == "break")
      return statement{line, break_statement{}};
    return statement{line, continue_statement{}};
  }
  return stop(errc::invalid_argument, "unknown tag '" + name + "'", line);
}

outcome<target> parser::assign_one() {
  if (skip("(")) {
    const level nested(depth_);
    JINJA_CHECK(check_depth());
    JINJA_TRY(auto inside, assign_target());
    JINJA_CHECK(expect(")"));
    return inside;
  }
  const int line = here().line;
  JINJA_TRY(const auto name, take_name());
  for (const std::string_view constant : {"true", "false", "none", "True", "False", "None"})
    if (name == constant)
      return stop(errc::invalid_argument, "can't assign to '" + name + "'", line);
  return target{.id = intern(name), .parts = {}, .is_tuple = false};
}

outcome<target> parser::assign_target(std::string_view end_name) {
  target out{.id = 0, .parts = {}, .is_tuple = false};
  while (true) {
    const bool ends = here().kind == token_kind::block_end || here().is(")") || here().is("=")
                      || (!end_name.empty() && here().is_name(end_name));
    if (ends)
      break;
    JINJA_TRY(auto one, assign_one());
    out.parts.push_back(std::move(one));
    if (!skip(","))
      break;
    out.is_tuple = true;
  }
  if (out.parts.empty())
    return syntax("expected a name to assign to, got " + describe());
  if (!out.is_tuple) {
    auto single = std::move(out.parts.front());
    return single;
  }
  return out;
}

outcome<statement> parser::for_tag() {
  const int line = here().line;
  JINJA_TRY(auto each, assign_target("in"));
  const auto assigns_loop = [](const auto& self, const target& t) -> bool {
    return t.is_tuple ? std::ranges::any_of(t.parts, [&](const target& part) { return self(self, part); })
                      : t.id == known::loop;
  };
  if (assigns_loop(assigns_loop, each))
    return stop(errc::invalid_argument, "can't assign to the special variable 'loop'", line);
  JINJA_CHECK(expect_name("in"));
  JINJA_TRY(auto items, tuple_expression(false, false, "recursive"));
  for_loop out{.each = std::move(each),
    .items = std::move(items.node),
    .condition = nullptr,
    .body = {},
    .otherwise = {},
    .uses_loop = false};
  if (skip_name("if")) {
    JINJA_TRY(auto condition, expression_at());
    out.condition = std::move(condition.node);
  }
  if (here().is_name("recursive"))
    return unsupported("a recursive loop");
  const auto reads = reads_[known::loop];
  ++loops_;
  std::string ended_by;
  JINJA_TRY(out.body, body({"endfor", "else"}, &ended_by));
  --loops_;
  out.uses_loop = reads_[known::loop] != reads;
  if (ended_by == "else") {
    JINJA_TRY(out.otherwise, body({"endfor"}));
  }
  return statement{line, std::move(out)};
}

outcome<statement> parser::if_tag() {
  const int line = here().line;
  if_chain out;
  std::string ended_by = "elif";
  while (ended_by == "elif") {
    JINJA_TRY(auto condition, tuple_expression(false, false));
    JINJA_TRY(auto inside, body({"elif", "else", "endif"}, &ended_by));
    out.branches.emplace_back(std::move(condition.node), std::move(inside));
  }
  if (ended_by == "else") {
    JINJA_TRY(out.otherwise, body({"endif"}));
  }
  return statement{line, std::move(out)};
}

outcome<statement> parser::set_tag() {
  const int line = here().line;
  std::optional<std::pair<symbol, std::string>> attribute;
  target to;
  if (here().kind == token_kind::name && ahead().is(".")) {
    const auto object = intern(here().text);
    next();
    next();
    JINJA_TRY(auto name, take_name());
    attribute = std::pair(object, std::move(name));
  } else {
    JINJA_TRY(to, assign_target());
  }
  if (skip("=")) {
    JINJA_TRY(auto what, tuple_expression(true, false));
    if (attribute)
      return statement{line, attribute_assignment{attribute->first, attribute->second, std::move(what.node)}};
    return statement{line, assignment{std::move(to), std::move(what.node)}};
  }
  if (to.is_tuple)
    return syntax("a block can be assigned to one name only");
  block_assignment out{std::move(to), std::move(attribute), nullptr, {}};
  built filter;
  while (skip("|")) {
    JINJA_TRY(filter, filter_expression(std::move(filter)));
  }
  out.filter = std::move(filter.node);
  JINJA_TRY(out.body, body({"endset"}));
  return statement{line, std::move(out)};
}

outcome<void> parser::signature(macro_definition& macro) {
  JINJA_CHECK(expect("("));
  while (!here().is(")")) {
    if (!macro.parameters.empty()) {
      JINJA_CHECK(expect(","));
    }
    JINJA_TRY(auto name, take_name());
    const auto id = intern(name);
    for (const auto& other : macro.parameters)
      if (other.first == id)
        return syntax("a macro has two parameters of the same name");
    macro.parameters.emplace_back(id, std::move(name));
    if (macro.parameters.size() > most_named_arguments)
      return stop(errc::too_large,
        "a macro has more than " + std::to_string(most_named_arguments) + " parameters", here().line);
    if (skip("=")) {
      JINJA_TRY(auto otherwise, expression_at());
      macro.defaults.push_back(std::move(otherwise.node));
    } else if (!macro.defaults.empty()) {
      return syntax("non-default argument follows default argument");
    }
  }
  return expect(")");
}

outcome<void> parser::macro_body(macro_definition& macro, std::string_view end) {
  const auto caller = reads_[known::caller];
  const auto varargs = reads_[known::varargs];
  const auto kwargs = reads_[known::kwargs];
  const int outer = std::exchange(loops_, 0);
  JINJA_TRY(macro.body, body({end}));
  loops_ = outer;
  const auto is_parameter = [&](symbol id) {
    return std::ranges::any_of(macro.parameters, [&](const auto& p) { return p.first == id; });
  };
  macro.uses_caller = reads_[known::caller] != caller && !is_parameter(known::caller);
  macro.uses_varargs = reads_[known::varargs] != varargs && !is_parameter(known::varargs);
  macro.uses_kwargs = reads_[known::kwargs] != kwargs && !is_parameter(known::kwargs);
  return {};
}

outcome<statement> parser::macro_tag() {
  const int line = here().line;
  auto macro = std::make_unique<macro_definition>();
  JINJA_TRY(macro->name, take_name());
  macro->id = intern(macro->name);
  JINJA_CHECK(signature(*macro));
  JINJA_CHECK(macro_body(*macro, "endmacro"));
  return statement{line, macro_statement{std::move(macro)}};
}

outcome<statement> parser::call_tag() {
  const int line = here().line;
  auto inside = std::make_unique<macro_definition>();
  inside->name = "caller";
  if (here().is("(")) {
    JINJA_CHECK(signature(*inside));
  }
  JINJA_TRY(auto what, expression_at());
  if (!std::holds_alternative<call>(what.node->kind))
    return syntax("expected call");
  JINJA_CHECK(macro_body(*inside, "endcall"));
  return statement{line, call_block{std::move(inside), std::move(what.node)}};
}

outcome<statement> parser::filter_tag() {
  const int line = here().line;
  JINJA_TRY(auto filter, filter_expression({}));
  while (skip("|")) {
    JINJA_TRY(filter, filter_expression(std::move(filter)));
  }
  JINJA_TRY(auto inside, body({"endfilter"}));
  return statement{line, filter_block{std::move(filter.node), std::move(inside)}};
}

outcome<statement> parser::with_tag() {
  const int line = here().line;
  with_block out;
  while (here().kind != token_kind::block_end && !here().is(":")) {
    if (!out.values.empty()) {
      JINJA_CHECK(expect(","));
    }
    JINJA_TRY(auto to, assign_target());
    JINJA_CHECK(expect("="));
    JINJA_TRY(auto what, expression_at());
    out.values.emplace_back(std::move(to), std::move(what.node));
  }
  JINJA_TRY(out.body, body({"endwith"}));
  return statement{line, std::move(out)};
}

} // namespace godwit::jinja
