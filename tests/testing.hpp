#pragma once
// What every test file includes: doctest, and the helpers that several of them need.
#ifndef DOCTEST_CONFIG_SUPER_FAST_ASSERTS
#define DOCTEST_CONFIG_SUPER_FAST_ASSERTS  // compiles faster: a throw inside CHECK ends its test case, as
                                           // failed
#endif
#include <doctest/doctest.h>

#include <exception>
#include <string>

#include "tapehead/error.hpp"

/// Text that a variable points to is shown as text, not as an address.
template <>
struct doctest::StringMaker<const char*> {
  static String convert(const char* text) { return text ? text : "nullptr"; }
};

namespace testing {

/// What a test that has just caught something says of it: see message().
template <class E>
std::string caught() {
  try {
    throw;
  } catch (const E& e) {
    return e.what();
  } catch (const std::exception& e) {
    return std::string("[another exception: ") + e.what() + "]";
  }
}

/// The message of the E that f() throws, or in brackets what happened instead, so that one comparison checks
/// type and text: CHECK(message<ShapeError>([&] { matmul(a, b); }) == "matmul: (2, 3) @ (4, 5): …").
template <class E = tapehead::Error, class F>
std::string message(const F& f) {
  try {
    f();
  } catch (...) {
    return caught<E>();
  }
  return "[nothing was thrown]";
}

}  // namespace testing
