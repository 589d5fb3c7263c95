#include "actors/jinja/methods.hpp"

#include "actors/jinja/access.hpp"
#include "actors/jinja/format_number.hpp"
#include "actors/jinja/printing.hpp"
#include "actors/text/utf8.hpp"

namespace godwit::jinja {

namespace {

bool is_digits(std::string_view bytes) {
  return !bytes.empty() && bytes.find_first_not_of("0123456789") == std::string_view::npos;
}

outcome<std::int64_t> to_number(std::string_view digits) {
  if (digits.size() > 6 || std::stoll(std::string(digits)) > most_width)
    return stop(errc::too_large, "a number in a format is more than " + std::to_string(most_width));
  return std::stoll(std::string(digits));
}

/// Reads Python's format specification: [[fill]align][sign][#][0][width][grouping][.precision][type].
outcome<number_format> parse_specification(std::string_view spec) {
  number_format how;
  const auto is_align = [](char c) { return c == '<' || c == '>' || c == '^' || c == '='; };
  const auto first = spec.empty() ? std::size_t{0} : utf8::first(spec).size;
  if (spec.size() > first && is_align(spec[first])) {
    how.fill = spec.substr(0, first);
    how.align = spec[first];
    spec.remove_prefix(first + 1);
  } else if (!spec.empty() && is_align(spec[0])) {
    how.align = spec[0];
    spec.remove_prefix(1);
  }
  const auto take = [&](std::string_view any) {
    const bool found = !spec.empty() && any.find(spec[0]) != std::string_view::npos;
    const char c = found ? spec[0] : 0;
    spec.remove_prefix(found ? 1 : 0);
    return c;
  };
  if (const char sign = take("+- "))
    how.sign = sign;
  how.alternate = take("#") != 0;
  if (take("0") != 0 && how.align == 0) {
    how.fill = "0";
    how.align = '=';
  }
  const auto digits = spec.substr(0, spec.find_first_not_of("0123456789"));
  if (!digits.empty()) {
    JINJA_TRY(how.width, to_number(digits));
    spec.remove_prefix(digits.size());
  }
  how.group = take(",_");
  if (take(".") != 0) {
    const auto precision = spec.substr(0, spec.find_first_not_of("0123456789"));
    if (precision.empty())
      return stop("format specifier missing precision");
    JINJA_TRY(const auto n, to_number(precision));
    how.precision = static_cast<int>(n);
    spec.remove_prefix(precision.size());
  }
  how.type = take("bcdeEfFgGosxX%");
  if (!spec.empty())
    return stop("invalid format specifier");
  return how;
}

/// format(what, spec).
outcome<void> write(text_builder& out, const value& what, std::string_view spec) {
  if (spec.empty()) {
    print(out, what);
    return {};
  }
  JINJA_TRY(auto how, parse_specification(spec));
  const bool float_type =
    std::string_view("eEfFgG%").find(how.type) != std::string_view::npos && how.type != 0;
  if (const auto integer = as_integer(what); integer && !float_type) {
    if (how.type == 's' || how.precision >= 0)
      return stop("a format for strings is used for an integer");
    if (how.type == 'c') {
      if (*integer < 0 || *integer > 0x10FFFF || (*integer >= 0xD800 && *integer < 0xE000))
        return stop("%c argument is not a character");
      std::string one;
      utf8::append(one, static_cast<char32_t>(*integer));
      how.align = how.align ? how.align : '<';
      out.append(format_text(one, how));
      return {};
    }
    out.append(format_integer(*integer, how));
    return {};
  }
  if (const auto number = as_number(what); number && (float_type || how.type == 0)) {
    out.append(format_float(*number, how));
    return {};
  }
  if (const auto* t = as_text(what);
      t && (how.type == 0 || how.type == 's') && how.sign == '-' && how.group == 0) {
    if (how.align == '=' && how.fill == "0")
      how.align = '<'; // since 3.10 a leading zero is a fill for strings
    if (how.align == '=')
      return stop("'=' alignment not allowed in string format specifier");
    out.append(format_text(t->bytes(), how));
    return {};
  }
  return stop("unsupported format for '" + std::string(type_name(what)) + "'");
}

class brace_formatter {
 public:
  brace_formatter(heap& memory, const arguments& given) : memory_(memory), given_(given) {}

  /// @param depth specifications may hold fields, their fields may not
  outcome<void> run(text_builder& out, std::string_view form, int depth) {
    while (!form.empty()) {
      memory_.costs().spend();
      JINJA_CHECK(memory_.costs().check());
      const auto at = form.find_first_of("{}");
      out.append(form.substr(0, at));
      if (at == std::string_view::npos)
        return {};
      const char brace = form[at];
      form.remove_prefix(at + 1);
      if (form.starts_with(brace) && depth == 0) {
        out.append(1, brace);
        form.remove_prefix(1);
        continue;
      }
      if (brace == '}')
        return stop("Single '}' encountered in format string");
      std::size_t open = 1;
      std::size_t end = 0;
      for (; end < form.size() && open > 0; ++end) {
        open += form[end] == '{' ? 1 : 0;
        open -= form[end] == '}' ? 1 : 0;
      }
      if (open > 0)
        return stop("expected '}' before end of string");
      JINJA_CHECK(field(out, form.substr(0, end - 1), depth));
      form.remove_prefix(end);
    }
    return {};
  }

 private:
  outcome<void> field(text_builder& out, std::string_view body, int depth) {
    if (depth > 1)
      return stop("Max string recursion exceeded");
    // The name ends at '!' or ':' outside of brackets.
    std::size_t end = 0;
    bool bracket = false;
    for (; end < body.size() && (bracket || (body[end] != ':' && body[end] != '!')); ++end)
      bracket = body[end] == '[' || (bracket && body[end] != ']');
    const auto name = body.substr(0, end);
    body.remove_prefix(end);
    char conversion = 0;
    if (body.starts_with('!')) {
      if (body.size() < 2 || (body.size() > 2 && body[2] != ':'))
        return stop("expected ':' after conversion specifier");
      conversion = body[1];
      body.remove_prefix(2);
    }
    if (body.starts_with(':'))
      body.remove_prefix(1);
    JINJA_TRY(auto what, resolve(name));
    if (conversion == 's' || conversion == 'r') {
      text_builder shown(memory_.costs());
      conversion == 's' ? print(shown, what) : print_repr(shown, what);
      what = memory_.make_text(shown.finish());
    } else if (conversion != 0) {
      return stop(errc::unsupported, "this conversion in a format is not supported");
    }
    text_builder spec(memory_.costs());
    JINJA_CHECK(run(spec, body, depth + 1));
    return write(out, what, spec.bytes());
  }

  outcome<value> resolve(std::string_view name) {
    const auto first = name.substr(0, name.find_first_of(".["));
    auto rest = name.substr(first.size());
    JINJA_TRY(auto what, argument(first));
    while (!rest.empty()) {
      if (rest[0] == '.') {
        const auto attribute = rest.substr(1, rest.find_first_of(".[", 1) - 1);
        if (attribute.empty())
          return stop("Empty attribute in format string");
        JINJA_TRY(what, get_attribute(memory_, what, attribute, nullptr));
        rest.remove_prefix(1 + attribute.size());
      } else {
        const auto close = rest.find(']');
        if (rest[0] != '[' || close == std::string_view::npos || close == 1)
          return stop("invalid field name in format string");
        const auto key = rest.substr(1, close - 1);
        value index = none{};
        if (is_digits(key)) {
          JINJA_TRY(index, to_number(key));
        } else {
          index = memory_.make_text(std::string(key));
        }
        JINJA_TRY(what, get_item(memory_, what, index, nullptr));
        rest.remove_prefix(close + 1);
      }
    }
    return what;
  }

  outcome<value> argument(std::string_view name) {
    if (name.empty() || is_digits(name)) {
      std::int64_t at = 0;
      if (name.empty()) {
        if (manual_)
          return stop("cannot switch from manual field specification to automatic field numbering");
        automatic_ = true;
        at = next_++;
      } else {
        if (automatic_)
          return stop("cannot switch from automatic field numbering to manual field specification");
        manual_ = true;
        JINJA_TRY(at, to_number(name));
      }
      if (static_cast<std::size_t>(at) >= given_.positional.size())
        return stop("a format has more fields than there are arguments");
      return given_.positional[static_cast<std::size_t>(at)];
    }
    for (const auto& [known, what] : given_.named)
      if (known == name)
        return what;
    return stop("a format names an argument that is not there");
  }

  heap& memory_;
  const arguments& given_;
  std::int64_t next_ = 0;
  bool automatic_ = false;
  bool manual_ = false;
};

} // namespace

outcome<value> format_braces(heap& memory, const text& form, const arguments& given) {
  text_builder out(memory.costs());
  JINJA_CHECK(brace_formatter(memory, given).run(out, form.bytes(), 0));
  return memory.make_text(out.finish(), form.is_safe());
}

} // namespace godwit::jinja
