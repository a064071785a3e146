#pragma once
// What a cell is compiled with. The functions live in host.cpp, in the process that runs the cells.
#include <fmt/format.h>

#include <csignal>
#include <initializer_list>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <utility>

namespace xcpp20 {

using Bundle = std::map<std::string, std::string>;  // what to show, by MIME type

/// Shows a bundle in the notebook, after everything that was printed so far.
void show(const Bundle& bundle, bool is_result = false);

template <class T>
std::string to_text(const T& x) {
  if constexpr (std::is_same_v<T, bool>) {
    return x ? "true" : "false";
  } else if constexpr (std::is_convertible_v<const T&, const char*>) {
    const char* text = x;
    return text == nullptr ? "nullptr" : '"' + std::string(text) + '"';
  } else if constexpr (std::is_convertible_v<const T&, std::string>) {
    return '"' + std::string(x) + '"';
  } else if constexpr (fmt::is_formattable<T, char>::value) {
    return fmt::format("{}", x);
  } else if constexpr (requires(std::ostream& out) { out << x; }) {
    std::ostringstream out;
    out << x;
    return out.str();
  } else if constexpr (requires { x.begin() != x.end(); }) {
    std::string text;
    for (const auto& element : x) text += (text.empty() ? "" : ", ") + to_text(element);
    return "{" + text + "}";
  } else if constexpr (requires { x.first, x.second; }) {
    return "{" + to_text(x.first) + ", " + to_text(x.second) + "}";
  } else {
    return "(a value of a type that cannot be printed)";
  }
}

template <class T>
Bundle bundle_of(const T& x) {
  if constexpr (requires { mime_bundle_repr(x); })
    return mime_bundle_repr(x);
  else
    return {{"text/plain", to_text(x)}};
}

/// `expression, Shown()` shows the value of a cell's last expression, unless it is void.
struct Shown {};
template <class T>
void operator,(T&& x, Shown) {
  show(bundle_of(x), true);
}

extern volatile std::sig_atomic_t asked_to_stop;
void stop_here();
/// Called in every loop and function of a cell: throws through the cell after the reader pressed Stop.
constexpr void poll() {
  if (!std::is_constant_evaluated() && asked_to_stop) stop_here();
}

struct Leave {};  // `return;` in a cell

/// Before each piece of a cell: its line, for error messages, and the variables that it declares again. A variable
/// that stands for a scope, as a Tape does, ends here.
int at(int line, std::initializer_list<const char*> declared = {});

template <class T>
struct Tag {};
void keep(const char* name, const char* type, void* place, void (*end)(void*));
void* place_of(const char* name);

/// After a variable is made: later cells find it by its name and type. T is the type it was declared with.
template <class T, class Object>
int made(const char* name, Object& x) {
  void (*end)(void*) = nullptr;
  if constexpr (!std::is_reference_v<T> && !std::is_move_constructible_v<std::remove_all_extents_t<T>>)
    end = [](void* place) { std::destroy_at(static_cast<Object*>(place)); };
  keep(name, typeid(Tag<Object>).name(), const_cast<void*>(static_cast<const volatile void*>(std::addressof(x))), end);
  return 0;
}
template <class T>
T& find(const char* name) {
  return *static_cast<T*>(place_of(name));
}

}  // namespace xcpp20

namespace xcpp {
/// As in xeus-cpp: shows anything that has a mime_bundle_repr or can be printed.
template <class T>
void display(const T& x) {
  ::xcpp20::show(::xcpp20::bundle_of(x));
}
}  // namespace xcpp
