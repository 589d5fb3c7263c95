#include "actors/text/letters.hpp"

#include <catch2/catch.hpp>

using namespace godwit;

// Expected values are what CPython 3.11 gives.

TEST_CASE("upper case follows the special casing of Unicode") {
  CHECK(letters::upper("straße \u0149 \uFB01 \u0390") == "STRASSE \u02BCN FI \u0399\u0308\u0301");
  CHECK(letters::upper("ǆ ᾀ") == "Ǆ ἈΙ");
}

TEST_CASE("lower case knows the final sigma and the dotted capital I") {
  CHECK(letters::lower("ὈΔΥΣΣΕΎΣ ΣΑΣ. Σ İ") == "ὀδυσσεύς σας. σ i̇");
  CHECK(letters::lower("ΑΣ'Β") == "ασ'β");
}

TEST_CASE("title case begins at every run of letters, capitalize at the first character only") {
  CHECK(letters::title("they're bill's ßa ǆx 3d") == "They'Re Bill'S Ssa ǅx 3D");
  CHECK(letters::capitalize("ßHELLO World") == "Sshello world");
  CHECK(letters::capitalize("") == "");
  CHECK(letters::swapcase("Hello ß Ω") == "hELLO SS ω");
}

TEST_CASE("white space and printable characters are Python's") {
  for (const char32_t code :
    {0x09, 0x0B, 0x1C, 0x1F, 0x20, 0x85, 0xA0, 0x1680, 0x2003, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000})
    CHECK(letters::is_space(code));
  for (const char32_t code : {0x00, 0x08, 0x1B, 0x200B, 0xFEFF, 0x180E})
    CHECK_FALSE(letters::is_space(code));
  CHECK(letters::is_printable(U'é'));
  CHECK(letters::is_printable(U'🙂'));
  for (const char32_t code : {0x7F, 0xA0, 0xAD, 0x200B, 0x2028, 0xE000, 0x378})
    CHECK_FALSE(letters::is_printable(code));
}

TEST_CASE("bytes that are not UTF-8 pass through unchanged") {
  CHECK(letters::upper("a\xFFz\xE2\x82") == "A\xFFZ\xE2\x82");
}
