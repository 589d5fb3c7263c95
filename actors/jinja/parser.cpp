#include "actors/jinja/parser.hpp"

namespace godwit::jinja {

parser::parser(std::vector<token> tokens, const limits& most) : tokens_(std::move(tokens)), most_(most) {
  for (const char* name : {"loop", "caller", "varargs", "kwargs"})
    intern(name);
}

symbol parser::intern(const std::string& name) {
  const auto [place, added] = symbols_.try_emplace(name, static_cast<symbol>(names_.size()));
  if (added) {
    names_.push_back(std::make_unique<const std::string>(name));
    reads_.push_back(0);
  }
  return place->second;
}

bool parser::skip(std::string_view text) {
  const bool found = here().is(text);
  if (found)
    next();
  return found;
}

bool parser::skip_name(std::string_view name) {
  const bool found = here().is_name(name);
  if (found)
    next();
  return found;
}

outcome<void> parser::expect(std::string_view text) {
  if (!skip(text))
    return syntax("expected '" + std::string(text) + "', got " + describe());
  return {};
}

outcome<void> parser::expect_name(std::string_view name) {
  if (!skip_name(name))
    return syntax("expected '" + std::string(name) + "', got " + describe());
  return {};
}

outcome<void> parser::expect(token_kind kind) {
  if (here().kind != kind)
    return syntax(std::string("expected the end of the tag, got ") + describe());
  next();
  return {};
}

outcome<std::string> parser::take_name() {
  if (here().kind != token_kind::name)
    return syntax("expected a name, got " + describe());
  auto name = here().text;
  next();
  return name;
}

std::string parser::describe() const {
  switch (here().kind) {
  case token_kind::data:
    return "text";
  case token_kind::variable_begin:
    return "'{{'";
  case token_kind::variable_end:
    return "'}}'";
  case token_kind::block_begin:
    return "'{%'";
  case token_kind::block_end:
    return "'%}'";
  case token_kind::string:
    return "a string";
  case token_kind::integer:
  case token_kind::floating:
    return "a number";
  case token_kind::name:
  case token_kind::symbol:
    return "'" + here().text + "'";
  case token_kind::end:
    return "the end of the template";
  }
  return "a token";
}

tl::unexpected<fault> parser::syntax(std::string message) const {
  return stop(errc::invalid_argument, std::move(message), here().line);
}

tl::unexpected<fault> parser::unsupported(std::string what) const {
  return stop(errc::unsupported, std::move(what) + " is not supported", here().line);
}

outcome<void> parser::check_depth() const {
  if (depth_ > most_.nesting)
    return stop(errc::too_large,
      "the template is nested more than " + std::to_string(most_.nesting) + " levels deep", here().line);
  return {};
}

outcome<syntax_tree> parser::run() {
  JINJA_TRY(auto body, statements({}));
  return syntax_tree{std::move(body), std::move(names_)};
}

outcome<syntax_tree> parse(std::string_view source, const limits& most) {
  JINJA_TRY(auto tokens, tokenize(source, most));
  return parser(std::move(tokens), most).run();
}

} // namespace godwit::jinja
