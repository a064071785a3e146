#pragma once
#include <cstddef>
#include <string_view>

namespace tapehead::detail {

/// The length in bytes of the UTF-8 character at text[at], at < text.size(); 0 where there is no valid one.
inline std::size_t utf8_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const unsigned first = byte(at);
  if (first < 0x80) return 1;
  if (first < 0xc2 || first > 0xf4) return 0;
  const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  // The second byte rules out overlong forms, surrogates and what lies beyond U+10FFFF.
  const unsigned least = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
  const unsigned most = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
  if (byte(at + 1) < least || byte(at + 1) > most) return 0;
  for (std::size_t i = 2; i < length; ++i)
    if ((byte(at + i) & 0xc0) != 0x80) return 0;
  return length;
}

inline bool is_utf8(std::string_view text) {
  for (std::size_t i = 0, length = 0; i < text.size(); i += length)
    if ((length = utf8_length(text, i)) == 0) return false;
  return true;
}

/// The width of UTF-8 text on a screen, in characters: its code points without the combining accents (U+0300 to
/// U+036F), which are drawn over the letter before (x̂).
inline std::size_t columns(std::string_view text) {
  std::size_t columns = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::string_view pair = text.substr(i, 2);
    columns += (text[i] & 0xc0) != 0x80 && !(pair >= "\xcc\x80" && pair < "\xcd\xb0");
  }
  return columns;
}

}  // namespace tapehead::detail
