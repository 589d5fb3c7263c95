#include "actors/jinja/methods.hpp"

#include "actors/jinja/access.hpp"
#include "actors/jinja/operators.hpp"
#include "actors/jinja/printing.hpp"
#include "actors/text/letters.hpp"
#include "actors/text/utf8.hpp"

#include <algorithm>
#include <array>

namespace godwit::jinja {

namespace {

const text& self_text(const value& self) {
  return *as_text(self);
}

/// The result of a method: safe as its string was.
value made(heap& memory, const value& self, std::string bytes) {
  return memory.make_text(std::move(bytes), self_text(self).is_safe());
}

template <std::string (*Map)(std::string_view)>
outcome<value> mapped(heap& memory, const value& self, arguments& given) {
  JINJA_CHECK(parameters::bind("str method", given, {}));
  memory.costs().spend_bytes(16 * self_text(self).bytes().size());
  return made(memory, self, Map(self_text(self).bytes()));
}

/// A predicate over all characters of a string that is not empty.
template <bool (*Test)(char32_t)>
outcome<value> all_characters(heap& memory, const value& self, arguments& given) {
  JINJA_CHECK(parameters::bind("str method", given, {}));
  auto rest = self_text(self).bytes();
  memory.costs().spend_bytes(8 * rest.size());
  bool all = !rest.empty();
  for (; all && !rest.empty(); rest.remove_prefix(utf8::first(rest).size))
    all = Test(utf8::first(rest).code);
  return all;
}

bool is_alnum(char32_t code) {
  return letters::is_alpha(code) || letters::is_numeric(code);
}

/// islower() and isupper(): some character has the case, and none another.
template <bool (*Is)(char32_t), bool (*IsOther)(char32_t)>
outcome<value> all_cased(heap& memory, const value& self, arguments& given) {
  JINJA_CHECK(parameters::bind("str method", given, {}));
  auto rest = self_text(self).bytes();
  memory.costs().spend_bytes(8 * rest.size());
  bool some = false;
  for (; !rest.empty(); rest.remove_prefix(utf8::first(rest).size)) {
    const auto code = utf8::first(rest).code;
    if (IsOther(code) || letters::is_title(code))
      return false;
    some = some || Is(code);
  }
  return some;
}

template <bool Left, bool Right>
outcome<value> stripped(heap& memory, const value& self, arguments& given) {
  JINJA_TRY(const auto p, parameters::bind("strip", given, {"/chars"}));
  JINJA_TRY(const auto characters, p.string(0));
  return made(
    memory, self, std::string(strip(memory.costs(), self_text(self).bytes(), characters, Left, Right)));
}

/// The part of a string that `start` and `end` arguments choose, with the index of its first character.
struct window {
  std::string_view bytes;
  std::size_t first = 0;
  bool inside = true; ///< start is not behind the end of the string
};

outcome<window> window_of(budget& costs, const text& t, const parameters& p, std::size_t start_at) {
  costs.spend_bytes(t.is_ascii() ? 0 : 2 * t.bytes().size());
  const auto n = static_cast<std::int64_t>(t.length());
  const auto bound = [&](std::size_t i, std::int64_t otherwise) -> outcome<std::int64_t> {
    if (!p[i] || is_none(*p[i]))
      return otherwise;
    JINJA_TRY(const auto at, p.integer(i, otherwise));
    return at < 0 ? std::max<std::int64_t>(at + n, 0) : at;
  };
  JINJA_TRY(const auto start, bound(start_at, 0));
  JINJA_TRY(const auto unclamped, bound(start_at + 1, n));
  const auto end = std::min(unclamped, n);
  if (start > end)
    return window{{}, 0, false};
  const auto from = offset_of(t, static_cast<std::size_t>(start));
  const auto to = offset_of(t, static_cast<std::size_t>(end));
  return window{t.bytes().substr(from, to - from), static_cast<std::size_t>(start), true};
}

template <bool Ends>
outcome<value> has_affix(heap& memory, const value& self, arguments& given) {
  JINJA_TRY(
    const auto p, parameters::bind(Ends ? "endswith" : "startswith", given, {"/affix", "/start", "/end"}, 1));
  JINJA_TRY(const auto where, window_of(memory.costs(), self_text(self), p, 1));
  const auto matches = [&](const value& affix) -> outcome<bool> {
    const auto* t = as_text(affix);
    if (!t)
      return is_undefined(affix) ? outcome<bool>(undefined_fault(affix))
                                 : stop("a prefix or suffix is a string");
    memory.costs().spend_bytes(std::min(t->bytes().size(), where.bytes.size()));
    return where.inside && (Ends ? where.bytes.ends_with(t->bytes()) : where.bytes.starts_with(t->bytes()));
  };
  const auto* several = as_list(*p[0]);
  if (!several || several->kind != list::sort::tuple) {
    JINJA_TRY(const bool found, matches(*p[0]));
    return found;
  }
  for (const auto& affix : several->items) {
    memory.costs().spend();
    JINJA_TRY(const bool found, matches(affix));
    if (found)
      return true;
  }
  return false;
}

enum class search { find, index };

template <bool Last, search How>
outcome<value> found_at(heap& memory, const value& self, arguments& given) {
  JINJA_TRY(const auto p, parameters::bind("find", given, {"/sub", "/start", "/end"}, 1));
  JINJA_TRY(const auto part, p.string(0));
  if (!part)
    return stop("find() needs a string");
  JINJA_TRY(const auto where, window_of(memory.costs(), self_text(self), p, 1));
  memory.costs().spend_bytes(where.bytes.size());
  const auto at = !where.inside ? std::string_view::npos
                  : Last        ? find_last_bytes(memory.costs(), where.bytes, *part)
                                : find_bytes(where.bytes, *part);
  if (at != std::string_view::npos)
    return count_value(where.first + utf8::length(where.bytes.substr(0, at)));
  if (How == search::index)
    return stop("the substring is not found");
  return std::int64_t{-1};
}

outcome<value> count(heap& memory, const value& self, arguments& given) {
  JINJA_TRY(const auto p, parameters::bind("count", given, {"/sub", "/start", "/end"}, 1));
  JINJA_TRY(const auto part, p.string(0));
  if (!part)
    return stop("count() needs a string");
  JINJA_TRY(const auto where, window_of(memory.costs(), self_text(self), p, 1));
  memory.costs().spend_bytes(where.bytes.size());
  if (!where.inside)
    return std::int64_t{0};
  if (part->empty())
    return count_value(utf8::length(where.bytes) + 1);
  std::int64_t n = 0;
  auto rest = where.bytes;
  for (auto at = find_bytes(rest, *part); at != std::string_view::npos; at = find_bytes(rest, *part)) {
    rest.remove_prefix(at + part->size());
    ++n;
  }
  return n;
}

outcome<value> replace(heap& memory, const value& self, arguments& given) {
  JINJA_TRY(const auto p, parameters::bind("replace", given, {"/old", "/new", "/count"}, 2));
  JINJA_TRY(const auto old, p.string(0));
  JINJA_TRY(const auto with, p.string(1));
  JINJA_TRY(const auto most, p.integer(2, -1));
  if (!old || !with)
    return stop("replace() needs strings");
  return made(memory, self, replace_all(memory.costs(), self_text(self).bytes(), *old, *with, most));
}

outcome<value> text_join(heap& memory, const value& self, arguments& given) {
  JINJA_TRY(const auto p, parameters::bind("join", given, {"/iterable"}, 1));
  JINJA_TRY(const auto items, items_of(memory, *p[0]));
  JINJA_TRY(auto joined, join(memory, self_text(self).bytes(), items, true));
  return made(memory, self, std::move(joined));
}

outcome<value> text_format(heap& memory, const value& self, arguments& given) {
  return format_braces(memory, self_text(self), given);
}

outcome<value> split_lines_method(heap& memory, const value& self, arguments& given) {
  JINJA_TRY(const auto p, parameters::bind("splitlines", given, {"keepends"}));
  std::vector<value> lines;
  memory.costs().spend_bytes(self_text(self).bytes().size());
  for (const auto line : split_lines(self_text(self).bytes(), p.flag(0, false)))
    if (memory.costs().spend())
      lines.push_back(made(memory, self, std::string(line)));
  return memory.make_list(std::move(lines));
}

template <bool Prefix>
outcome<value> without_affix(heap& memory, const value& self, arguments& given) {
  JINJA_TRY(const auto p, parameters::bind(Prefix ? "removeprefix" : "removesuffix", given, {"/affix"}, 1));
  JINJA_TRY(const auto affix, p.string(0));
  auto bytes = self_text(self).bytes();
  if (affix && Prefix && bytes.starts_with(*affix))
    bytes.remove_prefix(affix->size());
  else if (affix && !Prefix && bytes.ends_with(*affix))
    bytes.remove_suffix(affix->size());
  return made(memory, self, std::string(bytes));
}

template <bool Last>
outcome<value> partition(heap& memory, const value& self, arguments& given) {
  JINJA_TRY(const auto p, parameters::bind("partition", given, {"/sep"}, 1));
  JINJA_TRY(const auto separator, p.string(0));
  if (!separator || separator->empty())
    return stop("partition() needs a separator that is not empty");
  const auto bytes = self_text(self).bytes();
  const auto at = Last ? find_last_bytes(memory.costs(), bytes, *separator) : find_bytes(bytes, *separator);
  std::array<std::string_view, 3> parts{Last ? "" : bytes, "", Last ? bytes : ""};
  if (at != std::string_view::npos)
    parts = {bytes.substr(0, at), *separator, bytes.substr(at + separator->size())};
  std::vector<value> out;
  for (const auto part : parts)
    out.push_back(made(memory, self, std::string(part)));
  return memory.make_list(std::move(out), list::sort::tuple);
}

enum class side { left, right, center };

template <side Where>
outcome<value> justified(heap& memory, const value& self, arguments& given) {
  JINJA_TRY(const auto p, parameters::bind("justify", given, {"/width", "/fillchar"}, 1));
  JINJA_TRY(const auto width, p.integer(0, 0));
  JINJA_TRY(const auto given_fill, p.string(1));
  const auto fill = given_fill.value_or(" ");
  if (utf8::length(fill) != 1)
    return stop("the fill character must be one character");
  const auto& t = self_text(self);
  if (Where == side::center)
    return made(memory, self, center(memory.costs(), t, width, fill));
  const auto size = static_cast<std::int64_t>(t.length());
  const auto missing = static_cast<std::size_t>(std::max<std::int64_t>(width - std::min(size, width), 0));
  text_builder out(memory.costs());
  if (Where == side::right)
    out.append(missing, fill);
  out.append(t.bytes());
  if (Where == side::left)
    out.append(missing, fill);
  return made(memory, self, out.finish());
}

outcome<value> zero_fill(heap& memory, const value& self, arguments& given) {
  JINJA_TRY(const auto p, parameters::bind("zfill", given, {"/width"}, 1));
  JINJA_TRY(const auto width, p.integer(0, 0));
  const auto& t = self_text(self);
  const auto size = static_cast<std::int64_t>(t.length());
  auto bytes = t.bytes();
  text_builder out(memory.costs());
  if (width > size) {
    if (bytes.starts_with('+') || bytes.starts_with('-')) {
      out.append(bytes.substr(0, 1));
      bytes.remove_prefix(1);
    }
    out.append(static_cast<std::size_t>(width - size), '0');
  }
  out.append(bytes);
  return made(memory, self, out.finish());
}

outcome<value> split(heap& memory, const value& self, arguments& given) {
  JINJA_TRY(const auto p, parameters::bind("split", given, {"sep", "maxsplit"}));
  JINJA_TRY(const auto separator, p.string(0));
  JINJA_TRY(const auto most, p.integer(1, -1));
  auto rest = self_text(self).bytes();
  memory.costs().spend_bytes((separator ? 1 : 8) * rest.size());
  std::vector<value> fields;
  const auto more = [&] {
    return (most < 0 || static_cast<std::int64_t>(fields.size()) < most) && memory.costs().spend();
  };
  if (separator) {
    if (separator->empty())
      return stop("split() needs a separator that is not empty");
    for (auto at = find_bytes(rest, *separator); at != std::string_view::npos && more();
         at = find_bytes(rest, *separator)) {
      fields.push_back(made(memory, self, std::string(rest.substr(0, at))));
      rest.remove_prefix(at + separator->size());
    }
    fields.push_back(made(memory, self, std::string(rest)));
    return memory.make_list(std::move(fields));
  }
  for (rest = strip(memory.costs(), rest, std::nullopt, true, false); !rest.empty();
       rest = strip(memory.costs(), rest, std::nullopt, true, false)) {
    if (!more()) {
      // What is left stays as it is, white space at its end too.
      fields.push_back(made(memory, self, std::string(rest)));
      break;
    }
    std::size_t end = 0;
    while (end < rest.size() && !letters::is_space(utf8::first(rest.substr(end)).code))
      end += utf8::first(rest.substr(end)).size;
    fields.push_back(made(memory, self, std::string(rest.substr(0, end))));
    rest.remove_prefix(end);
  }
  return memory.make_list(std::move(fields));
}

outcome<value> split_right(heap& memory, const value& self, arguments& given) {
  JINJA_TRY(const auto p, parameters::bind("rsplit", given, {"sep", "maxsplit"}));
  JINJA_TRY(const auto separator, p.string(0));
  JINJA_TRY(const auto most, p.integer(1, -1));
  auto rest = self_text(self).bytes();
  memory.costs().spend_bytes((separator ? 1 : 8) * rest.size());
  std::vector<value> fields;
  const auto more = [&] {
    return (most < 0 || static_cast<std::int64_t>(fields.size()) < most) && memory.costs().spend();
  };
  if (separator) {
    if (separator->empty())
      return stop("rsplit() needs a separator that is not empty");
    for (auto at = find_last_bytes(memory.costs(), rest, *separator); at != std::string_view::npos && more();
         at = find_last_bytes(memory.costs(), rest, *separator)) {
      fields.push_back(made(memory, self, std::string(rest.substr(at + separator->size()))));
      rest = rest.substr(0, at);
    }
    fields.push_back(made(memory, self, std::string(rest)));
  } else {
    for (rest = strip(memory.costs(), rest, std::nullopt, false, true); !rest.empty();
         rest = strip(memory.costs(), rest, std::nullopt, false, true)) {
      if (!more()) {
        fields.push_back(made(memory, self, std::string(rest)));
        break;
      }
      auto start = rest.size();
      while (start > 0) {
        auto before = start - 1;
        while (before > 0 && (static_cast<unsigned char>(rest[before]) & 0xC0) == 0x80)
          --before;
        if (letters::is_space(utf8::first(rest.substr(before)).code))
          break;
        start = before;
      }
      fields.push_back(made(memory, self, std::string(rest.substr(start))));
      rest = rest.substr(0, start);
    }
  }
  std::ranges::reverse(fields);
  return memory.make_list(std::move(fields));
}

} // namespace

std::span<const method> text_methods() {
  static constexpr auto table = std::to_array<method>({
    {"capitalize", mapped<letters::capitalize>},
    {"center", justified<side::center>},
    {"count", count},
    {"endswith", has_affix<true>},
    {"find", found_at<false, search::find>},
    {"format", text_format},
    {"index", found_at<false, search::index>},
    {"isalnum", all_characters<is_alnum>},
    {"isalpha", all_characters<letters::is_alpha>},
    {"isdecimal", all_characters<letters::is_decimal>},
    {"isdigit", all_characters<letters::is_digit>},
    {"islower", all_cased<letters::is_lower, letters::is_upper>},
    {"isnumeric", all_characters<letters::is_numeric>},
    {"isspace", all_characters<letters::is_space>},
    {"isupper", all_cased<letters::is_upper, letters::is_lower>},
    {"join", text_join},
    {"ljust", justified<side::left>},
    {"lower", mapped<letters::lower>},
    {"lstrip", stripped<true, false>},
    {"partition", partition<false>},
    {"removeprefix", without_affix<true>},
    {"removesuffix", without_affix<false>},
    {"replace", replace},
    {"rfind", found_at<true, search::find>},
    {"rindex", found_at<true, search::index>},
    {"rjust", justified<side::right>},
    {"rpartition", partition<true>},
    {"rsplit", split_right},
    {"rstrip", stripped<false, true>},
    {"split", split},
    {"splitlines", split_lines_method},
    {"startswith", has_affix<false>},
    {"strip", stripped<true, true>},
    {"swapcase", mapped<letters::swapcase>},
    {"title", mapped<letters::title>},
    {"upper", mapped<letters::upper>},
    {"zfill", zero_fill},
  });
  return table;
}

} // namespace godwit::jinja
