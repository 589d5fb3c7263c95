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
  for (const char32_t code : {0x09U, 0x0BU, 0x1CU, 0x1FU, 0x20U, 0x85U, 0xA0U, 0x1680U, 0x2003U, 0x2028U,
         0x2029U, 0x202FU, 0x205FU, 0x3000U})
    CHECK(letters::is_space(code));
  for (const char32_t code : {0x00U, 0x08U, 0x1BU, 0x200BU, 0xFEFFU, 0x180EU})
    CHECK_FALSE(letters::is_space(code));
  CHECK(letters::is_printable(U'é'));
  CHECK(letters::is_printable(U'🙂'));
  for (const char32_t code : {0x7FU, 0xA0U, 0xADU, 0x200BU, 0x2028U, 0xE000U, 0x378U})
    CHECK_FALSE(letters::is_printable(code));
}

TEST_CASE("bytes that are not UTF-8 pass through unchanged") {
  CHECK(letters::upper("a\xFFz\xE2\x82") == "A\xFFZ\xE2\x82");
}
