#pragma once
// What every test file includes: doctest, and the helpers that several of them need.
#ifndef DOCTEST_CONFIG_SUPER_FAST_ASSERTS
// Compiles faster; a throw inside CHECK ends its test case, as failed.
#define DOCTEST_CONFIG_SUPER_FAST_ASSERTS
#endif
#include <doctest/doctest.h>

#include <exception>
#include <string>
#include <string_view>

#include "tapehead/kernels/error.hpp"

/// Text that a variable points to is shown as text, not as an address.
template <> struct doctest::StringMaker<const char*> {
  static String convert(const char* text) { return text ? text : "nullptr"; }
};

template <> struct doctest::StringMaker<std::string_view> {
  static String convert(std::string_view text) { return String(text.data(), static_cast<unsigned>(text.size())); }
};
/// Tests compare with "text"sv: doctest compiles a comparison with "text" anew for each length of text.
using std::string_view_literals::operator""sv;

namespace testing {

/// What a test that has just caught something says of it: see message().
template <class E> std::string caught() {
  try {
    throw;
  } catch (const E& e) {
    return e.what();
  } catch (const std::exception& e) {
    return std::string("[another exception: ") + e.what() + "]";
  }
}

/// The message of the E that f() throws, or in brackets what happened instead, so that one comparison checks
/// type and text: CHECK(message<ShapeError>([&] { matmul(a, b); }) == "matmul: (2, 3) @ (4, 5): …"sv).
template <class E = tapehead::Error, class F> std::string message(const F& f) {
  try {
    f();
  } catch (...) {
    return caught<E>();
  }
  return "[nothing was thrown]";
}

/// Whether part of a text is this.
inline bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace testing
