#pragma once
#include <fmt/format.h>

#include <csignal>
#include <iostream>
#include <map>
#include <new>
#include <sstream>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <utility>

// What the cells of the kernel xcpp20 are compiled against. Its functions live in the process that runs the
// cells: host.cpp.

namespace xcpp20 {

using Bundle = std::map<std::string, std::string>;  // what to show, by MIME type

// ---- output
// ------------------------------------------------------------------------------------------------

/// Shows a bundle in the notebook, after everything that was printed so far.
void show(const Bundle& bundle, bool is_result = false);

template <class T>
std::string to_text(const T& x) {
  if constexpr (std::is_same_v<T, bool>) {
    return x ? "true" : "false";
  } else if constexpr (std::is_convertible_v<const T&, std::string>) {
    return '"' + std::string(x) + '"';
  } else if constexpr (fmt::is_formattable<T, char>::value) {
    return fmt::format("{}", x);
  } else if constexpr (requires(std::ostream & out) { out << x; }) {
    std::ostringstream out;
    out << x;
    return out.str();
  } else if constexpr (requires {
                         x.begin();
                         x.end();
                       }) {
    std::string text;
    for (const auto& element : x) text += (text.empty() ? "" : ", ") + to_text(element);
    return "{" + text + "}";
  } else if constexpr (requires {
                         x.first;
                         x.second;
                       }) {
    return "{" + to_text(x.first) + ", " + to_text(x.second) + "}";
  } else {
    return "(a value that has no way to be printed)";
  }
}

template <class T>
Bundle bundle_of(const T& x) {
  if constexpr (requires { mime_bundle_repr(x); })
    return mime_bundle_repr(x);
  else
    return {{"text/plain", to_text(x)}};
}

/// `expression, Shown()` shows a cell's last expression, where it has a value.
struct Shown {};
template <class T>
void operator,(T&& x, Shown) {
  show(bundle_of(x), true);
}

// ---- stopping
// ----------------------------------------------------------------------------------------------

extern volatile std::sig_atomic_t asked_to_stop;
void stop_here();
/// In every loop and function of a cell: where the reader asked for it, throws through the cell.
constexpr void poll() {
  if (!std::is_constant_evaluated() && asked_to_stop) stop_here();
}
/// The line that runs, for a report when it fails.
void at(int line);

// ---- variables
// --------------------------------------------------------------------------------------------- A variable of
// the notebook is a place in memory that its name and type find again, in every cell. It stays the same place
// when its declaration runs again, so that what referred to it still does.

template <class T>
struct Tag {
  using type = T;
};

struct Slot {
  void* memory = nullptr;
  bool alive = false;
  void (*end)(void*) = nullptr;  // of what can be neither copied nor moved: a scope, which ends with its name
};
Slot& slot(const char* name, const char* type, std::size_t size, std::size_t alignment);
/// Its declaration is about to run: what had the name under another type and stands for a scope ends.
void rename(const char* name, Slot& slot);
void defined(int piece, const char* type);
/// The declaration as it reads now is of another type than the value that was made.
void stale(const char* name);

template <class T>
using Stored = std::conditional_t<std::is_reference_v<T>, std::remove_reference_t<T>*, std::remove_cv_t<T>>;

template <class T>
Slot& slot_of(const char* name) {
  using U = Stored<T>;
  return slot(name, typeid(Tag<T>).name(), sizeof(U), alignof(U));
}

template <class T>
std::remove_reference_t<T>& find(const char* name) {
  using U = Stored<T>;
  void* memory = slot_of<T>(name).memory;
  if constexpr (std::is_reference_v<T>)
    return **static_cast<U*>(memory);
  else
    return *static_cast<U*>(memory);
}

/// Where a variable is; `made` is the type it was made with, or "" in the cell that makes it.
template <class T>
std::remove_reference_t<T>& bind(const char* name, const std::string& made) {
  if (!made.empty() && (made != typeid(Tag<T>).name() || !slot_of<T>(name).alive)) {
    stale(name);
    alignas(Stored<T>) static char nothing[sizeof(Stored<T>)];  // the cell will not run
    return *reinterpret_cast<std::remove_reference_t<T>*>(nothing);
  }
  return find<T>(name);
}

/// Runs a declaration. A value that was there before stays where other things may point to what it holds; one
/// that can be neither copied nor moved ends first.
template <class T, class Make>
void define(int piece, const char* name, Make make) {
  using U = Stored<T>;
  Slot& s = slot_of<T>(name);
  if constexpr (std::is_reference_v<T>) {
    *static_cast<U*>(s.memory) = &make();
  } else if constexpr (std::is_move_constructible_v<U>) {
    if (s.alive) {
      U fresh(make());
      U* old = static_cast<U*>(s.memory);
      if constexpr (!std::is_trivially_copyable_v<U>) new U(std::move(*old));
      old->~U();
      new (s.memory) U(std::move(fresh));
    } else {
      rename(name, s);
      new (s.memory) U(make());
    }
  } else {
    if (s.alive) static_cast<U*>(s.memory)->~U();
    s.alive = false;
    rename(name, s);
    new (s.memory) U(make());
    s.end = [](void* memory) { static_cast<U*>(memory)->~U(); };
  }
  rename(name, s);
  s.alive = true;
  defined(piece, typeid(Tag<T>).name());
}

/// What `auto& r = expression` declares: a reference where there is something to refer to, else a value.
template <class E, bool is_const, class Object = std::remove_reference_t<E>,
          class Seen = std::conditional_t<is_const, const Object, Object>>
using Referred = std::conditional_t<std::is_lvalue_reference_v<E>, Seen&, Seen>;

template <class Array>
struct Box {  // an array, to be returned
  Array value;
};

}  // namespace xcpp20

namespace xcpp {
/// As in xeus-cpp: anything with a mime_bundle_repr, or with a way to be printed.
template <class T>
void display(const T& x) {
  ::xcpp20::show(::xcpp20::bundle_of(x));
}
}  // namespace xcpp
