#pragma once
// The first line of every notebook: the library, what C++ programs with it include, and `show` for figures.
// It works in the kernel that `make notebook` starts, and in xeus-cpp, whose display it uses there.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tapehead/tapehead.hpp"

#if __has_include(<xcpp/xdisplay.hpp>) && !defined(XCPP20)
#include <nlohmann/json.hpp>
#include <xcpp/xdisplay.hpp>
using Bundle = nlohmann::json;
#else
#include "cell.hpp"
using Bundle = xcpp20::Bundle;
#endif

using namespace tapehead;

/// A figure: the SVG text that heatmap_svg, plot_svg and the other functions for figures return.
struct Figure {
  std::string svg;
};
inline Bundle mime_bundle_repr(const Figure& figure) {
  Bundle bundle;
  bundle["image/svg+xml"] = figure.svg;
  return bundle;
}
/// Shows a figure below the cell.
inline void show(const std::string& svg) { xcpp::display(Figure{svg}); }

/// Prints as fmt::print does, but through std::cout, which every kernel shows.
template <class... A>
void say(fmt::format_string<A...> format, A&&... values) {
  std::cout << fmt::format(format, std::forward<A>(values)...) << '\n';
}
