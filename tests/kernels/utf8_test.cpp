#include "kernels/utf8.hpp"

#include "testing.hpp"

using namespace tapehead;

TEST_CASE("utf8: characters of one to four bytes, and what is none") {
  for (const char* good :
       {"", "a", "\x7f", "\u0080", "\u07ff", "\u0800", "\ud7ff", "\ue000", "\uffff", "\U00010000", "\U0010ffff", "ä→𝄞"})
    CHECK(detail::is_utf8(good));
  for (const char* bad :
       {"\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xc2", "\xc2 ", "\xe0\x9f\xbf", "\xe2\x86", "\xed\xa0\x80",
        "\xed\xbf\xbf", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "a\xffz"})
    CHECK_FALSE(detail::is_utf8(bad));
  CHECK(detail::utf8_length("a→b", 1) == 3);
  CHECK(detail::utf8_length("a→b", 2) == 0);
}

TEST_CASE("utf8: the width of a text counts characters, without accents over the letter before") {
  CHECK(detail::columns("") == 0);
  CHECK(detail::columns("a→𝄞") == 3);
  CHECK(detail::columns("x\u0302y\u0303") == 2);  // x̂ỹ
  CHECK(detail::columns("\u02ff\u0300\u036f\u0370") == 2);
  CHECK(detail::columns("\xcc") == 1);  // cut short
}
