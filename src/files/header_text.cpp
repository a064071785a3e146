#include "files/header_text.hpp"

#include <fmt/format.h>

#include <charconv>

namespace tapehead::detail {

void HeaderText::expected(std::string_view what) const {
  if (text_.empty()) damaged("it ends where {} should be", what);
  damaged("'{}' where {} should be", text_.substr(0, 16), what);
}

bool HeaderText::take(std::string_view token) {
  text_.remove_prefix(std::min(text_.find_first_not_of(" \t\r\n"), text_.size()));
  if (text_.substr(0, token.size()) != token) return false;
  text_.remove_prefix(token.size());
  return true;
}

void HeaderText::end() {
  take("");
  if (!text_.empty()) damaged("text after its closing brace");
}

bool HeaderText::boolean() {
  if (take("True")) return true;
  expect("False", "True or False");
  return false;
}

std::vector<std::int64_t> HeaderText::integers(const char* open, const char* close) {
  std::vector<std::int64_t> list;
  expect(open, fmt::format("a '{}'", open));
  while (!take(close)) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), value);
    if (error != std::errc{}) expected("a whole number");
    text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
    list.push_back(value);
    if (take(",")) continue;
    expect(close, fmt::format("a '{}'", close));
    break;
  }
  return list;
}

char HeaderText::next(const char* what) {
  if (text_.empty()) expected(what);
  const char c = text_.front();
  text_.remove_prefix(1);
  return c;
}

std::string HeaderText::string() {
  const char quote = take("'") ? '\'' : '"';
  if (quote == '"') expect("\"", "a string in quotes");
  std::string out;
  for (char c; (c = next("the end of a string")) != quote;) {
    if (static_cast<Byte>(c) < 0x20) damaged("a control character in a string");
    if (c == '\\')
      escape(out);
    else
      out += c;
  }
  return out;
}

std::uint32_t HeaderText::four_digits() {
  std::uint32_t unit = 0;
  const char* end = text_.data() + std::min<std::size_t>(4, text_.size());
  if (text_.size() < 4 || std::from_chars(text_.data(), end, unit, 16).ptr != end) expected("four hexadecimal digits");
  text_.remove_prefix(4);
  return unit;
}

// \n and its like, or \uXXXX: two of these for a character beyond U+FFFF.
void HeaderText::escape(std::string& out) {
  static constexpr std::string_view escaped = "\"\\/bfnrt", meant = "\"\\/\b\f\n\r\t";
  const char c = next("an escaped character");
  if (const std::size_t i = escaped.find(c); i != std::string_view::npos) return void(out += meant[i]);
  if (c != 'u') damaged("an unknown escape '\\{}'", c);
  std::uint32_t code = four_digits();
  if (code >= 0xd800 && code < 0xe000) {
    if (code >= 0xdc00 || text_.substr(0, 2) != "\\u") damaged("half a surrogate pair");
    text_.remove_prefix(2);
    const std::uint32_t low = four_digits();
    if (low < 0xdc00 || low >= 0xe000) damaged("half a surrogate pair");
    code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
  }
  // In UTF-8: as many leading ones as there are bytes, then six bits in each byte that follows.
  if (code < 0x80) return void(out += static_cast<char>(code));
  int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  out += static_cast<char>(0xff00 >> (more + 1) | code >> 6 * more);
  while (more-- > 0) out += static_cast<char>(0x80 | (code >> 6 * more & 0x3f));
}

}  // namespace tapehead::detail
