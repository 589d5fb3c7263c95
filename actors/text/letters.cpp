#include "actors/text/letters.hpp"

#include "actors/text/special_casing.hpp"
#include "actors/text/utf8.hpp"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <utility>

namespace godwit::letters {

namespace {

struct range {
  char32_t first;
  char32_t last;
};

// Characters of other categories that have the properties Other_Lowercase and Other_Uppercase.
constexpr auto other_lower = std::to_array<range>({{0xAA, 0xAA}, {0xBA, 0xBA}, {0x2B0, 0x2B8}, {0x2C0, 0x2C1},
  {0x2E0, 0x2E4}, {0x345, 0x345}, {0x37A, 0x37A}, {0x1D2C, 0x1D6A}, {0x1D78, 0x1D78}, {0x1D9B, 0x1DBF},
  {0x2071, 0x2071}, {0x207F, 0x207F}, {0x2090, 0x209C}, {0x2170, 0x217F}, {0x24D0, 0x24E9}, {0x2C7C, 0x2C7D},
  {0xA69C, 0xA69D}, {0xA770, 0xA770}, {0xA7F8, 0xA7F9}, {0xAB5C, 0xAB5F}, {0x10780, 0x10780},
  {0x10783, 0x10785}, {0x10787, 0x107B0}, {0x107B2, 0x107BA}});
constexpr auto other_upper = std::to_array<range>(
  {{0x2160, 0x216F}, {0x24B6, 0x24CF}, {0x1F130, 0x1F149}, {0x1F150, 0x1F169}, {0x1F170, 0x1F189}});

// Numeric_Type is Digit, but not Decimal.
constexpr auto other_digit = std::to_array<range>({{0xB2, 0xB3}, {0xB9, 0xB9}, {0x1369, 0x1371},
  {0x19DA, 0x19DA}, {0x2070, 0x2070}, {0x2074, 0x2079}, {0x2080, 0x2089}, {0x2460, 0x2468}, {0x2474, 0x247C},
  {0x2488, 0x2490}, {0x24EA, 0x24EA}, {0x24F5, 0x24FD}, {0x24FF, 0x24FF}, {0x2776, 0x277E}, {0x2780, 0x2788},
  {0x278A, 0x2792}, {0x10A40, 0x10A43}, {0x10E60, 0x10E68}, {0x11052, 0x1105A}, {0x1F100, 0x1F10A}});

template <std::size_t N>
bool within(const std::array<range, N>& ranges, char32_t code) {
  return std::ranges::any_of(ranges, [&](const range& r) { return code >= r.first && code <= r.last; });
}

utf8proc_category_t category(char32_t code) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(code));
}

char32_t simple(utf8proc_int32_t (*map)(utf8proc_int32_t), char32_t code) {
  return static_cast<char32_t>(map(static_cast<utf8proc_int32_t>(code)));
}

void append_upper(std::string& out, char32_t code) {
  if (const auto* special = find_special_casing(code))
    out += special->upper;
  else
    utf8::append(out, simple(utf8proc_toupper, code));
}

void append_title(std::string& out, char32_t code) {
  if (const auto* special = find_special_casing(code))
    out += special->title;
  else
    utf8::append(out, simple(utf8proc_totitle, code));
}

bool is_cased(char32_t code) {
  return is_lower(code) || is_upper(code) || is_title(code);
}

/// Unicode's Case_Ignorable: marks, format characters, modifiers, and the word-internal punctuation.
bool is_case_ignorable(char32_t code) {
  switch (category(code)) {
  case UTF8PROC_CATEGORY_MN:
  case UTF8PROC_CATEGORY_ME:
  case UTF8PROC_CATEGORY_CF:
  case UTF8PROC_CATEGORY_LM:
  case UTF8PROC_CATEGORY_SK:
    return true;
  default:
    constexpr std::u32string_view internal = U"'.:\u00B7\u0387\u055F\u05F4\u2018\u2019\u2024\u2027"
                                             U"\uFE13\uFE52\uFE55\uFF07\uFF0E\uFF1A";
    return internal.find(code) != std::u32string_view::npos;
  }
}

/// A character on a walk through a text.
struct place : utf8::character {
  std::string_view rest;     ///< what follows it
  bool after_letter = false; ///< the last character before it that is not ignorable is cased
};

/// Final_Sigma: a cased letter before, none after, looking past what is ignorable. The look ahead ends at the
/// next sigma at the latest, so a whole text takes linear time.
bool ends_word(const place& here) {
  if (!here.after_letter)
    return false;
  for (auto rest = here.rest; !rest.empty();) {
    const auto next = utf8::first(rest);
    if (!is_case_ignorable(next.code))
      return !is_cased(next.code);
    rest.remove_prefix(next.size);
  }
  return true;
}

void append_lower(std::string& out, const place& here) {
  if (here.code == 0x0130)
    out += "i\u0307";
  else if (here.code == 0x03A3)
    out += ends_word(here) ? "\u03C2" : "\u03C3";
  else
    utf8::append(out, simple(utf8proc_tolower, here.code));
}

/// Walks over the characters; `write(out, place)` maps each that is valid.
template <class Write>
std::string map(std::string_view text, Write write) {
  std::string out;
  out.reserve(text.size());
  for (bool after_letter = false; !text.empty();) {
    const auto next = utf8::first(text);
    const auto bytes = text.substr(0, next.size);
    text.remove_prefix(next.size);
    if (next.valid)
      write(out, place{next, text, after_letter});
    else
      out += bytes;
    if (!is_case_ignorable(next.code))
      after_letter = is_cased(next.code);
  }
  return out;
}

} // namespace

bool is_space(char32_t code) {
  if (code < 0x80)
    return code == ' ' || (code >= 0x09 && code <= 0x0D) || (code >= 0x1C && code <= 0x1F);
  return code == 0x85 || category(code) == UTF8PROC_CATEGORY_ZS || code == 0x2028 || code == 0x2029;
}

bool is_printable(char32_t code) {
  switch (category(code)) {
  case UTF8PROC_CATEGORY_CC:
  case UTF8PROC_CATEGORY_CF:
  case UTF8PROC_CATEGORY_CS:
  case UTF8PROC_CATEGORY_CO:
  case UTF8PROC_CATEGORY_CN:
  case UTF8PROC_CATEGORY_ZL:
  case UTF8PROC_CATEGORY_ZP:
    return false;
  case UTF8PROC_CATEGORY_ZS:
    return code == ' ';
  default:
    return true;
  }
}

bool is_alpha(char32_t code) {
  const auto c = category(code);
  return c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_LO;
}

bool is_decimal(char32_t code) {
  return category(code) == UTF8PROC_CATEGORY_ND;
}

bool is_digit(char32_t code) {
  return is_decimal(code) || within(other_digit, code);
}

bool is_numeric(char32_t code) {
  const auto c = category(code);
  return c >= UTF8PROC_CATEGORY_ND && c <= UTF8PROC_CATEGORY_NO;
}

bool is_lower(char32_t code) {
  return category(code) == UTF8PROC_CATEGORY_LL || within(other_lower, code);
}

bool is_upper(char32_t code) {
  return category(code) == UTF8PROC_CATEGORY_LU || within(other_upper, code);
}

bool is_title(char32_t code) {
  return category(code) == UTF8PROC_CATEGORY_LT;
}

std::string upper(std::string_view text) {
  return map(text, [](std::string& out, const place& here) { append_upper(out, here.code); });
}

std::string lower(std::string_view text) {
  return map(text, append_lower);
}

std::string title(std::string_view text) {
  bool in_word = false;
  return map(text, [&](std::string& out, const place& here) {
    if (in_word)
      append_lower(out, here);
    else
      append_title(out, here.code);
    in_word = is_cased(here.code);
  });
}

std::string capitalize(std::string_view text) {
  return map(text, [first = true](std::string& out, const place& here) mutable {
    if (std::exchange(first, false))
      append_title(out, here.code);
    else
      append_lower(out, here);
  });
}

std::string swapcase(std::string_view text) {
  return map(text, [](std::string& out, const place& here) {
    if (is_upper(here.code))
      append_lower(out, here);
    else if (is_lower(here.code))
      append_upper(out, here.code);
    else
      utf8::append(out, here.code);
  });
}

} // namespace godwit::letters
