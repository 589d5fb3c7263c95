#include "actors/text/utf8.hpp"

#include <catch2/catch.hpp>

using namespace godwit;

TEST_CASE("every scalar value is read back as it was written") {
  for (char32_t code = 0; code < 0x110000; ++code) {
    if (code >= 0xD800 && code < 0xE000)
      continue;
    std::string bytes;
    utf8::append(bytes, code);
    const auto back = utf8::first(bytes);
    if (!back.valid || back.code != code || back.size != bytes.size())
      FAIL("code point " << static_cast<std::uint32_t>(code));
  }
  SUCCEED();
}

TEST_CASE("overlong forms, surrogates and what lies beyond U+10FFFF are not characters") {
  for (const std::string_view bytes : {"\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xED\xBF\xBF",
         "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\x80", "\xFF"}) {
    CHECK_FALSE(utf8::valid(bytes));
    CHECK(utf8::first(bytes).size == 1);
    CHECK_FALSE(utf8::first(bytes).cut);
  }
}

TEST_CASE("a broken character is taken as its maximal subpart") {
  // Unicode 15, table 3-8: 61 F1 80 80 E1 80 C2 62 80 63 80 BF 64 holds U+FFFD for F1 80 80, E1 80, C2, 80,
  // 80, BF.
  std::string_view bytes = "\x61\xF1\x80\x80\xE1\x80\xC2\x62\x80\x63\x80\xBF\x64";
  std::u32string seen;
  for (; !bytes.empty(); bytes.remove_prefix(utf8::first(bytes).size))
    seen.push_back(utf8::first(bytes).code);
  CHECK((seen == U"a\uFFFD\uFFFD\uFFFDb\uFFFDc\uFFFD\uFFFDd"));
}

TEST_CASE("the cut tail is what may still become a character") {
  CHECK(utf8::cut_tail("") == 0);
  CHECK(utf8::cut_tail("ab") == 0);
  CHECK(utf8::cut_tail("a\xE2") == 1);
  CHECK(utf8::cut_tail("a\xE2\x82") == 2);
  CHECK(utf8::cut_tail("a\xE2\x82\xAC") == 0);
  CHECK(utf8::cut_tail("\xF0\x9F\x99") == 3);
  CHECK(utf8::cut_tail("\xF0\x9F\x99\x82") == 0);
  CHECK(utf8::cut_tail("\x80\x80\x80\x80") == 0);
  CHECK(utf8::cut_tail("\xE0\x80") == 0);
  CHECK(utf8::cut_tail("\xFF") == 0);
}
