#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "files/file_bytes.hpp"

namespace tapehead::detail {

/// Reads the header of a .npy or .safetensors file: a dictionary as Python or JSON writes it, whose values are
/// strings, True or False, lists of whole numbers, and dictionaries again.
class HeaderText {
 public:
  explicit HeaderText(const Span& header) : source_(header.source()), text_(header.text()) {}

  /// Calls entry(key) for each key; entry then reads the value.
  template <class F> void dictionary(const F& entry) {
    expect("{", "a '{'");
    while (!take("}")) {
      const std::string key = string();
      expect(":", "a ':'");
      entry(key);
      if (take(",")) continue;
      expect("}", "a '}'");
      break;
    }
  }
  std::string string();  // in single or double quotes, with JSON's escapes
  bool boolean();
  std::vector<std::int64_t> integers(const char* open, const char* close);
  /// Fails where anything but spaces is left.
  void end();
  template <class... A> [[noreturn]] void damaged(Format<A...> text, const A&... arguments) const {
    source_.fail("in the header: {}", fmt::format(text, shown(arguments)...));
  }

 private:
  [[noreturn]] void expected(std::string_view what) const;
  bool take(std::string_view token);  // where it comes next, after any spaces
  void expect(std::string_view token, std::string_view what) {
    if (!take(token)) expected(what);
  }
  char next(const char* what);
  void escape(std::string& out);
  std::uint32_t four_digits();

  const Source& source_;
  std::string_view text_;
};

}  // namespace tapehead::detail
