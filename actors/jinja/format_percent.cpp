#include "actors/jinja/operators.hpp"

#include "actors/jinja/format_number.hpp"
#include "actors/jinja/printing.hpp"
#include "actors/text/utf8.hpp"

#include <cmath>

namespace godwit::jinja {

namespace {

/// Walks through a format of `%` and the values for it.
class percent_formatter {
 public:
  percent_formatter(heap& memory, std::string_view form, const value& right)
    : memory_(memory), out_(memory.costs()), rest_(form), right_(right) {
    const auto* l = as_list(right);
    if (l && l->kind == list::sort::tuple)
      values_ = l->items;
    else
      values_ = {right};
    // One value that is not a tuple may be left over if it can be indexed, as a mapping for %(name) can.
    single_ = !(l && l->kind == list::sort::tuple);
  }

  outcome<std::string> run() {
    while (true) {
      const auto at = rest_.find('%');
      out_.append(rest_.substr(0, at));
      if (at == std::string_view::npos)
        break;
      rest_.remove_prefix(at + 1);
      JINJA_CHECK(field());
      memory_.costs().spend();
      JINJA_CHECK(memory_.costs().check());
    }
    const auto* sequence = as_list(right_);
    const bool indexed =
      sequence && (sequence->kind == list::sort::list || sequence->kind == list::sort::range);
    const bool may_stay = single_ && (as_mapping(right_) || indexed || is_undefined(right_));
    if (used_ < values_.size() && !may_stay && !by_name_)
      return stop("not all arguments converted during string formatting");
    return out_.finish();
  }

 private:
  outcome<void> field() {
    if (rest_.starts_with('%')) {
      out_.append("%");
      rest_.remove_prefix(1);
      return {};
    }
    number_format how;
    std::optional<value> named;
    if (rest_.starts_with('(')) {
      JINJA_TRY(named, read_name());
    }
    bool left = false;
    bool zero = false;
    for (; !rest_.empty(); rest_.remove_prefix(1)) {
      if (rest_[0] == '-')
        left = true;
      else if (rest_[0] == '0')
        zero = true;
      else if (rest_[0] == '+')
        how.sign = '+';
      else if (rest_[0] == ' ')
        how.sign = how.sign == '+' ? '+' : ' ';
      else if (rest_[0] == '#')
        how.alternate = true;
      else
        break;
    }
    JINJA_TRY(how.width, read_number());
    if (how.width < 0) {
      left = true;
      how.width = -how.width;
    }
    if (rest_.starts_with('.')) {
      rest_.remove_prefix(1);
      JINJA_TRY(const auto precision, read_number());
      how.precision = static_cast<int>(std::max<std::int64_t>(precision, 0));
    }
    while (!rest_.empty() && (rest_[0] == 'h' || rest_[0] == 'l' || rest_[0] == 'L'))
      rest_.remove_prefix(1);
    if (rest_.empty())
      return stop("incomplete format");
    how.type = rest_[0];
    rest_.remove_prefix(1);
    value what = none{};
    if (named) {
      what = *named;
    } else {
      JINJA_TRY(what, next());
    }
    how.align = left ? '<' : zero ? '=' : '>';
    how.fill = zero && !left ? "0" : " ";
    return write(how, what);
  }

  outcome<value> read_name() {
    const auto* mapping = as_mapping(right_);
    if (!mapping)
      return stop("format requires a mapping");
    std::size_t depth = 0;
    std::size_t at = 0;
    for (; at < rest_.size(); ++at) {
      depth += rest_[at] == '(' ? 1 : 0;
      depth -= rest_[at] == ')' ? 1 : 0;
      if (depth == 0)
        break;
    }
    if (at == rest_.size())
      return stop("incomplete format key");
    const auto* found = mapping->find(rest_.substr(1, at - 1));
    if (!found)
      return stop("the format names a key that is not there");
    rest_.remove_prefix(at + 1);
    by_name_ = true;
    return *found;
  }

  /// A width or precision: digits, or '*' for the next value.
  outcome<std::int64_t> read_number() {
    std::int64_t out = 0;
    if (rest_.starts_with('*')) {
      rest_.remove_prefix(1);
      JINJA_TRY(const auto given, next());
      if (!std::holds_alternative<std::int64_t>(given))
        return stop("* wants an integer");
      out = std::get<std::int64_t>(given);
    }
    for (; !rest_.empty() && rest_[0] >= '0' && rest_[0] <= '9' && out <= most_width; rest_.remove_prefix(1))
      out = out * 10 + (rest_[0] - '0');
    if (out > most_width || out < -most_width)
      return stop(errc::too_large, "a width or precision is more than " + std::to_string(most_width));
    return out;
  }

  outcome<value> next() {
    if (by_name_ || used_ >= values_.size())
      return stop("not enough arguments for the format");
    return values_[used_++];
  }

  outcome<void> write(number_format& how, const value& what) {
    switch (how.type) {
    case 's':
    case 'r':
    case 'a': {
      if (how.type == 'a')
        return stop(errc::unsupported, "the conversion '%a' is not supported");
      how.fill = " ";
      how.align = how.align == '<' ? '<' : '>';
      text_builder shown(memory_.costs());
      how.type == 's' ? print(shown, what) : print_repr(shown, what);
      out_.append(format_text(shown.finish(), how));
      return {};
    }
    case 'c':
      return write_character(how, what);
    case 'd':
    case 'i':
    case 'u':
    case 'x':
    case 'X':
    case 'o':
      return write_integer(how, what);
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G': {
      const auto number = as_number(what);
      if (!number)
        return is_undefined(what) ? outcome<void>(undefined_fault(what))
                                  : stop("must be a real number, not '" + std::string(type_name(what)) + "'");
      out_.append(format_float(*number, how));
      return {};
    }
    default:
      return stop("unsupported format character");
    }
  }

  outcome<void> write_integer(number_format& how, const value& what) {
    std::optional<std::int64_t> number = as_integer(what);
    const auto* real = std::get_if<double>(&what);
    const bool decimal = how.type == 'd' || how.type == 'i' || how.type == 'u';
    if (real && decimal && std::fabs(*real) < 9e18)
      number = static_cast<std::int64_t>(*real);
    if (!number)
      return is_undefined(what) ? outcome<void>(undefined_fault(what))
                                : stop("an integer is needed, not '" + std::string(type_name(what)) + "'");
    if (decimal)
      how.type = 'd';
    out_.append(format_integer(*number, how));
    return {};
  }

  outcome<void> write_character(number_format& how, const value& what) {
    std::string one;
    const auto* t = as_text(what);
    const auto code = as_integer(what);
    if (t && t->length() == 1)
      one = t->bytes();
    else if (code && *code >= 0 && *code < 0x110000 && (*code < 0xD800 || *code > 0xDFFF))
      utf8::append(one, static_cast<char32_t>(*code));
    else
      return stop("%c requires an integer or a character");
    how.fill = " ";
    how.align = how.align == '<' ? '<' : '>';
    how.precision = -1;
    out_.append(format_text(one, how));
    return {};
  }

  heap& memory_;
  text_builder out_;
  std::string_view rest_;
  const value& right_;
  std::vector<value> values_;
  std::size_t used_ = 0;
  bool single_ = false;
  bool by_name_ = false;
};

} // namespace

outcome<value> format_percent(heap& memory, const text& form, const value& right) {
  JINJA_TRY(auto out, percent_formatter(memory, form.bytes(), right).run());
  return memory.make_text(std::move(out), form.is_safe());
}

} // namespace godwit::jinja
