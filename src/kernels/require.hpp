#pragma once
#include <fmt/format.h>

#include <string>

#include "tapehead/kernels/error.hpp"

// What the .cpp files share. Every check of the library is one line:
//
//     require<ShapeError>(k == n, "matmul: inner sizes {} and {} differ", k, n);
//
// A public header throws from a function of a .cpp file, so that who includes it does not compile fmt.

// The element types that a template of a .cpp file is compiled for: F(float) F(double) …
#define TAPEHEAD_REALS(F) F(float) F(double)
#define TAPEHEAD_ELEMENTS(F) TAPEHEAD_REALS(F) F(bool) F(std::int64_t)

namespace tapehead {
namespace detail {

// What a message shows for an argument: the text of what has one (a Shape), anything else as fmt writes it.
template <class A> decltype(auto) shown(const A& argument) {
  if constexpr (requires { argument.str(); })
    return argument.str();
  else
    return (argument);
}
template <class... A> using Format = fmt::format_string<decltype(shown(std::declval<const A&>()))...>;

// Formatting is compiled once, in error.cpp. Compiled into every file that throws, it would take clang++ several
// seconds a file where fmt has to be used from its headers alone.
std::string formatted(fmt::string_view text, fmt::format_args arguments);
template <class... A> std::string format(fmt::string_view text, const A&... arguments) {
  return formatted(text, fmt::make_format_args(arguments...));
}

}  // namespace detail

/// Throws E with this text: raise<ValueError>("linear: {} features", n). Shapes are passed as they are.
template <class E, class... A>
[[noreturn, gnu::cold, gnu::noinline]] void raise(detail::Format<A...> text, const A&... arguments) {
  throw E(detail::format(text, detail::shown(arguments)...));
}

/// Throws E with this text unless `condition` holds. The text is formatted only then, but the arguments are evaluated
/// always: where one is not cheap, write if (…) raise<E>(…).
template <class E, class... A> void require(bool condition, detail::Format<A...> text, const A&... arguments) {
  if (!condition) [[unlikely]]
    raise<E, A...>(text, arguments...);
}

}  // namespace tapehead
