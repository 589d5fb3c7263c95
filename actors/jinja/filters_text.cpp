#include "actors/jinja/filters.hpp"

#include "actors/jinja/json.hpp"
#include "actors/jinja/operators.hpp"
#include "actors/jinja/printing.hpp"
#include "actors/text/letters.hpp"
#include "actors/text/utf8.hpp"

#include <array>

namespace godwit::jinja {

namespace {

/// The input as a string: itself, or what it prints as.
text_ref soft_text(heap& memory, const value& input) {
  if (const auto* ref = std::get_if<text_ref>(&input))
    return *ref;
  text_builder out(memory.costs());
  print(out, input);
  return std::get<text_ref>(memory.make_text(out.finish()));
}

template <std::string (*Map)(std::string_view)>
outcome<value> mapped(heap& memory, const value& input, arguments& given) {
  JINJA_CHECK(parameters::bind("filter", given, {}));
  const auto t = soft_text(memory, input);
  memory.costs().spend_bytes(16 * t->bytes().size());
  return memory.make_text(Map(t->bytes()), t->is_safe());
}

/// Words begin after white space, hyphens and opening brackets; unlike str.title(), other marks stay within a
/// word.
std::string title_words(std::string_view bytes) {
  std::string out;
  while (!bytes.empty()) {
    const auto splits = [](char32_t code) {
      return letters::is_space(code) || std::u32string_view(U"-({[<").find(code) != std::u32string_view::npos;
    };
    const bool separator = splits(utf8::first(bytes).code);
    std::size_t end = 0;
    while (end < bytes.size() && splits(utf8::first(bytes.substr(end)).code) == separator)
      end += utf8::first(bytes.substr(end)).size;
    const auto word = bytes.substr(0, end);
    const auto initial = utf8::first(word).size;
    out += letters::upper(word.substr(0, initial));
    out += letters::lower(word.substr(initial));
    bytes.remove_prefix(end);
  }
  return out;
}

outcome<value> trim(heap& memory, const value& input, arguments& given) {
  JINJA_TRY(const auto p, parameters::bind("trim", given, {"chars"}));
  JINJA_TRY(const auto characters, p.string(0));
  const auto t = soft_text(memory, input);
  return memory.make_text(
    std::string(strip(memory.costs(), t->bytes(), characters, true, true)), t->is_safe());
}

outcome<value> replace(heap& memory, const value& input, arguments& given) {
  JINJA_TRY(const auto p, parameters::bind("replace", given, {"old", "new", "count"}, 2));
  const auto t = soft_text(memory, input);
  const auto old = soft_text(memory, *p[0]);
  const auto with = soft_text(memory, *p[1]);
  JINJA_TRY(const auto most, p[2] && is_none(*p[2]) ? outcome<std::int64_t>(-1) : p.integer(2, -1));
  return memory.make_text(replace_all(memory.costs(), t->bytes(), old->bytes(), with->bytes(), most));
}

outcome<value> indent(heap& memory, const value& input, arguments& given) {
  JINJA_TRY(const auto p, parameters::bind("indent", given, {"width", "first", "blank"}));
  std::string by(4, ' ');
  if (p[0]) {
    if (const auto* t = as_text(*p[0])) {
      by = t->bytes();
    } else {
      JINJA_TRY(const auto width, p.integer(0, 4));
      if (!memory.costs().has_room(static_cast<std::size_t>(std::max<std::int64_t>(width, 0))))
        return value(none{});
      by.assign(static_cast<std::size_t>(std::max<std::int64_t>(width, 0)), ' ');
    }
  }
  const auto* t = as_text(input);
  if (!t)
    return is_undefined(input) ? outcome<value>(undefined_fault(input)) : stop("indent needs a string");
  memory.costs().spend_bytes(t->bytes().size());
  // A last line end counts as another, empty line.
  const auto whole = std::string(t->bytes()) + "\n";
  text_builder out(memory.costs());
  if (p.flag(1, false))
    out.append(by);
  bool next = false;
  for (const auto line : split_lines(whole)) {
    if (std::exchange(next, true)) {
      out.append("\n");
      if (p.flag(2, false) || !line.empty())
        out.append(by);
    }
    out.append(line);
    if (!memory.costs().spend())
      break;
  }
  return memory.make_text(out.finish(), t->is_safe());
}

outcome<value> string(heap& memory, const value& input, arguments& given) {
  JINJA_CHECK(parameters::bind("string", given, {}));
  return value(soft_text(memory, input));
}

outcome<value> safe(heap& memory, const value& input, arguments& given) {
  JINJA_CHECK(parameters::bind("safe", given, {}));
  return memory.make_text(std::string(soft_text(memory, input)->bytes()), true);
}

outcome<value> escape(heap& memory, const value& input, arguments& given) {
  JINJA_CHECK(parameters::bind("escape", given, {}));
  const auto t = soft_text(memory, input);
  if (t->is_safe())
    return value(t);
  // Every character becomes at most five.
  if (!memory.costs().has_room(5 * t->bytes().size()) || !memory.costs().spend_bytes(4 * t->bytes().size()))
    return value(none{});
  return memory.make_text(escape_html(t->bytes()), true);
}

outcome<value> force_escape(heap& memory, const value& input, arguments& given) {
  JINJA_CHECK(parameters::bind("forceescape", given, {}));
  const auto t = soft_text(memory, input);
  if (!memory.costs().has_room(5 * t->bytes().size()) || !memory.costs().spend_bytes(4 * t->bytes().size()))
    return value(none{});
  return memory.make_text(escape_html(t->bytes()), true);
}

outcome<value> center_filter(heap& memory, const value& input, arguments& given) {
  JINJA_TRY(const auto p, parameters::bind("center", given, {"width"}));
  JINJA_TRY(const auto width, p.integer(0, 80));
  const auto t = soft_text(memory, input);
  return memory.make_text(center(memory.costs(), *t, width, " "), t->is_safe());
}

outcome<value> format(heap& memory, const value& input, arguments& given) {
  if (!given.positional.empty() && !given.named.empty())
    return stop("format() takes values or names, not both");
  const auto t = soft_text(memory, input);
  if (given.named.empty())
    return format_percent(memory, *t, memory.make_list(given.positional, list::sort::tuple));
  auto* names = memory.make_dict();
  for (const auto& [name, what] : given.named)
    names->set("s" + name, memory.make_text(name), what);
  return format_percent(memory, *t, names);
}

/// A separator pair of json.dumps().
outcome<std::pair<std::string, std::string>> separators_of(heap& memory, const value& v) {
  JINJA_TRY(const auto items, items_of(memory, v));
  if (items.size() != 2 || !as_text(items[0]) || !as_text(items[1]))
    return stop("separators must be two strings");
  return std::pair(std::string(as_text(items[0])->bytes()), std::string(as_text(items[1])->bytes()));
}

outcome<value> to_json_filter(heap& memory, const value& input, arguments& given) {
  JINJA_TRY(
    const auto p, parameters::bind("tojson", given, {"ensure_ascii", "indent", "separators", "sort_keys"}));
  json_style style;
  style.ascii = p.flag(0, false);
  if (p[1] && as_text(*p[1])) {
    style.indent = std::string(as_text(*p[1])->bytes());
  } else if (p[1] && !is_none(*p[1])) {
    JINJA_TRY(const auto width, p.integer(1, 0));
    if (width > 1000)
      return stop(errc::too_large, "tojson cannot indent by more than 1000 spaces");
    style.indent = std::string(static_cast<std::size_t>(std::max<std::int64_t>(width, 0)), ' ');
  }
  if (p[2] && !is_none(*p[2])) {
    JINJA_TRY(style.separators, separators_of(memory, *p[2]));
  }
  style.sort_keys = p.flag(3, false);
  JINJA_TRY(auto json, to_json(memory, input, style));
  return memory.make_text(std::move(json));
}

outcome<value> word_count(heap& memory, const value& input, arguments& given) {
  JINJA_CHECK(parameters::bind("wordcount", given, {}));
  const auto t = soft_text(memory, input);
  memory.costs().spend_bytes(8 * t->bytes().size());
  std::int64_t words = 0;
  bool within = false;
  for (auto rest = t->bytes(); !rest.empty(); rest.remove_prefix(utf8::first(rest).size)) {
    const auto code = utf8::first(rest).code;
    const bool word = code == U'_' || letters::is_alpha(code) || letters::is_numeric(code);
    words += word && !within ? 1 : 0;
    within = word;
  }
  return words;
}

} // namespace

std::span<const method> text_filters() {
  static constexpr auto table = std::to_array<method>({
    {"capitalize", mapped<letters::capitalize>},
    {"center", center_filter},
    {"e", escape},
    {"escape", escape},
    {"forceescape", force_escape},
    {"format", format},
    {"indent", indent},
    {"lower", mapped<letters::lower>},
    {"replace", replace},
    {"safe", safe},
    {"string", string},
    {"title", mapped<title_words>},
    {"tojson", to_json_filter},
    {"trim", trim},
    {"upper", mapped<letters::upper>},
    {"wordcount", word_count},
  });
  return table;
}

} // namespace godwit::jinja
